"""A demo as a program: where its stack lives, how wide its lines are, and what it exits with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from pinot_assets.core.interrupts import SAID, end_at_once_from_now_on, take_signals
from pinot_assets.errors import PinotAssetsError


def told(name: str, tell: Callable[[Path, Console], bool], console: Console) -> int:
    """Tell a story on a stack of its own in `.pinot-assets/<name>`.

    :param tell: returns whether all was as it must be.
    :returns: the exit code: 0 if it was, 130 after Ctrl-C, which leaves nothing running either.
    """
    take_signals()
    try:
        return 0 if tell((Path(".pinot-assets") / name).resolve(), console) else 1
    except PinotAssetsError as error:
        console.print(f"[red]error[/]: {error}", highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print(SAID)
        return 130
    finally:
        end_at_once_from_now_on()
