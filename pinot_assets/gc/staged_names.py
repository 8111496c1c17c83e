"""Names of the objects that this project puts into a table's folder of the staging area."""

from __future__ import annotations

import re
from typing import Final

from pinot_assets.session.values.state import is_ours

_TAR: Final = re.compile(r"segments/(?P<segment>[^/]+?)(?:\.metadata)?\.tar\.gz")
SNAPSHOT_ROWS: Final = re.compile(r"snapshots/[0-9]+-[0-9a-f]{64}\.parquet")
SNAPSHOT_OBJECT: Final = re.compile(r"snapshots/[0-9]+-[0-9a-f]{64}\.(?:json|parquet)")
SESSION_OBJECT: Final = re.compile(r"sessions/(?P<id>(?P<node>cp[0-9]+)-[0-9a-f]{6})/.+")
PACK_OBJECT: Final = re.compile(r"(?:packs|rows)/[0-9a-f]{64}\.parquet")
PROBE: Final = re.compile(r"\.pinot-assets-probe-[0-9a-f]{32}")


def staged_segment(table: str, key: str) -> str:
    """Return the segment of ours whose tar, or tar of metadata, has that key; "" for any other object."""
    match = _TAR.fullmatch(key)
    return match["segment"] if match and is_ours(table, match["segment"]) else ""
