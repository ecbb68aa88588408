"""What people think of an answer: a thumb under it, with a reason and a comment where they like to say more.

A thumb counts at once; what the small dialog adds can come later, be changed, or be taken back. Reviewers read it.
"""

from typing import TYPE_CHECKING, Any

from nicegui.element import Element

from ui.components.guarded import guarded
from ui.components.hub import Hub
from ui.components.thread import Rating, Thread
from ui.desk import Desk
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import Feedback, Reason
    from ui.components.chat_view import ChatView

LONGEST_COMMENT = 2000  # characters


def reasons(rating: int, say: Language) -> "dict[Reason, str]":
    """What may be given as a reason for a thumb up (1) or down (-1), in the reader's words."""
    if rating == 1:
        return {"correct": say("Right"), "helpful": say("Helpful"), "clear": say("Well explained")}
    return {
        "incorrect": say("Not correct"),
        "incomplete": say("Not complete"),
        "ignored": say("Not what I asked"),
        "style": say("Language or tone"),
        "harmful": say("Harmful"),
        "other": say("Something else"),
    }


class FeedbackDialog(Element, component="feedback.js"):
    """Emits give {id, rating, reason, comment} and withdraw {id}; opens on the thread's thumbs by itself."""

    def __init__(self, say: Language) -> None:
        super().__init__()
        self._props["texts"] = _texts(say)
        self._props["reasons"] = {"good": list(reasons(1, say).items()), "bad": list(reasons(-1, say).items())}
        self._props["limit"] = LONGEST_COMMENT


class Ratings:
    """Joins one chat page's thumbs to the store, and shows a change on all pages of that conversation."""

    def __init__(self, desk: Desk, hub: Hub, view: "ChatView", thread: Thread, dialog: FeedbackDialog) -> None:
        self._desk, self._hub, self._view, self._thread = desk, hub, view, thread
        self._user_id = view.visitor.user.id
        thread.on("loaded", guarded(desk, view.visitor, self._show))
        dialog.on("give", guarded(desk, view.visitor, self._give))
        dialog.on("withdraw", guarded(desk, view.visitor, self._withdraw))

    async def _show(self, fields: dict[str, Any]) -> None:
        """Mark what has been rated of the conversation that is shown."""
        found = await self._desk.store.feedback.of(self._view.shown.ids)
        own = [given for given in found.values() if given.user_id == self._user_id]
        self._thread.rated([_shown(given) for given in own])

    async def _give(self, fields: dict[str, Any]) -> None:
        id, rating = str(fields.get("id", "")), fields.get("rating")
        if rating != 1 and rating != -1:
            return
        known = reasons(rating, self._view.say)
        reason: Reason = next((code for code in known if code == fields.get("reason")), "")
        comment = str(fields.get("comment", "")).strip()[:LONGEST_COMMENT]
        if await self._desk.store.feedback.set(id, self._user_id, rating, reason=reason, comment=comment):
            self._tell(Rating(id=id, rating=rating, reason=reason, comment=comment))

    async def _withdraw(self, fields: dict[str, Any]) -> None:
        id = str(fields.get("id", ""))
        if await self._desk.store.feedback.remove(id, self._user_id):
            self._tell(Rating(id=id, rating=0, reason="", comment=""))

    def _tell(self, rating: Rating) -> None:
        self._thread.rated([rating])
        for view in self._hub.showing(self._view.shown.id):
            if view is not self._view:
                view.rated(rating)


def _shown(given: "Feedback") -> Rating:
    return Rating(id=given.exchange_id, rating=given.rating, reason=given.reason, comment=given.comment)


def _texts(say: Language) -> dict[str, str]:
    return {
        "goodTitle": say("What was good?"),
        "badTitle": say("What was wrong?"),
        "about": say("Your rating is noted. Those who review answers can read it."),
        "comment": say("Comment, if you like"),
        "save": say("Save"),
        "close": say("Close"),
        "withdraw": say("Take back"),
    }
