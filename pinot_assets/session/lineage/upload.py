"""The upload of what was staged into a table, a batch at a time, each as large as fits into its deadline."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pinot_assets.pinot.api import PushMode, PushReport
from pinot_assets.pinot.push.upload_loop import missing
from pinot_assets.session.lineage.batch_sizer import BatchSizer
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.snapshot.receipt import Output


def push_missing(
    clients: TableClients,
    table: str,
    outputs: Sequence[Output],
    mode: PushMode | None,
    before_write: Callable[[], None],
    before_upload: Callable[[], None],
) -> PushReport:
    """Push what the table does not have yet.

    :param table: raw name.
    :param mode: how tars get into Pinot; None tries.
    :param before_write: called before each batch (rule R2).
    :param before_upload: called before each upload.
    :returns: what was uploaded; its mode is the one asked for as long as none is found out.
    :raises PushRefused: Pinot does not take one, or has another content under its name.
    """
    before_write()  # what a former owner sent has landed by then, or is seen to be under way
    left = missing(clients.pinot, table, outputs)
    report, sizer = PushReport((), (), mode, None, 0, 0.0), BatchSizer()
    while left:
        before_write()  # one that slept past its lease goes no further
        batch = sizer.next_of(left)
        # The first batch finds the mode that works; the others are told.
        uploaded = clients.pinot.push(
            table, batch, staged=clients.staging, mode=report.mode, before_upload=before_upload
        )
        sizer = sizer.after(batch, uploaded, clients.waits.pinot_write)
        report, left = report.then(uploaded), left[len(batch) :]
    return report
