"""The conversation as the browser shows it. What is sent has fixed keys; texts of people and models are values only."""

from typing import TypedDict

from nicegui.element import Element

from engine.job import Update
from ui.components.markdown import Part
from ui.i18n import Language


class Note(TypedDict):
    """One sentence under an answer that did not simply end."""

    kind: str  # "soft", "warn" or "bad"
    text: str
    retry: bool
    go_on: bool  # there is a beginning that can be gone on with


class Turn(TypedDict):
    """One question with its answer. `html` None: the browser has all of the answer already."""

    id: str
    goes_on: str  # id of the turn in whose place this one is shown, because it goes on with its answer; "" for none
    question: str
    asked: str  # the question without its files
    files: list[dict[str, str]]  # name and text
    status: str
    final: bool
    begun: bool  # some of the answer is there
    html: str | None
    pieces: str
    tail: str
    seq: int  # deltas of a running answer that the HTML holds
    source: str  # the answer's Markdown, for copying; "" while it is being written
    versions: list[str]  # ids of the answers to the same question, this one included
    questions: list[str]  # an id for each of the questions that were asked here, this one included
    position: int | None
    ready_at: float | None  # set by the browser
    note: Note | None
    details: list[tuple[str, str]]


class Rating(TypedDict):
    """What the reader thinks of an answer."""

    id: str  # of the exchange
    rating: int  # 1, -1, or 0 for none any more
    reason: str
    comment: str


class View(TypedDict):
    id: str  # "" for a conversation that does not exist yet
    title: str
    turns: list[Turn]
    first_read: str  # id of the turn above which nothing is read by the model any more; "" where it reads all
    replace: bool  # whether the page's address is replaced, rather than put on top of the history
    missing: bool


class Thread(Element, component="thread.js", esm={"qdesk-turn": "turn"}):
    """Emits stop, regenerate, goOn, version, remove, fork, lost (all with the id of an exchange), visit (of a
    conversation), edit {id, text, nonce}, and loaded."""

    def __init__(self, say: Language) -> None:
        super().__init__()
        self._props["texts"] = _texts(say)
        self._props["locale"] = say.tag
        self._props["examples"] = [
            say("Explain what an index does in a database, with an example."),
            say("Write a friendly reminder about the meeting on Monday."),
            say("Write a Python function that finds duplicate files in a folder."),
        ]

    def load(self, view: View) -> None:
        self.run_method("load", view)

    def put(self, turn: Turn) -> None:
        """Show a turn: in the place of the one with its id, else at the end."""
        self.run_method("put", turn)

    def stream(self, id: str, since: int, seq: int, part: Part) -> None:
        """Go on with a running answer. The browser drops what it has seen, and emits `lost` if it misses something."""
        told = {"id": id, "since": since, "seq": seq}
        self.run_method("stream", told | {"finished": part.finished, "piece": part.piece, "tail": part.tail})

    def ticket(self, id: str, update: Update) -> None:
        """Where a request stands that has no token yet."""
        place = {"position": update.position, "wait_s": update.expected_wait_s}
        self.run_method("ticket", {"id": id, "status": update.status.value, **place})

    def not_edited(self, nonce: str, text: str) -> None:
        """An edited question was not taken, for this reason; it stays where it is being written."""
        self.run_method("notEdited", {"nonce": nonce, "text": text})

    def read_from(self, first_read: str) -> None:
        """Say from which turn on the model reads the conversation; "" is all of it."""
        self.run_method("mark", first_read)

    def service(self, kind: str, text: str, model: str, done: int = 0, total: int = 0) -> None:
        """What the server can do at present: `ready`, `loading`, `draining` or `failed`, and which model answers."""
        self.run_method("service", {"kind": kind, "text": text, "model": model, "done": done, "total": total})

    def rated(self, ratings: list[Rating]) -> None:
        """Mark the thumbs of these answers."""
        self.run_method("rated", ratings)

    def named(self, id: str, title: str) -> None:
        """The conversation shown has got its id and title."""
        self.run_method("named", id, title)


def _texts(say: Language) -> dict[str, str]:
    return {
        "conversation": say("Conversation"),
        "newChat": say("New chat"),
        "menu": say("Open the list of conversations"),
        "settings": say("Settings of this conversation"),
        "model": say("The model that answers"),
        "offline": say("The connection is lost. It comes back by itself; nothing is lost."),
        "welcome": say("What can I help you with?"),
        "welcomeMore": say("Everything stays on your organisation's own server."),
        "missing": say("There is no such conversation."),
        "missingMore": say("It may have been deleted, or the address is not complete."),
        "leftOut": say("Earlier messages are no longer read by the model"),
        "youAsked": say("You asked: "),
        "waiting": say("Waiting for a free place"),
        "next": say("You are next in line"),
        "inLine": say("You are {n} in line"),
        "comma": say(", "),
        "seconds": say("about {n} s"),
        "minutes": say("about {n} min"),
        "soon": say("any moment now"),
        "leave": say("Leave"),
        "reading": say("Reading your message"),
        "attached": say("Attached file"),
        "retry": say("Try again"),
        "regenerate": say("Regenerate"),
        "copy": say("Copy"),
        "copyCode": say("Copy this code"),
        "wrap": say("Wrap"),
        "wrapCode": say("Wrap the lines of this code"),
        "copied": say("Copied"),
        "details": say("Details"),
        "good": say("Good answer"),
        "bad": say("Bad answer"),
        "regenerateWith": say("Regenerate with other settings"),
        "goOn": say("Continue"),
        "fork": say("Branch into a new chat"),
        "remove": say("Delete"),
        "more": say("More"),
        "edit": say("Edit"),
        "editQuestion": say("Edit your message"),
        "send": say("Send"),
        "cancel": say("Cancel"),
        "answerVersions": say("Versions of this answer"),
        "questionVersions": say("Versions of your message"),
        "previousVersion": say("Previous version"),
        "nextVersion": say("Next version"),
        "previousQuestion": say("Previous version of your message"),
        "nextQuestion": say("Next version of your message"),
        "toTheEnd": say("To the end"),
        "answerStarted": say("The answer has started."),
    }
