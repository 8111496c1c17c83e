"""The user's cache: a folder in it is filled once, whole, and never changes after that."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

from pinot_assets.errors import LocalStackError


def fill_once(folder: Path, fill: Callable[[], None], waits: Callable[[], None]) -> None:
    """Let one process fill a folder of the cache; others wait for it instead of doing the same again.

    :param fill: makes the folder, with a rename when all of it is there. Not called if the folder exists.
    :param waits: called if another process is filling it.
    :raises LocalStackError: the cache cannot be written.
    """
    if folder.is_dir():
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_name(f"{folder.name}.lock").open("w") as lock:
            # The kernel releases the lock when the process ends, in whatever way.
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waits()
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                fill()
    except OSError as error:
        raise LocalStackError(
            f"the cache {folder.parent} could not be written",
            why=str(error),
            hint="free some disk space, or set PINOT_ASSETS_CACHE to a folder with enough space",
        ) from error


def require_room(folder: Path, needed: int, what_for: str, variable: str) -> None:
    """:raises LocalStackError: fewer bytes are free than needed; `variable` can name another disk."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise LocalStackError(
            f"there is too little disk space {what_for}",
            why=f"{free // 10**6} MB are free at {folder}, {needed // 10**6} MB are needed",
            hint=f"free some disk space, or set {variable} to a folder with enough space",
        )
