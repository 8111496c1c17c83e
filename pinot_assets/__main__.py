"""`python -m pinot_assets`, and what `pinot-assets` runs."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress

from pinot_assets.core.interrupts import SAID, end_at_once_from_now_on, received, take_signals


def main() -> None:
    """Run the command line.

    :raises SystemExit: always, unless a signal interrupted the command. Then this function ends the process
        and does not wait for other threads.
    """
    take_signals()
    gc.disable()  # until the command is imported (`cli.program`): what is imported stays
    try:
        if sys.argv[1:] == ["--version"]:
            _show_version()
        # Imported inside `try`: the import takes a while, in which the user may press Ctrl-C.
        from pinot_assets.cli.main import main as run

        run()
    except KeyboardInterrupt:  # outside of any command
        print(SAID, file=sys.stderr)  # noqa: T201  # the import may have been interrupted
        _leave(128 + (received() or signal.SIGINT))
    except SystemExit as end:
        if received() is not None and isinstance(end.code, int):
            _leave(end.code)
        raise
    finally:
        end_at_once_from_now_on()


def _show_version() -> None:
    """Answer before typer is imported; the program itself reports an output that takes nothing.

    :raises SystemExit: the answer is printed.
    """
    from pinot_assets.cli.version import version_line

    with suppress(OSError):
        sys.stdout.write(f"{version_line()}\n")
        sys.stdout.flush()
        sys.exit(0)


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
