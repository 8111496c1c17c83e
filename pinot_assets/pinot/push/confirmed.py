"""Staged segments into Pinot, confirmed by reading: name in the ideal state and CRC as built (rule R8)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pinot_assets.core.text import plural
from pinot_assets.errors import PushRefused
from pinot_assets.pinot.api import PushMode, PushReport, StagedObjects
from pinot_assets.pinot.push.partial_uploads import await_no_partial_uploads
from pinot_assets.pinot.push.upload import Uploads
from pinot_assets.pinot.push.upload_loop import UploadLoop
from pinot_assets.snapshot.receipt import Output


def push_segments(
    pinot: Uploads,
    table: str,
    outputs: Sequence[Output],
    *,
    staged: StagedObjects,
    mode: PushMode | None = None,
    before_upload: Callable[[], None] = lambda: None,
) -> PushReport:
    """Upload what is not there yet and confirm it; see `pinot_assets.pinot.api.PinotClient.push`."""
    started = time.monotonic()
    _check_names(outputs)
    absent = missing(pinot, table, outputs)
    push = UploadLoop(pinot, table, staged, mode, before_upload)
    if absent:
        await_no_partial_uploads(pinot, table, absent, before_upload)
        push.run(absent)
    pushed = dict.fromkeys(output.segment for output in absent)
    return PushReport(
        pushed=tuple(pushed),
        skipped=tuple(output.segment for output in outputs if output.segment not in pushed),
        mode=push.mode if push.calls else None,
        fallback=push.fallback,
        calls=push.calls,
        seconds=time.monotonic() - started,
    )


def _check_names(outputs: Sequence[Output]) -> None:
    twice = [name for name, count in Counter(output.segment for output in outputs).items() if count > 1]
    if twice:
        raise ValueError(f"segments named twice in one push: {sorted(twice)}")


class Shown(Protocol):
    """What a table holds."""

    def all_segments(self, table: str) -> frozenset[str]:
        """Names in the ideal state."""
        ...

    def segment_crcs(self, table: str) -> Mapping[str, int]:
        """CRC by name."""
        ...


def missing(pinot: Shown, table: str, outputs: Sequence[Output]) -> list[Output]:
    """Those that are not in the table yet.

    :raises PushRefused: one is there with another content.
    """
    crcs = pinot.segment_crcs(table)
    other = [output for output in outputs if crcs.get(output.segment, output.crc) != output.crc]
    if other:
        first = other[0]
        raise PushRefused(
            f"there already with another content: {plural(len(other), 'segment')} of table {table}",
            why=f"{first.segment} has CRC {crcs[first.segment]}, built was {first.crc}",
            hint="names are never reused (rule R16): rename the tars, then push",
        )
    # Metadata alone is the left-over of an upload that failed half way.
    there = pinot.all_segments(table) & crcs.keys()
    return [output for output in outputs if output.segment not in there]
