"""What the program's exit codes mean. docs/cli.md shows this table."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from pinot_assets.errors import (
    PinotAssetsError,
    PlanOutdated,
    PreflightRefused,
    SnapshotIncomplete,
    TypedWrong,
)


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    ERROR = 1
    REFUSED = 2
    INTERRUPTED = 130
    TERMINATED = 143


_REFUSALS = (PlanOutdated, PreflightRefused, SnapshotIncomplete, TypedWrong)

MEANINGS = {
    ExitCode.DONE: "Done, or there was nothing to do.",
    ExitCode.ERROR: "An error: what, why and a hint stand on standard error. Running it again is safe. "
    "Also: the answer is no (`doctor` or `tables validate` found problems, a question was answered so), or "
    "one of several tables was left out; the others are done.",
    ExitCode.REFUSED: "Not done, or not all of it, for a reason that the command tells: files failed, the "
    "gate stayed shut, a check failed, a guard refused. Also: the command was typed wrong.",
    ExitCode.INTERRUPTED: "Ctrl-C. What was done so far is stored; run it again to go on.",
    ExitCode.TERMINATED: "As 130, by SIGTERM.",
}


def code_of(error: PinotAssetsError) -> ExitCode:
    """The exit code for an error that nobody took care of."""
    return ExitCode.REFUSED if isinstance(error, _REFUSALS) else ExitCode.ERROR


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """What a command ends with that worked on several tables: an error counts before a refusal."""
    met = set(codes)
    return next((code for code in (ExitCode.ERROR, ExitCode.REFUSED) if code in met), ExitCode.DONE)
