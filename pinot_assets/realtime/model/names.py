"""Names of segments that come from a stream: `<table>__<partition>__<sequence>__<yyyymmddThhmmZ>`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

PARTITIONS_A_STREAM: Final = 10_000
"""A table with several streams counts the partitions of its second one from here on, and so forth."""

_NAME: Final = re.compile(r"(.+?)__(\d+)__(\d+)__(\d{8}T\d{4}Z)")
# The first up to 1.2, the second from 1.3 on.
_UPLOAD: Final = re.compile(r"(.+__\d{8}T\d{4}Z)(?:[0-9a-f]{8}-[0-9a-f-]{27}|\.tmp\..+)")


@dataclass(frozen=True, slots=True)
class SegmentName:
    """What such a name says.

    :ivar created_ms: to the minute.
    """

    table: str
    partition: int
    sequence: int
    created_ms: int


def parse_name(name: str) -> SegmentName | None:
    """Read a segment's name; None for one that did not come from a stream (`LLCSegmentName`)."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    try:
        created = datetime.strptime(found[4], "%Y%m%dT%H%MZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    return SegmentName(found[1], int(found[2]), int(found[3]), int(created.timestamp() * 1000))


def files_named(urls: Iterable[str | None]) -> frozenset[str]:
    """Files that these download URLs name, as a listing of the store shows them; and as the URLs write them,
    should a store not know of escapes.
    """
    written = {url.rpartition("/")[2] for url in urls if url}
    return frozenset(written | {unquote(name) for name in written})


def upload_of(file: str) -> str | None:
    """The segment of which a file of the deep store is an upload that was not (yet) moved to its place:
    `<segment>.tmp.<uuid>`, before 1.3 `<segment><uuid>`. None for every other file.
    """
    found = _UPLOAD.fullmatch(file)
    return found[1] if found is not None else None
