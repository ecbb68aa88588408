"""What can go wrong with a request, in one small tree. Every error has a code for programs and a sentence for people.

Knows nothing of HTTP: `ui/api/errors.py` alone maps these to status codes.
"""

from typing import Literal


class EngineError(Exception):
    """A request could not be answered. `str(error)` may be shown to the person who asked."""

    code = "engine_error"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class QueueFull(EngineError):
    """Every place, running and waiting, is taken: of the gate, or of every other server that answers for this one."""

    code = "queue_full"


BUSY_ELSEWHERE = "The other server is busy; try again later."  # a QueueFull of an exchange that is in the log already


class UserLimit(EngineError):
    """This person has as many requests running and waiting as one person may have."""

    code = "user_limit"


class NotReady(EngineError):
    """No request can be taken now; `code` says why."""

    def __init__(
        self,
        message: str,
        *,
        code: Literal["model_loading", "engine_failed", "paused", "draining", "log_failed"],
        note: str = "",
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.code, self.note = code, note  # the note is an administrator's own words, if there are any


class InvalidRequest(EngineError):
    """The request itself is wrong; `param` names the part."""

    code = "invalid_request"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class ContextOverflow(InvalidRequest):
    """The prompt leaves no room for an answer."""

    code = "context_length_exceeded"

    def __init__(self, prompt_tokens: int, limit: int) -> None:
        super().__init__(
            f"The prompt has {prompt_tokens} tokens, and this model's context holds {limit}; shorten it.",
            param="messages",
        )
        self.prompt_tokens, self.limit = prompt_tokens, limit


class AccessEnded(EngineError):
    """Whoever asked lost the right to: the key was revoked, the session ended, or the account was disabled."""

    code = "access_ended"


class EndedByAdministrator(EngineError):
    """An administrator ended the request, which was somebody else's."""

    code = "ended_by_administrator"

    def __init__(self) -> None:
        super().__init__("An administrator ended this request.")


class BackendFailed(EngineError):
    """The backend failed while it worked on this request."""
