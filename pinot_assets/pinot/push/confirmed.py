"""What of staged segments is in Pinot: the name in the ideal state, with the CRC that was built (rule R8)."""

from __future__ import annotations

from collections.abc import Sequence

from pinot_assets.core.text import plural
from pinot_assets.errors import PushRefused
from pinot_assets.pinot.api import PinotClient
from pinot_assets.snapshot.receipt import Output


def missing(pinot: PinotClient, table: str, outputs: Sequence[Output]) -> list[Output]:
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
