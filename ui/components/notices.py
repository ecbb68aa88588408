"""Saying that an answer is ready to somebody who looks elsewhere: in the tab's title, and if wished as a notification.

Whether the tab is hidden, and whether this person wants notifications in it, is known to the browser alone.
"""

from nicegui.element import Element

from engine.job import Job
from engine.types import Status
from ui.i18n import Language

LONG_S = 10.0  # answers that took less bring no notification
TELLING = {Status.DONE, Status.FAILED, Status.TIMED_OUT}  # ends that the person did not bring about


class Notices(Element, component="notices.js"):
    """On the chat page: tells the browser of every answer that has ended, whichever conversation is shown."""

    def __init__(self, say: Language, person: str) -> None:
        super().__init__()
        self._props["person"] = person
        self._props["texts"] = {"ready": say("Answer ready"), "failed": say("Your question was not answered")}

    def ended(self, job: Job) -> None:
        if job.status in TELLING:
            self.run_method("ended", told(job))


def told(job: Job) -> dict[str, object]:
    """What the browser needs to know of a job that has ended."""
    return {
        "id": job.id,
        "question": " ".join(job.request.prompt.split())[:100],
        "done": job.status is Status.DONE,
        "long": (job.finished_s or 0.0) >= LONG_S,
    }


class NotificationSwitch(Element, component="notification_switch.js"):
    """On the account page: whether this browser may notify. Asked by a click, remembered in the browser."""

    def __init__(self, say: Language, person: str) -> None:
        super().__init__()
        self._props["person"] = person
        self._props["texts"] = {
            "label": say("Notify me in this browser when a long answer is ready and the tab is hidden"),
            "denied": say("This browser does not allow it. Change that in the browser's settings for this site."),
            "missing": say("This browser offers no notifications at this address."),
        }
