"""All health checks of a REALTIME table, and a look at a table: its state and the result of each check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pinot_assets.core.check_result import CheckResult, unknown
from pinot_assets.errors import PinotAssetsError, PinotNotFound
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.health import consuming, copies, serving
from pinot_assets.realtime.health.check import RealtimeCheck
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.read.reading import open_deep_store, read_state
from pinot_assets.settings.environment import Settings

CHECKS: Final[tuple[RealtimeCheck, ...]] = (
    consuming.segment_status,
    consuming.next_segment,
    consuming.committing_list,
    copies.download_urls,
    copies.only_copies,
    copies.replicas,
    copies.error_segments,
    copies.replicas_not_moved,
    consuming.consumption,
    consuming.consumption_lag,
    serving.answers,
    serving.new_segments_on_dead_servers,
    serving.servers,
    serving.tmp_uploads,
)
"""In the order in which a dashboard shows them."""


def examine_state(state: RealtimeState) -> tuple[CheckResult, ...]:
    """Return the result of every check, in the order of `CHECKS`. Never raises."""
    return tuple(check(state) for check in CHECKS)


@dataclass(frozen=True, slots=True)
class RealtimeView:
    """The result of one look at a table.

    :ivar state: None where the table could not be read; the answers then give the reason.
    :ivar answers: one result for each check, in the order of `CHECKS`.
    """

    state: RealtimeState | None
    answers: tuple[CheckResult, ...]


def view_of(table: str, settings: Callable[[], Settings]) -> RealtimeView:
    """Look at a table once. Never raises for something that cannot be reached.

    :param table: with or without `_REALTIME`.
    :param settings: returns where Pinot is; may itself raise a PinotAssetsError.
    """
    try:
        with RealtimePinot(settings().pinot) as pinot:
            state = read_state(pinot, table, deep_store=open_deep_store(pinot))
    except PinotNotFound as error:
        return blind(error.what, f"`pinot-assets tables apply {table.removesuffix('_REALTIME')}` makes it")
    except PinotAssetsError as error:
        return blind(error.reason, error.hint or "")
    return RealtimeView(state, examine_state(state))


def blind(reason: str, next_step: str) -> RealtimeView:
    """Return the result of a look that could read nothing."""
    return RealtimeView(None, tuple(unknown(check.name, reason, next_step) for check in CHECKS))
