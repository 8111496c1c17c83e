"""Pushing what was staged into a table, a batch at a time, each as large as fits into its deadline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pinot_assets.pinot.api import PushMode
from pinot_assets.pinot.push.confirmed import missing
from pinot_assets.session.lineage.batch_sizer import MOST, BatchSizer
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.snapshot.receipt import Output

BATCH = MOST
"""Segments in one upload at the most."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did.

    :ivar segments: how many were uploaded; the others were there already.
    :ivar mode: how, or how it was to be done; None where that is not known yet.
    :ivar fallback: why METADATA push was given up for whole tars, None if it was not.
    :ivar calls: uploads that it took.
    """

    segments: int
    mode: PushMode | None
    fallback: str | None
    calls: int


def push_missing(
    clients: TableClients,
    table: str,
    outputs: Sequence[Output],
    mode: PushMode | None,
    before_write: Callable[[], None],
    before_upload: Callable[[], None],
) -> Pushed:
    """Push what the table does not have yet.

    :param table: raw name.
    :param mode: how tars get into Pinot; None tries.
    :param before_write: called before each batch (rule R2).
    :param before_upload: called before each upload.
    :raises PushRefused: Pinot does not take one, or has another content under its name.
    """
    before_write()  # what a former owner sent has landed by then, or is seen to be under way
    left = missing(clients.pinot, table, outputs)
    pace, fallback = BatchSizer(), None
    pushed = calls = 0
    while left:
        before_write()  # one that slept past its lease goes no further
        batch = pace.next_of(left, BATCH)
        report = clients.pinot.push(
            table, batch, staged=clients.staging, mode=mode, before_upload=before_upload
        )
        pushed, calls, left = pushed + len(report.pushed), calls + report.calls, left[len(batch) :]
        # The first batch finds the mode that works; the others are told.
        mode, fallback = report.mode or mode, fallback or report.fallback
        pace = pace.after(batch, report, clients.waits.pinot_write)
    return Pushed(pushed, mode, fallback, calls)
