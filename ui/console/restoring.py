"""`restore`: a copy takes the database's place, by our own hand or, where a server runs, by the server's.

The copy is checked, and brought to this version's schema, before anybody is disturbed. Ctrl-C and every refusal leave
the database as it was.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import Timeout

from engine.settings import Settings
from ui.console.opened import Refused
from ui.handover import Busy, Handover, Said, undisturbed
from ui.starting import Claim

if TYPE_CHECKING:
    from storage import Store

LOOK_S = 0.2
TAKEN_UP_S = 15.0  # a server looks about once a second
ENDS_S = 45.0  # beyond the time that answers have: an engine, connections and the writer that do not end
STARTS_S = 120.0

UNCHANGED = "The database is as it was."
IGNORED = f"Another Qdesk has the data folder and takes no copy. End it, and restore again. {UNCHANGED}"
LATE = f"The server does not come to its end. {UNCHANGED}"
PLACED = "The copy is in its place, but the server is not back; look into its log, and start it."
TOO_LATE = "The copy is in its place already, or just being put there, so the restore cannot be withdrawn any more."
WITHDRAWN = f"The restore is withdrawn. {UNCHANGED}"
WINDOWS = "On Windows a server cannot begin anew in its place: end it, and restore again."

Counted = Callable[[str], Callable[[int, int], None]]


def restore(source: Path, settings: Settings, store: "Store", counted: Counted) -> str:
    """Put the copy in place, and return where the database before is kept, if there was one. Raises Refused."""
    handover = Handover(settings.data_dir)
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        with handover.waiting():
            try:
                store.stage(source, counted("copying back"), counted("migrating"))
                return Restoring(settings, store, handover).done()
            except (KeyboardInterrupt, SystemExit) as ended:  # as main.py lets a signal end a command
                said = handover.said()
                in_time = store.withdraw() or said is None or said.step == "refused"
                raise Refused(WITHDRAWN if in_time else TOO_LATE) from ended
            finally:
                store.withdraw()
    except Busy as busy:
        raise Refused("Another restore is under way; wait for its end.") from busy
    except OSError as error:
        raise Refused(f"The data folder {settings.data_dir} cannot be used: {error.strerror}.") from error


class Restoring:
    """A copy that is staged, until it is in its place and in use."""

    def __init__(self, settings: Settings, store: "Store", handover: Handover) -> None:
        self._settings = settings
        self._store = store
        self._handover = handover
        self._seen: Said | None = None
        self._until_s = 0.0

    def done(self) -> str:
        """Wait for whoever has the data folder, a server or we ourselves, and return where the old one is kept."""
        self._handover.forget()  # what was said while the copy was made was said to another shell
        claim = Claim(self._settings.data_dir)
        while True:
            try:
                claim.acquire()
            except Timeout:
                if (said := self._handover.said()) and said.step == "serving":
                    return said.about
                self._go_on(said)
                time.sleep(LOOK_S)
                continue
            try:
                return self._by_ourselves()
            finally:
                claim.release()

    def _by_ourselves(self) -> str:
        """Nobody runs here, or nobody any more."""
        said = self._handover.said()
        if said and said.step == "refused":
            raise Refused(f"{said.about} {UNCHANGED}")
        if not self._store.is_staged():  # the server took it, or withdrew it without a word, and ended then
            raise Refused(PLACED if said else IGNORED)
        self._store.give_up_log()
        with undisturbed():
            return str(self._store.put_in_place() or "")

    def _go_on(self, said: Said | None) -> None:
        """Ask the server, say how far it is, and refuse to wait for ever."""
        if said is None and self._seen:  # a server has cleared it away: it does not see that somebody waits
            raise Refused(IGNORED)
        if said is None:
            if sys.platform == "win32":
                raise Refused(WINDOWS)
            self._handover.tell("asked")
            self._wait_for(Said("asked"), TAKEN_UP_S, "The copy is good. The server is asked to take it.")
            return
        if said.step == "refused":
            raise Refused(f"{said.about} {UNCHANGED}")
        if said != self._seen and said.step == "ending":
            told = f"The server lets answers finish, for {said.about} s at most. Ctrl-C withdraws the restore."
            self._wait_for(said, float(said.about) + ENDS_S, told)
        elif said != self._seen and said.step == "placed":
            self._wait_for(said, STARTS_S, "The copy is in its place. The server begins anew.")
        elif time.monotonic() > self._until_s:
            self._give_up(said)

    def _wait_for(self, said: Said, seconds: float, told: str) -> None:
        self._seen, self._until_s = said, time.monotonic() + seconds
        print(told, file=sys.stderr, flush=True)

    def _give_up(self, said: Said) -> None:
        if said.step == "placed":
            raise Refused(PLACED)
        if self._store.withdraw():  # else it is being put there at this moment
            raise Refused(IGNORED if said.step == "asked" else LATE)
        self._until_s = time.monotonic() + STARTS_S
