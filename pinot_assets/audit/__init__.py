"""What must hold before a switch; each check one small function."""

from pinot_assets.audit.checks import (
    Finding,
    crc_as_built,
    files_built,
    replicas_online,
    rows_as_built,
    sources_unchanged,
)

__all__ = ["Finding", "crc_as_built", "files_built", "replicas_online", "rows_as_built", "sources_unchanged"]
