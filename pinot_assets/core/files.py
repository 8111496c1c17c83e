"""Files that commands write for people to edit, and temporary folders of this project.

A temporary folder is of this user alone, gone afterwards, and after a kill with the next one. Each is made by
`mkdtemp`, so that its name cannot be foreseen. Its owner holds a lock on a file in it: a process id would not
do, since containers that share a folder of temporary files do not see each other's processes. Whoever makes a
folder removes those that nobody holds any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EMLINK, ENOTSUP, EPERM
from pathlib import Path
from typing import BinaryIO, Final
from uuid import uuid4

_NO_LINKS: Final = frozenset((EPERM, ENOTSUP, EMLINK))
"""What file systems without hard links answer."""


def write_new(target: Path, text: str, look: Callable[[Path], None] = lambda _: None) -> None:
    """Write a file that is not there yet, whole or not at all; its folders are made.

    It gets its name when it is whole: half a table spec would be a table that is left out. A process that is
    killed on the way leaves a hidden file beside it, which nothing reads.

    :param look: is shown the file before it gets its name; where that raises, there is none.
    :raises FileExistsError: it is there; it stays as it is.
    :raises OSError: it cannot be written; then there is none.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        raise FileExistsError(f"{target} is there already")
    half = target.with_name(f".{uuid4().hex}.tmp")
    try:
        with half.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        look(half)
        _name(half, target)
    finally:  # after Ctrl-C, too
        half.unlink(missing_ok=True)


def _name(half: Path, target: Path) -> None:
    """Unlike a rename, a link takes no name that somebody else gave a file meanwhile."""
    try:
        target.hardlink_to(half)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        half.rename(target)


PREFIX: Final = "pinot-assets-"

_LOCK: Final = "lock"
_UNLOCKED_S: Final = 24 * 3600
"""After which a folder without a lock counts as left: its maker died in the instant before it took one."""


@contextmanager
def temporary_folder(kind: str, among: Path | None = None) -> Iterator[Path]:
    """A folder that is gone afterwards.

    :param kind: stands in its name: `pinot-assets-<kind>-…`.
    :param among: the folder that it is made in; the system's for temporary files when None.
    """
    folder, lock = locked_folder(kind, among)
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def locked_folder(kind: str, among: Path | None = None) -> tuple[Path, BinaryIO]:
    """A folder for as long as the lock that comes with it is open; whoever makes the next one removes it."""
    among = among or Path(tempfile.gettempdir())
    for left in among.glob(f"{PREFIX}*"):
        _remove_if_dead(left)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-", dir=among))
    lock = (folder / "unlocked").open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "unlocked").rename(folder / _LOCK)  # never there without being held
    return folder, lock


def _remove_if_dead(folder: Path) -> None:
    # Whatever is not as it should be is another's, at work, or gone meanwhile: it stays.
    with suppress(OSError):
        info = folder.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            return
        try:
            lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            names = {entry.name for entry in folder.iterdir()}
            if names <= {"unlocked"} and time.time() - info.st_mtime > _UNLOCKED_S:
                shutil.rmtree(folder, ignore_errors=True)
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
