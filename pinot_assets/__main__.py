"""`python -m pinot_assets`, and what `pinot-assets` runs."""

from __future__ import annotations

import os
import signal
import sys

from pinot_assets.core.interrupts import SAID, end_at_once_from_now_on, received, take_signals


def main() -> None:
    """Entry point.

    :raises SystemExit: always, but where it was interrupted: then the process ends here, and what other
        threads still wait for is not waited for.
    """
    take_signals()
    try:
        # Here: loading takes a second, in which somebody may think better of it.
        from pinot_assets.cli.main import main as run

        run()
    except KeyboardInterrupt:  # outside of any command
        print(SAID, file=sys.stderr)  # noqa: T201  # it may be that nothing else is loaded
        _leave(128 + (received() or signal.SIGINT))
    except SystemExit as end:
        if received() is not None and isinstance(end.code, int):
            _leave(end.code)
        raise
    finally:
        end_at_once_from_now_on()


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
