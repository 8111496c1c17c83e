"""What a REALTIME table and its cluster are set to, as far as commits and repair depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

COMPLETION_WINDOW_MS: Final = 300_000
"""`MAX_SEGMENT_COMPLETION_TIME_MILLIS`: Pinot's own repair touches no younger segment.

Source: docs/design/realtime.md#s2.
"""


@dataclass(frozen=True, slots=True)
class RealtimeSettings:
    """One table's config, read from its JSON by `table_settings`.

    :ivar peer_scheme: `peerSegmentDownloadScheme`, None when absent.
    :ivar upsert: `FULL`, `PARTIAL` or None.
    :ivar drops_out_of_order: upsert with `dropOutOfOrderRecord` or an out-of-order column.
    :ivar drops_rows: fewer rows than messages may be kept, as the table config wants it: dedup,
        `dropOutOfOrderRecord`, a filter, or aggregation while it consumes.
    :ivar recovery_always: `disasterRecoveryMode` is ALWAYS.
    :ivar completion_mode: `DEFAULT` or `DOWNLOAD`.
    :ivar retention_ms: None when data is kept for ever.
    :ivar streams: the stream configs, one as a rule: flat maps as in the table config. May hold credentials.
    """

    replication: int
    peer_scheme: str | None = None
    pauseless: bool = False
    upsert: str | None = None
    dedup: bool = False
    drops_out_of_order: bool = False
    drops_rows: bool = False
    recovery_always: bool = False
    completion_mode: str = "DEFAULT"
    retention_ms: int | None = None
    download_timeout_s: int = 600
    commit_timeout_s: int = 120
    server_uploads: bool | None = None
    streams: tuple[Mapping[str, str], ...] = field(default=(), repr=False)

    @property
    def bypasses(self) -> bool:
        """Whether a commit passes a deep store that is down."""
        return self.peer_scheme is not None

    @property
    def must_be_read_in_order(self) -> bool:
        """Whether reading an old range again may give wrong rows: dedup and partial upsert.

        Source: docs/design/realtime.md#reingest.
        """
        return self.dedup or self.upsert == "PARTIAL"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """What controllers, servers and brokers are set to; Pinot's defaults where nothing is set.

    :ivar version: the controller's, as `GET /version` says it.
    :ivar segment_store: servers' `pinot.server.instance.segment.store.uri`: server → value.
    """

    version: str = ""
    recovery_always: bool = False
    error_auto_reset: bool = True
    deep_store_upload_retry: bool = False
    validation_period_s: int = 3600
    segment_level_period_s: int = 86_400
    consistency_mode: str = "RESTRICTED"
    new_segment_expiration_s: int = 300
    startup_timeout_s: int = 600
    upload_timeout_ms: int = 300_000
    data_dir: str | None = None
    segment_store: Mapping[str, str | None] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


def reingests(table: RealtimeSettings, cluster: ClusterSettings) -> bool:
    """Whether Pinot reads a lost COMMITTING segment from the stream again by itself.

    Source: docs/design/realtime.md#reingest.
    """
    return not table.must_be_read_in_order or table.recovery_always or cluster.recovery_always
