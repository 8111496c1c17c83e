"""The settings of a REALTIME table and its cluster on which commits and repair depend, with Pinot's own
defaults and rules. Pure.

Source: docs/design/realtime.md#s2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from packaging.version import Version

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.untrusted import listed, typed
from pinot_assets.pinot.client.app_config import AppConfig
from pinot_assets.pinot.table_config import period_ms, retention_ms, setting
from pinot_assets.pinot.versions import release

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
    :ivar drops_rows: whether the table config may keep fewer rows than messages: dedup,
        `dropOutOfOrderRecord`, a filter, or aggregation during consumption.
    :ivar recovery_always: `disasterRecoveryMode` is ALWAYS.
    :ivar completion_mode: `DEFAULT` or `DOWNLOAD`.
    :ivar retention_ms: None when data is kept for ever.
    :ivar streams: the stream configs, usually one: flat maps as in the table config. May hold credentials.
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
        """Whether a commit succeeds although the deep store is down."""
        return self.peer_scheme is not None

    @property
    def must_be_read_in_order(self) -> bool:
        """Whether reading an old range again may give wrong rows: dedup and partial upsert.

        Source: docs/design/realtime.md#reingest.
        """
        return self.dedup or self.upsert == "PARTIAL"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The settings of controllers, servers and brokers; Pinot's defaults where nothing is set.

    :ivar version: the controller's, as `GET /version` returns it.
    :ivar segment_store: server → its `pinot.server.instance.segment.store.uri`.
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
    """Return whether Pinot itself reads a lost COMMITTING segment from the stream again.

    Source: docs/design/realtime.md#reingest.
    """
    return not table.must_be_read_in_order or table.recovery_always or cluster.recovery_always


def resets_errors(table: RealtimeSettings, cluster: ClusterSettings) -> bool:
    """Return whether the validation manager resets segments in ERROR. In a pauseless table that must be read
    in order it resets none.
    """
    return reingests(table, cluster) if table.pauseless else cluster.error_auto_reset


_RESETS_ERRORS: Final = Version("1.4")
# Fields that are not known unless the controller's settings are.
_OF_CONTROLLER: Final = (
    *("recovery_always", "error_auto_reset", "deep_store_upload_retry", "validation_period_s"),
    *("segment_level_period_s", "data_dir"),
)


def table_settings(config: JsonMapping) -> RealtimeSettings:
    """Return the settings of a REALTIME table.

    :param config: its table config, as Pinot has it.
    """
    segments = typed(setting(config, "segmentsConfig") or {}, dict)
    ingestion = typed(setting(config, "ingestionConfig", "streamIngestionConfig") or {}, dict)
    upsert = typed(setting(config, "upsertConfig") or {}, dict)
    streams = _streams(config)
    # Several streams may have the same key; Pinot takes the first one's value.
    stream = streams[0] if streams else {}
    uploads = stream.get("realtime.segment.serverUploadToDeepStore")
    mode = str(upsert.get("mode") or "NONE").upper()
    return RealtimeSettings(
        replication=_number(segments.get("replicasPerPartition"), _number(segments.get("replication"), 1)),
        peer_scheme=str(segments.get("peerSegmentDownloadScheme") or "").lower() or None,
        pauseless=_flag(ingestion.get("pauselessConsumptionEnabled")),
        upsert=None if mode == "NONE" else mode,
        dedup=_flag(setting(config, "dedupConfig", "dedupEnabled")),
        drops_out_of_order=_flag(upsert.get("dropOutOfOrderRecord"))
        or bool(upsert.get("outOfOrderRecordColumn")),
        drops_rows=any(
            (
                _flag(setting(config, "dedupConfig", "dedupEnabled")),
                _flag(upsert.get("dropOutOfOrderRecord")),
                bool(setting(config, "ingestionConfig", "filterConfig", "filterFunction")),
                bool(setting(config, "ingestionConfig", "aggregationConfigs")),
                _flag(setting(config, "tableIndexConfig", "aggregateMetrics")),
            )
        ),
        recovery_always=str(ingestion.get("disasterRecoveryMode")).upper() == "ALWAYS",
        completion_mode=str(setting(segments, "completionConfig", "completionMode") or "DEFAULT").upper(),
        retention_ms=retention_ms(config),
        download_timeout_s=_number(
            stream.get("realtime.segment.pauseless.download.timeoutSeconds"),
            60 * _number(stream.get("segmentDownloadTimeoutMinutes"), 10),
        ),
        commit_timeout_s=_number(stream.get("realtime.segment.commit.timeoutSeconds"), 120),
        server_uploads=None if uploads is None else _flag(uploads),
        streams=streams,
    )


def cluster_settings(
    version: str,
    controller: AppConfig | str,
    cluster: AppConfig | str,
    servers: Mapping[str, AppConfig | str],
    brokers: Mapping[str, AppConfig | str],
) -> ClusterSettings:
    """Return the settings of controller, servers and brokers; a text instead of a config is why it is unread.

    Where servers or brokers differ, the longest time counts, as it does the most harm.

    :param version: as the controller returns it.
    """
    of_servers = {name: one for name, one in servers.items() if isinstance(one, AppConfig)}
    of_brokers = [one for one in brokers.values() if isinstance(one, AppConfig)]
    of_controller = controller if isinstance(controller, AppConfig) else AppConfig()
    of_cluster = cluster if isinstance(cluster, AppConfig) else AppConfig()
    recovery_key = "controller.segment.disaster.recovery.mode"
    recovery = of_cluster.text(recovery_key) or of_controller.text(recovery_key) or "DEFAULT"
    return ClusterSettings(
        version=version,
        recovery_always=recovery.upper() == "ALWAYS",
        error_auto_reset=of_controller.flag(
            "controller.segment.error.autoReset", release(version) >= _RESETS_ERRORS
        ),
        deep_store_upload_retry=of_controller.flag(
            "controller.realtime.segment.deepStoreUploadRetryEnabled", False
        ),
        validation_period_s=_period_s(
            of_controller, "controller.realtime.segment.validation.frequency", 3600
        ),
        segment_level_period_s=_period_s(
            of_controller, "controller.segment.level.validation.interval", 86_400
        ),
        consistency_mode=(
            of_cluster.text("pinot.server.consuming.segment.consistency.mode") or "RESTRICTED"
        ).upper(),
        new_segment_expiration_s=_longest(of_brokers, "pinot.broker.new.segment.expiration.seconds", 300),
        startup_timeout_s=_longest(of_servers.values(), "pinot.server.startup.timeoutMs", 600_000) // 1000,
        upload_timeout_ms=_longest(
            of_servers.values(), "pinot.server.segment.uploader.upload.request.timeout.ms", 300_000
        ),
        data_dir=of_controller.text("controller.data.dir"),
        segment_store={
            name: one.text("pinot.server.instance.segment.store.uri") for name, one in of_servers.items()
        },
        unread={
            **_unknown(_OF_CONTROLLER, {"the controller": controller}),
            **_unknown(("consistency_mode",), {"the cluster": cluster}),
            **_unknown(
                ("segment_store", "startup_timeout_s", "upload_timeout_ms"),
                servers or {"servers": "none is known"},
            ),
            **_unknown(("new_segment_expiration_s",), brokers or {"brokers": "none is known"}),
        },
    )


def _longest(configs: Iterable[AppConfig], key: str, default: int) -> int:
    return max((one.number(key, default) for one in configs), default=default)


def _unknown(fields: tuple[str, ...], configs: Mapping[str, AppConfig | str]) -> dict[str, str]:
    silent = [f"{name}: {why}" for name, why in sorted(configs.items()) if isinstance(why, str)]
    return dict.fromkeys(fields, "; ".join(silent)) if silent else {}


def _streams(config: JsonMapping) -> tuple[Mapping[str, str], ...]:
    maps = setting(config, "ingestionConfig", "streamIngestionConfig", "streamConfigMaps")
    older = setting(config, "tableIndexConfig", "streamConfigs")
    return tuple(
        {str(key): str(value) for key, value in stream.items()}
        for stream in listed(maps or ([older] if older else []), dict)
    )


def _period_s(settings: AppConfig, name: str, default: int) -> int:
    """Return seconds of a setting with two spellings: a period, or a number of seconds."""
    period = period_ms(settings.text(f"{name}Period"))
    return period // 1000 if period is not None else settings.number(f"{name}InSeconds", default)


def _number(value: object, default: int) -> int:
    try:
        return int(str(value))
    except ValueError:
        return default


def _flag(value: object) -> bool:
    return str(value).lower() == "true"
