"""What the tar of a segment says about it."""

from __future__ import annotations

import re
import struct
import tarfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    name: str
    crc: int
    rows: int
    creation_time_ms: int


def read_segment_info(tar: Path) -> SegmentInfo:
    """Name, CRC and rows; the CRC is the one recorded in `creation.meta`."""
    with tarfile.open(tar, mode="r:gz") as archive:
        name = archive.getnames()[0]
        properties, meta = (
            content.read()
            for file in ("metadata.properties", "creation.meta")
            if (content := archive.extractfile(f"{name}/v3/{file}")) is not None
        )
    rows = re.search(rb"^segment\.total\.docs = (\d+)\n", properties, re.MULTILINE)
    assert rows is not None
    crc, created, _ = struct.unpack(">qqq", meta)
    return SegmentInfo(name, crc, int(rows[1]), created)
