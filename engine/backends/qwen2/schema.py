"""Answers that are JSON of a given schema: which tokens may come next, by llguidance.

Knows JSON Schema's compiler and the tokenizer's bytes; nothing of models. A schema comes from anybody, so its size, the
compiler's and the matcher's work are bounded, and no reference to another document is followed.
"""

from collections.abc import Callable
from functools import lru_cache
from threading import Lock

import numpy as np
import torch
from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from loguru import logger
from torch import Tensor

from engine.backends.qwen2.tokens import Tokens
from engine.errors import InvalidRequest

LONGEST = 64 * 1024  # characters of a schema; the slowest known of this length compiles in a second
KEPT = 32  # compiled schemas that are kept for the next request
SAID = 200  # characters of the compiler's words that are passed on
LIMITS = LLParserLimits(
    max_items_in_row=2000,
    initial_lexer_fuel=1_000_000,
    step_lexer_fuel=100_000,
    step_max_items=20_000,
    max_lexer_states=50_000,
    max_grammar_size=100_000,
)
# One way to write each value: where white space is free, a model may write nothing else for ever.
COMPACT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "coerce_one_of": True}


class Vocabulary:
    """The tokens as llguidance wants to see them; the names of these attributes are its own."""

    bos_token_id = None

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self.eos_token_id = tokens.end
        self.special_token_ids = [token for token in range(tokens.count) if not tokens.bytes_of(token)]
        self.tokens = [tokens.bytes_of(token) or b"<|%d|>" % token for token in range(tokens.count)]
        self.is_tokenizer_wrapper = True

    def __call__(self, text: bytes | str) -> list[int]:
        return self._tokens.encode(text.decode(errors="replace") if isinstance(text, bytes) else text)


class Schemas:
    """Schemas to matchers. Safe from any thread; the vocabulary is read when the first schema comes."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._tokenizer: LLTokenizer | None = None
        self._lock = Lock()
        self._compiled: Callable[[str], LLMatcher] = lru_cache(KEPT)(self._compile)

    def constraint(self, schema: str) -> "SchemaConstraint":
        """What keeps one answer to this schema. Raises InvalidRequest for one that cannot be kept to."""
        with self._lock:
            return SchemaConstraint(self._compiled(schema).deep_copy())

    def _compile(self, schema: str) -> LLMatcher:
        if len(schema) > LONGEST:
            raise _refused(f"it has more than {LONGEST} characters")
        if self._tokenizer is None:
            self._tokenizer = LLTokenizer(Vocabulary(self._tokens), slices=LLTokenizer.json_slices())  # type: ignore[arg-type]  # by its attributes
        try:
            grammar = LLMatcher.grammar_from_json_schema(schema, overrides=COMPACT)  # type: ignore[arg-type]  # a TypedDict of these
        except ValueError as error:
            raise _refused(str(error)) from error
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0, limits=LIMITS)
        first = matcher.deep_copy()
        first.compute_bitmask()  # finds what no text can fulfil
        if matcher.is_error() or first.is_error():
            raise _refused((matcher.get_error() or first.get_error()).partition("\n")[0])
        return matcher


class SchemaConstraint:
    """One answer's way through its schema. Used by one thread at a time."""

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher

    def allowed(self, count: int) -> Tensor | None:
        """True for each of `count` tokens that may come next; None when the schema proved too costly on the way."""
        bits = self._matcher.compute_bitmask()
        if self._matcher.is_error():
            logger.error("an answer cannot be kept to its schema: {}", self._matcher.get_error().partition("\n")[0])
            return None
        known = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[:count].astype(bool)
        allowed = torch.zeros(count, dtype=torch.bool)
        allowed[: len(known)] = torch.from_numpy(known)
        return allowed

    def take(self, token: int) -> None:
        self._matcher.consume_token(token)  # what goes wrong is seen at the next token


def _refused(why: str) -> InvalidRequest:
    shown = why if len(why) <= SAID else why[:SAID] + "..."
    return InvalidRequest(f"Answers cannot be kept to this schema: {shown}", param="response_format")
