"""Text to tokens and back: a chat template that nobody can forge, and streaming that never shows half a character.

Knows the tokenizer's file, ChatML and UTF-8. Knows nothing of models. Safe to use from any thread: the tokenizer below
is set up once and only read afterwards, and what is remembered is never changed.
"""

import codecs
import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from engine.backends import PromptPiece
from engine.backends.qwen2.ready import CONTROL, TOKENIZER
from engine.backends.qwen2.source import unusable
from engine.errors import InvalidRequest
from engine.types import Message, opening

START, END, END_OF_TEXT = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
PIECE = 50_000  # characters of a long text that are read at once to see whether it is far too long
REMEMBERED, LONGEST = 256, 8000  # texts whose tokens are kept, and characters of the longest such: some MB together


class Tokens:
    """A Qwen2 tokenizer for chats.

    Control tokens are put in by number alone. Text is read by a tokenizer that has none of them, so that whatever a
    person types, `<|im_start|>` included, stays text.
    """

    def __init__(self, folder: Path) -> None:
        """Read the tokenizer of a ready folder."""
        control: list[dict[str, Any]] = json.loads((folder / CONTROL).read_text(encoding="utf-8"))
        added = {token["content"]: token for token in control}
        if missing := {START, END} - added.keys():
            raise unusable(f"The model's tokenizer has no {min(missing)}; use a chat model of the Qwen2 family.")
        self.start, self.end = added[START]["id"], added[END]["id"]
        self.ends = {added[text]["id"] for text in (START, END, END_OF_TEXT) if text in added}
        self._control: dict[int, str] = {token["id"]: text for text, token in added.items() if _is_control(token)}
        self._shown: dict[int, bytes] = {
            token["id"]: text.encode() for text, token in added.items() if not _is_control(token)
        }
        self._first_added = min(token["id"] for token in added.values())
        self.count = max(token["id"] for token in added.values()) + 1
        self._text = Tokenizer.from_file(str(folder / TOKENIZER))
        self._remembered = lru_cache(REMEMBERED)(self._read)
        self._newline = self.encode("\n")
        self.between = [self.end, *self._newline, self.start, *self.encode("user\n")]  # an answer and the next question

    def encode(self, text: str) -> list[int]:
        """Tokens of plain text; never a control token.

        All messages of a conversation come again with each turn, twice: their length is asked for first.
        """
        return list(self._remembered(text)) if len(text) <= LONGEST else self._read(text)

    def _read(self, text: str) -> list[int]:
        """As a batch of one, since that lets other threads go on meanwhile, and the event loop with them."""
        ids: list[int] = self._text.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of a conversation and of the beginning of the assistant's turn; of a lone text, as it is.

        A last message of the assistant's stays open, so that the model goes on where that stops.
        """
        if messages[-1].role == "text":
            return self.encode(messages[-1].content)
        tokens = []
        text = opening(messages)
        for message in messages[:-1] if text else messages:
            tokens += [self.start, *self.encode(f"{message.role}\n{message.content}"), self.end, *self._newline]
        return [*tokens, self.start, *self.encode("assistant\n"), *self.encode(text)]

    def prompt_length(self, messages: Sequence[Message], limit: int) -> int:
        """How many tokens `prompt` has; of a text that has more than twice `limit`, about how many, by its beginning.

        A token takes some 350 bytes and 3 µs while a text is read: millions of them are too many for nothing.
        """
        size = sum(len(message.content) for message in messages)
        if size > PIECE:
            seen = read = 0
            for message in messages:
                for at in range(0, len(message.content), PIECE):
                    piece = message.content[at : at + PIECE]
                    seen, read = seen + len(self.encode(piece)), read + len(piece)
                    if seen > 2 * limit:
                        return seen * size // read
        return len(self.prompt(messages))

    def text_of(self, tokens: Sequence[int]) -> str:
        """The text of these tokens; bytes that are no UTF-8 become U+FFFD. Raises InvalidRequest."""
        if any(not 0 <= token < self.count for token in tokens):
            raise InvalidRequest(f"tokens are numbers from 0 to {self.count - 1} here.", param="tokens")
        return b"".join(map(self.bytes_of, tokens)).decode(errors="replace")

    def pieces(self, tokens: Sequence[int]) -> list[PromptPiece]:
        """The text of a prompt's tokens, cut at its control tokens, which stand there by their names."""
        found = []
        for control, run in groupby(tokens, key=self._control.__contains__):
            if control:
                found += [PromptPiece(self._control[token], control=True) for token in run]
            else:
                found.append(PromptPiece(b"".join(map(self.bytes_of, run)).decode(errors="replace")))
        return found

    def bytes_of(self, token: int) -> bytes:
        """What the token adds to a text: nothing for control tokens, part of a character for some others."""
        if token >= self._first_added:  # above them there is only padding
            return self._shown.get(token, b"")
        letters: str = self._text.id_to_token(token) or ""
        return bytes(_BYTES[letter] for letter in letters)


class TextStream:
    """The text of one answer, token by token: whole characters only, and never a part of a stop string.

    The pieces joined do not depend on how the text is cut into tokens: a stop string acts when it is complete, and of
    two that are complete at once the longer one cuts.
    """

    def __init__(self, tokens: Tokens, stop: Sequence[str]) -> None:
        self._tokens, self._stop = tokens, stop
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")
        self._held = ""
        self.stopped = False  # a stop string has come

    def bytes_of(self, token: int) -> bytes:
        return self._tokens.bytes_of(token)

    def push(self, token: int) -> str:
        """Take the next token and return the text that can be shown now."""
        self._held += self._decoder.decode(self._tokens.bytes_of(token)).replace("\ufffd", "")
        if found := [(at + len(stop), at) for stop in self._stop if (at := self._held.find(stop)) >= 0]:
            self.stopped = True
            shown, self._held = self._held[: min(found)[1]], ""
        else:
            keep = max((_overlap(self._held, stop) for stop in self._stop), default=0)
            shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

    def rest(self) -> str:
        """What was held back because a stop string might have begun there; bytes of half a character are dropped."""
        rest, self._held = self._held, ""
        return rest


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that `stop` begins with."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)


def _is_control(token: dict[str, Any]) -> bool:
    text: str = token["content"]
    return token["special"] or (text.startswith("<|") and text.endswith("|>"))


def _byte_letters() -> dict[str, int]:
    """The letters that byte-level BPE writes bytes with: printable ones stand for themselves, others from 256 on.

    Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), section 2.2 and its code.
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


_BYTES = _byte_letters()
