"""`python -m demos [audit | evolve | pack | realtime]`: run the demo of `make demo`, `audit-demo`, ….

`--pinot RELEASE` runs it on that release of Pinot, as `pinot-assets local up --pinot` starts it.
"""

from __future__ import annotations

import argparse
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
    "pack": "pack-demo",
    "realtime": "realtime-demo",
}
"""The folder of each demo's stack, below `.pinot-assets`; each demo is a module with a function `tell`."""


def main() -> int:
    """Run a demo on its own stack.

    :returns: the exit code: 0 if the demo showed what it promises, 1 if not or after an error, 130 after
        Ctrl-C, after which nothing keeps running, either.
    """
    words = argparse.ArgumentParser(prog="python -m demos")
    words.add_argument("demo", nargs="?", choices=FOLDERS, default="story")
    words.add_argument("--pinot", metavar="RELEASE", help="a release of Apache Pinot, such as 1.5.1")
    typed = words.parse_args()
    name: str = typed.demo
    if typed.pinot and name == "realtime":
        words.error("its table names the Kafka plug-in of 0.11.0, so this demo has no --pinot")
    # A log has no width. This one has room for the table at the end.
    console = Terminal(width=None if sys.stdout.isatty() else 120, soft_wrap=name == "realtime")
    take_signals()
    try:
        folder = Path(".pinot-assets", FOLDERS[name]).resolve()
        chosen = {"release": typed.pinot} if typed.pinot else {}
        return 0 if import_module(f"demos.{name}").tell(folder, console, **chosen) else 1
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
