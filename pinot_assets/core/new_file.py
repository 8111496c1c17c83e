"""Files that commands write for people to edit."""

from __future__ import annotations

import os
from collections.abc import Callable
from errno import EMLINK, ENOTSUP, EPERM
from pathlib import Path
from typing import Final
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
