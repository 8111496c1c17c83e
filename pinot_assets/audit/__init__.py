"""What must hold before a switch; each check one small function."""

from pinot_assets.audit.checks import (
    Finding,
    crc_as_built,
    crc_on_servers,
    files_built,
    one_replica_online,
    replicas_online,
    rows_as_built,
    rows_kept,
    servers_answered,
    sources_unchanged,
    tars_in_place,
)

__all__ = [
    "Finding",
    "crc_as_built",
    "crc_on_servers",
    "files_built",
    "one_replica_online",
    "replicas_online",
    "rows_as_built",
    "rows_kept",
    "servers_answered",
    "sources_unchanged",
    "tars_in_place",
]
