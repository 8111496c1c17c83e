"""`python -m demos [audit | evolve | realtime]`: run the demo of `make demo`, `audit-demo`, …."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from pinot_assets.cli.terminal import Terminal
from pinot_assets.core.interrupts import SAID, end_at_once_from_now_on, take_signals
from pinot_assets.errors import PinotAssetsError

FOLDERS = {
    "story": "demo",
    "audit": "audit-demo",
    "evolve": "evolve-demo",
    "realtime": "realtime-demo",
}
"""The folder of each demo's stack, below `.pinot-assets`; each demo is a module with a function `tell`."""


def main() -> int:
    """Run a demo on its own stack.

    :returns: the exit code: 0 if the demo showed what it promises, 1 if not or after an error, 130 after
        Ctrl-C, after which nothing keeps running, either.
    """
    name = sys.argv[1] if len(sys.argv) > 1 else "story"
    if name not in FOLDERS:
        sys.exit(f"there is no demo {name!r}; there are {', '.join(FOLDERS)}")
    # A log has no width. This one has room for the table at the end.
    console = Terminal(width=None if sys.stdout.isatty() else 120, soft_wrap=name == "realtime")
    take_signals()
    try:
        folder = Path(".pinot-assets", FOLDERS[name]).resolve()
        return 0 if import_module(f"demos.{name}").tell(folder, console) else 1
    except PinotAssetsError as error:
        console.print(f"[red]error[/]: {error}", highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print(SAID)
        return 130
    finally:
        end_at_once_from_now_on()


if __name__ == "__main__":
    sys.exit(main())
