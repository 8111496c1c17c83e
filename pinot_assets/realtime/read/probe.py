"""One look at a REALTIME table, for whoever shows or watches it: its state, and the answer of every check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pinot_assets.core.check_result import CheckResult, unknown
from pinot_assets.errors import PinotAssetsError, PinotNotFound
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.health.checks import CHECKS, examine
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.read.deep_store import open_deep_store
from pinot_assets.realtime.read.reading import read_state
from pinot_assets.settings.environment import Settings


@dataclass(frozen=True, slots=True)
class RealtimeView:
    """What was seen.

    :ivar state: None where the table could not be read; the answers then say why.
    :ivar answers: one for each check, in the order of `CHECKS`.
    """

    state: RealtimeState | None
    answers: tuple[CheckResult, ...]


def look(table: str, settings: Callable[[], Settings]) -> RealtimeView:
    """Look at a table once. Never raises for what cannot be reached.

    :param table: with or without `_REALTIME`.
    :param settings: where Pinot is; may itself fail.
    """
    try:
        with RealtimePinot(settings().pinot) as pinot:
            state = read_state(pinot, table, deep_store=open_deep_store(pinot))
    except PinotNotFound as error:
        makes_it = f"`pinot-assets tables apply {table.removesuffix('_REALTIME')}` makes it"
        return blind(error.what, makes_it)
    except PinotAssetsError as error:
        return blind(error.reason, error.hint or "")
    return RealtimeView(state, examine(state))


def blind(reason: str, next_step: str) -> RealtimeView:
    """A look that saw nothing."""
    return RealtimeView(None, tuple(unknown(check.name, reason, next_step) for check in CHECKS))
