"""Files for one account alone: what root makes for a server that runs as somebody else is given away.

By its descriptor, and no link is followed: the folder may be that account's, which can plant one under any name.
"""

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path


def new_file(path: Path, *, owner_of: Path | None = None) -> int:
    """Make a file, and return a descriptor to write by. Raises FileExistsError, for a link too.

    `owner_of`: root gives it to whoever has that file or folder.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    if owner_of:
        _give(descriptor, owner_of)
    return descriptor


def give_to_the_folders_owner(path: Path) -> None:
    """For what another library has made, such as a lock."""
    if sys.platform != "win32" and os.geteuid() == 0:
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                about = os.fstat(descriptor)
                if stat.S_ISREG(about.st_mode) and about.st_nlink == 1:  # else it is another file by its second name
                    _give(descriptor, path.parent)
            finally:
                os.close(descriptor)


def _give(descriptor: int, owner_of: Path) -> None:
    if sys.platform != "win32" and os.geteuid() == 0:
        with suppress(OSError):  # no such right here; whoever cannot open the file then says so
            owner = owner_of.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
