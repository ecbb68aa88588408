"""How a shell and the running server come to an understanding about a restore: two files in the data folder.

One says how far it is; the other is locked by the shell for as long as it lives and waits. So they find each other from
other containers and as other users of the same folder, and what a dead shell has asked for is never done later.
Knows no database.
"""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from engine.new_file import give_to_the_folders_owner, new_file

SAID_FILE, WAITING_FILE = "qdesk.restore", "qdesk.restore.lock"
LOOKING_S = 3.0  # longer than a server looks whether anybody is there

# asked: by a shell. ending: the server lets answers finish. placed: the copy is the database now, and the server begins
# anew. serving: it is back, with the copy. refused: it goes on, or has ended, with the database as it was.
Step = Literal["asked", "ending", "placed", "serving", "refused"]


class Busy(Exception):
    """Another shell restores at this moment."""


@dataclass(frozen=True, slots=True)
class Said:
    step: Step
    about: str = ""  # ending: the seconds that answers have; placed, serving: where the old one is; refused: why


class Handover:
    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir
        self._file = data_dir / SAID_FILE
        self._waiting = data_dir / WAITING_FILE

    def said(self) -> Said | None:
        try:
            return Said(**json.loads(self._file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def tell(self, step: Step, about: str = "") -> None:
        fresh = self._file.with_name(f"{SAID_FILE}.{step}")
        fresh.unlink(missing_ok=True)
        with open(new_file(fresh, owner_of=self._folder), "w", encoding="utf-8") as file:
            json.dump(asdict(Said(step, about)), file)
        os.replace(fresh, self._file)

    def forget(self) -> None:
        self._file.unlink(missing_ok=True)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Be there for the server's word; for the shell. Raises Busy where another one is."""
        lock = FileLock(self._waiting, timeout=LOOKING_S, mode=0o600)
        try:
            lock.acquire()
        except Timeout as taken:
            raise Busy from taken
        try:
            give_to_the_folders_owner(self._waiting)
            self.forget()
            yield
        finally:
            self.forget()
            lock.release()

    # --- for the server ---

    def is_waited_for(self, otherwise: Callable[[], None] = lambda: None) -> bool:
        """Whether the shell that has asked is there yet. `otherwise` is done while no other can come."""
        lock = FileLock(self._waiting, timeout=0, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            return True
        except OSError:  # it is not to be known, so nothing is done
            return False
        try:
            otherwise()
        finally:
            lock.release()
        return False

    def is_asked(self, is_staged: Callable[[], bool], unstage: Callable[[], None]) -> bool:
        """Whether somebody waits for the server to take a copy. What somebody left who is gone is cleared away."""
        said = self.said()
        if said is None or said.step != "asked":
            return False
        return self.is_waited_for(lambda: self._clear(unstage)) and is_staged()

    def settle(self, is_staged: Callable[[], bool], unstage: Callable[[], None]) -> None:
        """After a start: say that it is done, or take up again what was interrupted if somebody still waits for it."""
        if not self._waiting.exists():  # nobody has ever restored here
            return
        said = self.said()
        if not self.is_waited_for(lambda: self._clear(unstage)) or said is None:
            return
        if said.step == "ending" and is_staged():
            self.tell("asked")
        elif said.step in ("ending", "placed"):
            self.tell("serving", said.about if said.step == "placed" else "")

    def _clear(self, unstage: Callable[[], None]) -> None:
        unstage()
        self.forget()


@contextmanager
def undisturbed() -> Iterator[list[int]]:
    """Signals that end a process wait for what must not be left half done, or untold; yields those that came."""
    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda which, _: came.append(which)) for number in numbers}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
