"""Where a question is written; the draft stays in the browser until the server has taken the question."""

from nicegui.element import Element

from ui.components.attachments import LARGEST_FILE, LONGEST_MESSAGE, MOST_FILES, split_files
from ui.components.refusals import WaitsFor
from ui.i18n import Language


class Composer(Element, component="composer.js"):
    """Emits ask {text, files, nonce, conversation}, stop, attach {key, name, data}, and count {mark, text, files}."""

    def __init__(self, say: Language, person: str, conversation_id: str) -> None:
        super().__init__()
        self._props["place"] = conversation_id
        self._props["texts"] = _texts(say)
        self._props["person"] = person  # so that two people at one browser never see each other's drafts
        self._props["limits"] = {"message": LONGEST_MESSAGE, "file": LARGEST_FILE, "files": MOST_FILES}

    def open(self, conversation_id: str, *, running: bool, last_question: str) -> None:
        """`last_question` as it was sent, with its files: a draft of the same is one that has been sent."""
        text, files = split_files(last_question)
        last = {"text": text, "files": [file.name for file in files]}
        self.run_method("open", {"conversation": conversation_id, "running": running, "last": last})

    def taken(self, nonce: str, conversation_id: str) -> None:
        """The question is on its way: the draft may go."""
        self.run_method("taken", nonce, conversation_id)

    def refused(self, nonce: str, text: str, *, retry: bool, waits_for: WaitsFor | None = None) -> None:
        """The question was not taken, for this reason; the draft stays, and may be sent when what it `waits_for` is."""
        self.run_method("refused", {"nonce": nonce, "text": text, "retry": retry, "waits_for": waits_for})

    def busy(self, running: bool) -> None:
        """Whether an answer is on its way, so that there is something to stop."""
        self.run_method("busy", running)

    def attached(self, key: str, name: str, text: str) -> None:
        """A file was read."""
        self.run_method("attached", {"key": key, "name": name, "text": text})

    def unreadable(self, key: str, why: str) -> None:
        """A file was not read, for this reason."""
        self.run_method("unreadable", {"key": key, "why": why})

    def counted(self, mark: str, text: str, *, over: bool) -> None:
        """How many tokens the draft of this mark has, in words; `over`: too many."""
        self.run_method("counted", {"mark": mark, "text": text, "over": over})


def _texts(say: Language) -> dict[str, str]:
    return {
        "composer": say("Your message"),
        "placeholder": say("Write a message"),
        "send": say("Send"),
        "stop": say("Stop"),
        "retry": say("Try again"),
        "keys": say("Enter sends, Shift+Enter starts a new line. Answers can be wrong; check what matters."),
        "attach": say("Attach text files"),
        "remove": say("Remove {name}"),
        "reading": say("Reading"),
        "shortcuts": say("Keyboard shortcuts"),
        "tooMany": say("A message may have {limit} files."),
        "fileTooLarge": say("{name} is too large: a file may have {limit} kB."),
        "check": say("Answers can be wrong; check what matters."),
        "oneAtATime": say("An answer is on its way. Wait for it, or stop it first."),
        "tooLong": say("That would make {length} characters; a message may have {limit}. Please shorten it."),
    }
