"""`python -m pinot_assets`, and what `pinot-assets` runs."""

from __future__ import annotations

import os
import sys

from pinot_assets.interrupts import SAID, end_at_once_from_now_on, received, take_signals


def main() -> None:
    """Entry point. Loading the program takes a second, in which somebody may think better of it."""
    take_signals()
    try:
        from pinot_assets.cli import main as run
    except KeyboardInterrupt:
        print(SAID, file=sys.stderr)  # noqa: T201  # nothing else is loaded yet
        sys.exit(130)
    try:
        run()
    except SystemExit as end:
        if received() is not None and isinstance(end.code, int):
            sys.stdout.flush()
            os._exit(end.code)  # what other threads still wait for is not waited for
        raise
    finally:
        end_at_once_from_now_on()


if __name__ == "__main__":
    main()
