"""Files that commands write for people, and temporary folders of this project.

Only this user can read a temporary folder. It is removed afterwards; after a kill, when the next one is made.
`mkdtemp` makes it, so its name cannot be predicted. Its owner holds a lock on a file in it, and a folder
whose lock is free is removed. A process id would not do as owner: containers that share a folder for
temporary files do not see each other's processes.
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
"""Error numbers of file systems without hard links."""


def write_new(target: Path, text: str, look: Callable[[Path], None] = lambda _: None) -> None:
    """Write a new file, completely or not at all; create its folders.

    It gets its name only when it is complete, because half a table spec would be a table that is left out. A
    process that is killed meanwhile leaves a hidden file next to it, which nothing reads.

    :param look: called with the file before it gets its name; if it raises, there is no file.
    :raises FileExistsError: the file exists; it stays as it is.
    :raises OSError: it cannot be written; then there is no file.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        raise FileExistsError(f"{target} exists already")
    half = target.with_name(f".{uuid4().hex}.tmp")
    try:
        with half.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        look(half)
        _name(half, target)
    finally:  # also after Ctrl-C
        half.unlink(missing_ok=True)


def _name(half: Path, target: Path) -> None:
    """Name the file with a hard link: unlike a rename, it cannot overwrite a file of somebody else."""
    try:
        target.hardlink_to(half)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        half.rename(target)


PREFIX: Final = "pinot-assets-"

_LOCK: Final = "lock"
_UNLOCKED_S: Final = 24 * 3600
"""A folder without a lock counts as left after so long: its maker died just before it took the lock."""


@contextmanager
def temporary_folder(kind: str, among: Path | None = None) -> Iterator[Path]:
    """Yield a temporary folder, and remove it afterwards.

    :param kind: part of its name: `pinot-assets-<kind>-…`.
    :param among: the folder to make it in; None: the system's folder for temporary files.
    """
    folder, lock = locked_folder(kind, among)
    with lock:
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def locked_folder(kind: str, among: Path | None = None) -> tuple[Path, BinaryIO]:
    """Return a folder and its open lock. Once the lock is closed, the next call removes the folder."""
    among = among or Path(tempfile.gettempdir())
    for left in among.glob(f"{PREFIX}*"):
        _remove_if_dead(left)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-", dir=among))
    lock = (folder / "unlocked").open("wb")
    fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "unlocked").rename(folder / _LOCK)  # so this name exists only with the lock held
    return folder, lock


def _remove_if_dead(folder: Path) -> None:
    # A folder that looks different belongs to somebody else, is in use, or is already gone: leave it.
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


_LOGS: Final = 20
"""How many log files of one kind are kept."""


def new_log(kind: str) -> Path | None:
    """Return the path of a new log file, and remove old ones; None if this user has no folder for logs.

    The folder is `pinot-assets` in `$XDG_STATE_HOME`, by default `~/.local/state` (XDG Base Directory).
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    folder = Path(state) / "pinot-assets"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in sorted(folder.glob(f"{kind}-*.log"))[: 1 - _LOGS]:
            old.unlink(missing_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    return folder / f"{kind}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.log"
