"""Files that commands write for people to edit."""

from __future__ import annotations

from pathlib import Path


def write_new(target: Path, text: str) -> None:
    """Write a file that is not there yet, whole or not at all; its folders are made.

    :raises FileExistsError: it is there; it stays as it is.
    :raises OSError: it cannot be written; then there is none.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("x", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
        except BaseException:  # Ctrl-C, too: half a table spec would keep every table from being loaded
            target.unlink(missing_ok=True)
            raise
