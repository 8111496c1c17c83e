"""The upload of what was staged into a table, a batch at a time, each as large as fits into its deadline.

The lease fences ZooKeeper, not Pinot: what an owner sent just before it lost its lease has to be over before
the next one writes (rule R2). So a batch is as large as goes out in a part of that time, as measured on the
batch before. The first one is a single segment. What is left goes in batches of one size: a call costs
much even for a few segments, so a small remainder would be dear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pinot_assets.pinot.api import PushMode, PushReport
from pinot_assets.pinot.push.confirmed import missing
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.snapshot.receipt import Output

MOST = 500
"""Beyond that a batch saves nothing more: 7 ms a segment, and no write of the ideal state (measured)."""

SHARE = 0.25
"""Part of the deadline that a batch should take: a store may get slower from one batch to the next."""


@dataclass(frozen=True, slots=True)
class BatchSizer:
    """What the next batch may hold.

    :ivar segments: how many.
    :ivar bytes: tar bytes, which Pinot copies before it answers; None while nothing is known.
    """

    segments: int = 1
    bytes: int | None = None

    def next_of(self, outputs: Sequence[Output]) -> Sequence[Output]:
        """The first of these, as many as may go together; at least one."""
        calls = max(1, math.ceil(len(outputs) / min(self.segments, MOST)))
        count = size = 0
        for output in outputs[: math.ceil(len(outputs) / calls)]:
            size += output.tar_bytes
            if count and self.bytes is not None and size > self.bytes:
                break
            count += 1
        return outputs[:count]

    def after(self, outputs: Sequence[Output], report: PushReport, deadline: float) -> BatchSizer:
        """What is right after a push of these; the same, if nothing had to be sent.

        :param deadline: seconds within which an upload has to be over.
        """
        names = frozenset(report.pushed)
        sent = [output for output in outputs if output.segment in names]
        if not sent:
            return self
        share = SHARE * deadline / max(report.seconds, 1e-3)
        return BatchSizer(max(1, int(len(sent) * share)), int(sum(o.tar_bytes for o in sent) * share))


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
