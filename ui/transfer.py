"""Conversations as files: written as JSON or Markdown, and read again from JSON or JSON lines.

Nothing of a file is believed: pydantic checks every value, ids are made anew, and an exchange's parent must stand above
it. Knows nothing of HTTP and of the store.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, ValidationError, model_validator

from engine.errors import InvalidRequest
from engine.types import Exchange, FinishReason, Message, Sampling, Status, new_id
from ui.components.turns import branch, ends
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import Conversation

LONGEST_TEXT = 1_000_000  # characters of one question or answer
MOST_CONVERSATIONS, MOST_EXCHANGES = 5_000, 5_000
MOST_PARTS = 1_000_000  # lists, objects, values and lines; each takes 100 bytes and more, however short it is written
MOST_STOPS = 8
STRETCH = 256 * 1024  # bytes that are looked through before another thread has its turn
ERRORS_TOLD = 5

Id = Annotated[str, Field(min_length=1, max_length=64)]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]


def _final(status: Status) -> Status:
    if not status.final:
        raise ValueError("an exchange in a file has ended")
    return status


class SamplingPart(BaseModel):
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: Annotated[list[str], Field(max_length=MOST_STOPS)] = []
    max_tokens: int | None = None

    def sampling(self) -> Sampling:
        """Raises InvalidRequest for a value outside its range."""
        given = {name: value for name, value in self.model_dump(exclude={"stop"}).items() if value is not None}
        return Sampling(**given, stop=tuple(self.stop))

    @model_validator(mode="after")
    def _in_range(self) -> "SamplingPart":
        try:
            self.sampling()
        except InvalidRequest as error:
            raise ValueError(str(error)) from error
        return self


class ExchangePart(BaseModel):
    id: Id
    parent: Id | None = None
    question: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
    begins_with: Text = ""  # the answer that was cut off, which this one goes on with
    answer: Text = ""
    status: Annotated[Status, AfterValidator(_final)] = Status.DONE
    finish_reason: FinishReason | None = None
    model: Annotated[str, Field(max_length=200)] = ""
    asked_at: AwareDatetime | None = None


class ConversationPart(BaseModel):
    """One conversation with its whole tree; exchanges stand in the order in which they were asked."""

    format: Literal["qdesk.conversation"]
    version: Literal[1]
    title: Annotated[str, Field(max_length=200)] = ""
    updated_at: AwareDatetime | None = None
    system_prompt: Annotated[str | None, Field(max_length=20_000)] = None
    sampling: SamplingPart | None = None
    folder: Annotated[str, Field(max_length=60)] = ""
    pinned: bool = False
    archived: bool = False
    head: Id | None = None
    exchanges: Annotated[list[ExchangePart], Field(min_length=1, max_length=MOST_EXCHANGES)]

    @model_validator(mode="after")
    def _a_tree(self) -> "ConversationPart":
        seen: set[str] = set()
        for one in self.exchanges:
            if one.id in seen:
                raise ValueError(f"two exchanges have the id {one.id}")
            if one.parent is not None and one.parent not in seen:
                raise ValueError(f"the parent of exchange {one.id} does not stand above it")
            seen.add(one.id)
        return self


class NotRead(Exception):
    """The file was not understood; `sentences` say where and why."""

    def __init__(self, sentences: list[str]) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences


# --- writing ---


def to_json(conversation: "Conversation", exchanges: Sequence[Exchange], *, indent: int | None = None) -> str:
    """The conversation with all its branches."""
    known = {one.id for one in exchanges}
    whole = {
        "format": "qdesk.conversation",
        "version": 1,
        "title": conversation.title,
        "updated_at": conversation.updated_at.isoformat(),
        "system_prompt": conversation.system_prompt,
        "sampling": None if conversation.sampling is None else _sampling(conversation.sampling),
        "folder": conversation.folder,
        "pinned": conversation.pinned,
        "archived": conversation.archived,
        "head": conversation.head_id if conversation.head_id in known else None,
        "exchanges": [_exchange(one, known) for one in exchanges],
    }
    return json.dumps(whole, ensure_ascii=False, indent=indent)


def _exchange(one: Exchange, known: set[str]) -> dict[str, Any]:
    return {
        "id": one.id,
        "parent": one.parent_id if one.parent_id in known else None,
        "question": one.prompt,
        "begins_with": one.opening,
        "answer": one.answer,
        "status": str(one.status if one.status.final else Status.INTERRUPTED),
        "finish_reason": one.finish_reason,
        "model": one.model,
        "asked_at": one.queued_at.isoformat(),
    }


def _sampling(sampling: Sampling) -> dict[str, Any]:
    values = asdict(sampling)
    del values["ignore_eos"]
    return values | {"stop": list(sampling.stop)}


def to_markdown(conversation: "Conversation", exchanges: Sequence[Exchange], say: Language) -> str:
    """The branch that is shown, to be read."""
    path = branch({one.id: one for one in exchanges}, conversation.head_id)
    parts = [f"# {conversation.title}"]
    if conversation.system_prompt:
        parts += [f"## {say('System prompt')}", conversation.system_prompt]
    for one in ends(path):
        parts += [f"## {say('You')}", one.prompt, f"## {one.model or say('Model')}", one.whole_answer]
    return "\n\n".join(parts) + "\n"


# --- reading ---


def read(data: bytes, say: Language) -> list[ConversationPart]:
    """The conversations of a file: one as JSON, several as a JSON list or as JSON lines. Raises NotRead.

    A file is read whole or not at all. Safe from any thread; others get their turn meanwhile.
    """
    if _parts(data) > MOST_PARTS:
        raise NotRead([say("A file may hold {n} values. Import it in several pieces.", n=say.number(MOST_PARTS))])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotRead([say("The file is not UTF-8 text.")]) from None
    found, troubles = [], []
    for line, value in _values(text, say):
        try:
            found.append(ConversationPart.model_validate(value))
        except ValidationError as invalid:
            troubles += [say("Line {n}: {what}", n=line, what=what) for what in _told(invalid)]
        if len(troubles) >= ERRORS_TOLD or len(found) > MOST_CONVERSATIONS:
            break
    if len(found) > MOST_CONVERSATIONS:
        troubles = [say("A file may hold {n} conversations.", n=say.number(MOST_CONVERSATIONS))]
    if not found and not troubles:
        troubles = [say("There is no conversation in this file.")]
    if troubles:
        raise NotRead(troubles[:ERRORS_TOLD])
    return found


def _parts(data: bytes) -> int:
    """About how many values JSON has: what begins a list or an object, parts two values or ends a line, not in texts.

    Of a file with more than MOST_PARTS, no more is counted than shows that.
    """
    plain, parts, in_text = data.replace(b"\\\\", b"").replace(b'\\"', b""), 0, False
    for at in range(0, len(plain), STRETCH):
        between_quotes = plain[at : at + STRETCH].split(b'"')
        outside = b"".join(between_quotes[in_text::2])
        parts += sum(outside.count(mark) for mark in (b"[", b"{", b",", b"\n"))
        if parts > MOST_PARTS:
            break
        in_text ^= len(between_quotes) % 2 == 0
    return parts


def _values(text: str, say: Language) -> Iterator[tuple[int, object]]:
    """Each conversation of the file, not checked yet, with the line it is on. Raises NotRead for what is not JSON."""
    try:
        whole = json.loads(text) if text.strip() else []
    except RecursionError:
        raise NotRead([say("The file is nested too deeply.")]) from None
    except ValueError as error:
        yield from _lines(text, getattr(error, "lineno", 1), say)
    else:
        yield from ((1, value) for value in (whole if isinstance(whole, list) else [whole]))


def _lines(text: str, wrong_at: int, say: Language) -> Iterator[tuple[int, object]]:
    """The same of JSON lines. A text that is none, having one line or beginning with no JSON, is wrong at that line."""
    lines = ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
    first = list(islice(lines, 2))
    if len(first) < 2 or not _is_json(first[0][1]):
        raise NotRead([say("Line {n}: {what}", n=wrong_at, what=say("this is not JSON."))])
    for number, line in chain(first, lines):
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError):
            raise NotRead([say("Line {n}: {what}", n=number, what=say("this is not JSON."))]) from None


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _told(invalid: ValidationError) -> list[str]:
    """What is wrong, by the name of the part; never more of the value than pydantic shows."""
    return [
        f"{'.'.join(map(str, error['loc'])) or 'conversation'}: {error['msg']}"
        for error in invalid.errors(include_url=False, include_input=False)
    ]


def exchanges_of(part: ConversationPart, now: datetime) -> tuple[list[Exchange], str | None]:
    """The exchanges as new ones, asked now in the same order, and the new id of the head.

    The log is by when something came into it: a file must not put anything into the past. The person, the conversation
    and the source are for the store to set.
    """
    ids = {one.id: new_id() for one in part.exchanges}
    made = [_made(one, ids, now.replace(microsecond=0), at) for at, one in enumerate(part.exchanges)]
    return made, ids.get(part.head or "")


def _made(one: ExchangePart, ids: dict[str, str], now: datetime, at: int) -> Exchange:
    opening = (Message("assistant", one.begins_with),) if one.begins_with else ()
    asked_at = now.astimezone(UTC).replace(microsecond=at)
    return Exchange(
        id=ids[one.id],
        person=None,
        source="import",
        conversation_id=None,
        parent_id=ids.get(one.parent or ""),
        messages=(Message("user", one.question), *opening),
        answer=one.answer,
        status=one.status,
        finish_reason=one.finish_reason,
        error=None,
        model=one.model,
        quantization="",
        sampling=Sampling(),
        prompt_tokens=0,
        cached_tokens=0,
        completion_tokens=0,
        queue_depth=0,
        queued_at=asked_at,
        started_at=None,
        first_token_at=None,
        finished_at=asked_at,
    )
