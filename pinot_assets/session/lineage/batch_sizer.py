"""How many segments go into one upload.

The lease fences ZooKeeper, not Pinot: what an owner sent just before it lost its lease has to be over before
the next one writes (rule R2). So a batch is as large as goes out in a part of that time, as measured on the
batch before. The first one is a single segment. What is left goes in batches of one size: a call costs
much even for a few segments, so a small remainder would be dear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pinot_assets.pinot.api import PushReport
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
