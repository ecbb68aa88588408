"""Where a question is written; the draft stays in the browser until the server has taken the question."""

from nicegui.element import Element

from ui.i18n import Language

LONGEST_MESSAGE = 100_000  # characters; the socket drops messages over a million bytes without a word


class Composer(Element, component="composer.js"):
    """Emits ask {text, nonce, conversation} and stop."""

    def __init__(self, say: Language, person: str) -> None:
        super().__init__()
        self._props["texts"] = _texts(say)
        self._props["person"] = person  # so that two people at one browser never see each other's drafts
        self._props["limit"] = LONGEST_MESSAGE

    def open(self, conversation_id: str, *, running: bool, last_question: str) -> None:
        place = {"conversation": conversation_id, "running": running, "last_question": last_question}
        self.run_method("open", place)

    def taken(self, nonce: str, conversation_id: str) -> None:
        """The question is on its way: the draft may go."""
        self.run_method("taken", nonce, conversation_id)

    def refused(self, nonce: str, text: str, *, retry: bool, when_free: bool = False) -> None:
        """The question was not taken, for this reason; the draft stays, and may be sent `when_free` is a place."""
        self.run_method("refused", {"nonce": nonce, "text": text, "retry": retry, "when_free": when_free})

    def busy(self, running: bool) -> None:
        """Whether an answer is on its way, so that there is something to stop."""
        self.run_method("busy", running)


def _texts(say: Language) -> dict[str, str]:
    return {
        "composer": say("Your message"),
        "placeholder": say("Write a message"),
        "send": say("Send"),
        "stop": say("Stop"),
        "retry": say("Try again"),
        "keys": say("Enter sends, Shift+Enter starts a new line. Answers can be wrong; check what matters."),
        "check": say("Answers can be wrong; check what matters."),
        "oneAtATime": say("An answer is on its way. Wait for it, or stop it first."),
        "tooLong": say("That would make {length} characters; a message may have {limit}. Please shorten it."),
    }
