"""Commands of the machine that a drill runs."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from typing import Final

from pinot_assets.core.machine import run_child
from pinot_assets.errors import PinotAssetsError

COMMAND_S: Final = 300.0


def runs(command: str) -> Callable[[], None]:
    """A function that runs the command, without a shell, and raises `PinotAssetsError` when that fails.

    Looked at here already: a store is not to be broken that no command then mends.

    :raises PinotAssetsError: it is no command, or there is none of that name.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise PinotAssetsError("a command of the drill cannot be read", why=str(error)) from None
    if not words:
        raise PinotAssetsError("an empty command cannot break or mend a deep store")
    if shutil.which(words[0]) is None:
        raise PinotAssetsError(
            f"there is no command {words[0]}", hint="a command line of a shell is written sh -c '…'"
        )

    def run() -> None:
        try:
            run_child(words, stdout=None, stderr=None, timeout=COMMAND_S).check_returncode()
        except (OSError, subprocess.SubprocessError) as error:
            # Their own words repeat the whole command, and what is secret in it.
            raise PinotAssetsError(f"the command {words[0]} failed", why=_reason(error)) from None

    return run


def _reason(error: OSError | subprocess.SubprocessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit status {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it was not over after {COMMAND_S:.0f} s"
    return getattr(error, "strerror", None) or type(error).__name__
