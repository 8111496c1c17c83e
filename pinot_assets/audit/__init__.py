"""What must hold before a switch; each check one small function."""

from pinot_assets.audit.checks import (
    Finding,
    crc_as_built,
    files_built,
    replicas_online,
    rows_as_built,
    rows_kept,
    sources_unchanged,
    tars_in_place,
)

__all__ = [
    "Finding",
    "crc_as_built",
    "files_built",
    "replicas_online",
    "rows_as_built",
    "rows_kept",
    "sources_unchanged",
    "tars_in_place",
]
