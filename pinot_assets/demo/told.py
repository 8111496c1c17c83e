"""A demo as a program: where its stack lives, how wide its lines are, and what it exits with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from pinot_assets.errors import PinotAssetsError


def told(name: str, tell: Callable[[Path, Console], bool], console: Console) -> int:
    """Tell a story on a stack of its own in `.pinot-assets/<name>`.

    :param tell: returns whether all was as it must be.
    :returns: the exit code: 0 if it was.
    """
    try:
        return 0 if tell((Path(".pinot-assets") / name).resolve(), console) else 1
    except PinotAssetsError as error:
        console.print(f"[red]error[/]: {error}", highlight=False, soft_wrap=True)
        return 1
