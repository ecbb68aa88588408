"""One opened exchange as the reviewer sees it: the conversation around it, turn by turn, with the numbers of each.

Makes plain dicts with fixed keys for the component. Answers become sanitised HTML here; everything else stays text.
Knows nothing of pages and of the store.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from engine.backends import PromptPiece
from engine.types import Exchange, Message, Role
from ui.components.review.facts import Facts, facts, source_name, status_name, summary
from ui.i18n import Language

Render = Callable[[str], str]  # Markdown that nobody vouches for, to HTML that is safe to show


class Turn(TypedDict):
    id: str
    at: str  # ISO 8601; the browser writes it in the reader's zone and language
    status: str
    statusName: str
    prompt: str  # text
    answer: str  # sanitised HTML
    error: str
    summary: list[str]
    facts: list[Facts]
    versions: list[str]  # ids of the answers to the same turn, oldest first, this one among them


class Said(TypedDict):
    role: str
    roleName: str
    text: str
    html: str  # sanitised; "" where `text` is shown


class Part(TypedDict):
    """A run of the prompt as the model's tokenizer has it."""

    text: str
    control: bool  # a control token by its name, which is no text of anybody


class View(TypedDict):
    id: str
    who: str
    place: str  # where it was asked, and where it stands in its conversation
    earlier: list[Said]  # what an API request brought along; a conversation of the page has turns instead
    turns: list[Turn]


def branch(exchanges: Sequence[Exchange], opened: Exchange) -> list[Exchange]:
    """The way through the conversation's tree that leads over `opened`: its ancestors, and on by the newest child."""
    by_id = {exchange.id: exchange for exchange in exchanges}
    path, seen = [opened], {opened.id}
    while (parent := by_id.get(path[0].parent_id or "")) and parent.id not in seen:
        path.insert(0, parent)
        seen.add(parent.id)
    while children := [e for e in exchanges if e.parent_id == path[-1].id and e.id not in seen]:
        path.append(max(children, key=lambda child: child.queued_at))
        seen.add(path[-1].id)
    return path


def versions(exchanges: Sequence[Exchange], exchange: Exchange) -> list[str]:
    """The ids of those that stand at the same place of the tree, oldest first."""
    siblings = [e for e in exchanges if e.parent_id == exchange.parent_id]
    return [e.id for e in sorted(siblings, key=lambda e: e.queued_at)] or [exchange.id]


def view(opened: Exchange, exchanges: Sequence[Exchange], who: str, say: Language, render: Render) -> View:
    """Everything that is shown of an opened exchange. Renders Markdown: call it off the event loop."""
    path = branch(exchanges, opened)
    return View(
        id=opened.id,
        who=who,
        place=place(opened, path, say),
        earlier=said(path[0].messages[: -2 if path[0].opening else -1], say, render)
        if opened.conversation_id is None
        else [],
        turns=[turn(exchange, versions(exchanges, exchange), say, render) for exchange in path],
    )


def place(opened: Exchange, path: list[Exchange], say: Language) -> str:
    source = source_name(opened.source, say)
    if len(path) == 1:
        return source
    return say(
        "{source} · {n} of {total} in its conversation", source=source, n=path.index(opened) + 1, total=len(path)
    )


def turn(exchange: Exchange, versions: list[str], say: Language, render: Render) -> Turn:
    return Turn(
        id=exchange.id,
        at=exchange.queued_at.isoformat(),
        status=exchange.status.value,
        statusName=status_name(exchange.status, say),
        prompt=exchange.prompt,
        answer=render(exchange.whole_answer) if exchange.whole_answer else "",
        error=exchange.error or "",
        summary=kind(exchange, say) + summary(exchange, say),
        facts=facts(exchange, say),
        versions=versions,
    )


def kind(exchange: Exchange, say: Language) -> list[str]:
    """What the exchange is, where it is no question and its answer."""
    if exchange.messages[-1].role == "text":
        return [say("Goes on with a text as it is")]
    return [say("Goes on with a cut-off answer")] if exchange.opening else []


def said(messages: Sequence[Message], say: Language, render: Render | None = None) -> list[Said]:
    """The messages with who said them; answers are rendered where `render` is given, else everything is as sent."""
    return [
        Said(
            role=message.role,
            roleName=role_name(message.role, say),
            text=message.content,
            html=render(message.content) if render and message.role == "assistant" else "",
        )
        for message in messages
    ]


def parts(pieces: Sequence[PromptPiece]) -> list[Part]:
    return [Part(text=piece.text, control=piece.control) for piece in pieces]


def role_name(role: Role, say: Language) -> str:
    names: Mapping[Role, str] = {
        "system": say("System prompt"),
        "user": say("Person"),
        "assistant": say("Model"),
        "text": say("Text to go on with"),
    }
    return names[role]
