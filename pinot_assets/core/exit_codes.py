"""The program's exit codes. docs/cli.md has the meaning of each."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from pinot_assets.errors import (
    ForgetRefused,
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


_REFUSALS = (ForgetRefused, PlanOutdated, PreflightRefused, SnapshotIncomplete, TypedWrong)


def code_of(error: PinotAssetsError) -> ExitCode:
    """Return the exit code for an error that ends the command."""
    return ExitCode.REFUSED if isinstance(error, _REFUSALS) else ExitCode.ERROR


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the exit code of a command that worked on several tables: an error wins over a refusal."""
    met = set(codes)
    return next((code for code in (ExitCode.ERROR, ExitCode.REFUSED) if code in met), ExitCode.DONE)
