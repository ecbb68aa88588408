"""Whether requests are taken in, and what those who ask are told where they are not.

Two hands are on it: the service's (loading, failed, going down) and an administrator's (paused, drained). A stall
refuses nobody, since it may pass, but it is told to whoever asks how the server stands. Nobody who is inside is put
out by any of this. Knows nothing of gates, pages or HTTP.
"""

from typing import Literal

from loguru import logger

from engine.backends import Backend
from engine.errors import NotReady
from engine.recording import Recorder
from engine.settings import Settings
from engine.types import Progress

State = Literal["loading", "ready", "stalled", "paused", "draining", "failed"]
Mode = Literal["open", "paused", "draining"]  # what an administrator may set

PAUSED_RETRY_S = 60.0

STATES: dict[str, State] = {  # by the code of what is told to those who ask
    "model_loading": "loading",
    "paused": "paused",
    "draining": "draining",
    "engine_failed": "failed",
    "log_failed": "failed",
}


class Intake:
    def __init__(self, settings: Settings, backend: Backend, recorder: Recorder) -> None:
        self.loading = Progress("starting")
        self.mode: Mode = "open"
        self.note = ""  # an administrator's words for those who are refused
        self.stall = ""  # why the work that is in flight does not move, in one sentence
        self.backend, self._settings, self._recorder = backend, settings, recorder
        self._life: Literal["loading", "ready", "failed", "stopping"] = "loading"
        self.failure = ""  # why there is no model, in one sentence

    # --- for the service ---

    @property
    def is_loading(self) -> bool:
        return self._life == "loading"

    def report(self, progress: Progress) -> None:
        self.loading = progress

    def loaded(self) -> None:
        if self._life == "loading":
            self._life = "ready"

    def load_again(self) -> bool:
        """Another model takes the place of the one there was. False: the server goes down, so leave it."""
        if self._life == "stopping":
            return False
        self._life, self.failure, self.loading = "loading", "", Progress("starting")
        return True

    def fail(self, reason: str, error: BaseException | None = None) -> None:
        """The model could not be loaded; one that was stopped while it loaded is no failure."""
        if self._life == "loading":
            logger.opt(exception=error).error("{}", reason)
            self._life, self.failure = "failed", reason

    def close(self) -> None:
        """The server goes down; there is no way back."""
        self._life = "stopping"

    # --- for administrators ---

    def steer(self, mode: Mode, note: str = "") -> None:
        """Take requests in again, or refuse what is new with these words."""
        self.mode, self.note = mode, note

    # --- for those who ask ---

    def state(self, inside: int) -> tuple[State, str]:
        """Where the server stands while `inside` requests run and wait, and the reason where it is not ready."""
        if trouble := self.trouble():
            drained = trouble.code == "draining" and self._life != "stopping" and not inside
            return STATES[trouble.code], "The server is drained: nothing runs or waits." if drained else str(trouble)
        return ("stalled", self.stall) if self.stall else ("ready", "")

    def check(self) -> None:
        """Raise what `trouble` tells."""
        if trouble := self.trouble():
            raise trouble

    def trouble(self) -> NotReady | None:
        """What a request would be refused with now, whatever it asks."""
        match self._life:
            case "loading":
                reason = f"The model is loading ({self.loading.stage})."
                return NotReady(reason, code="model_loading", retry_after_s=5)
            case "stopping":
                reason = "The server is going down; it takes no new requests."
                return NotReady(reason, code="draining", retry_after_s=self._settings.drain_s)
        if reason := self.failure or self.backend.health() or "":
            return NotReady(reason, code="engine_failed")
        if self._settings.on_log_failure == "refuse" and (reason := self._recorder.health() or ""):
            return NotReady(f"The log cannot be written, so nothing is answered: {reason}", code="log_failed")
        return self._steered()

    def _steered(self) -> NotReady | None:
        match self.mode:
            case "paused":
                reason = self.note or "An administrator has paused the server; it takes no new requests."
                return NotReady(reason, code="paused", note=self.note, retry_after_s=PAUSED_RETRY_S)
            case "draining":
                reason = self.note or "The server finishes what it has and takes no new requests."
                return NotReady(reason, code="draining", note=self.note, retry_after_s=PAUSED_RETRY_S)
        return None
