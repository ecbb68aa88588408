"""A program's job ends when the program loses the right to ask, also while it streams."""

from nicegui import background_tasks

from engine.errors import AccessEnded
from engine.job import Job
from engine.types import Status
from ui.auth import Auth, Caller
from ui.desk import Desk
from ui.keys import Forget

KEY_REVOKED = "The API key of this request was revoked, so the answer has ended here."
SESSION_OVER = "The session of this request has ended, and the answer with it."
DISABLED = "The account of this request was disabled, so the answer has ended here."


def end_with_access(desk: Desk, caller: Caller, job: Job) -> None:
    """End the job as soon as this caller may ask no more."""

    def end(sentence: str) -> None:
        desk.service.end(job, Status.CANCELLED, AccessEnded(sentence))

    if forget := _watch(desk.auth, caller, lambda: end(KEY_REVOKED), lambda: end(SESSION_OVER)):
        background_tasks.create(_until_closed(job, forget), name=f"access of {job.id}")


def _watch(auth: Auth, caller: Caller, on_key: Forget, on_session: Forget) -> Forget | None:
    if caller.key_id and caller.person:
        return auth.keys.on_revoked(caller.key_id, caller.person, on_key)
    return auth.on_revoked(caller.session_id, on_session) if caller.session_id else None


async def _until_closed(job: Job, forget: Forget) -> None:
    await job.closed()
    forget()
