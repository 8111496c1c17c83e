"""Settings as Pinot reads them from a table config and from its processes."""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot.client.app_config import AppConfig
from pinot_assets.realtime.model.settings import cluster_settings, reingests, table_settings


def config(segments: JsonObject | None = None, **rest: Any) -> JsonObject:
    return {"tableName": "t_REALTIME", "segmentsConfig": segments or {}, **rest}


def streams(**stream: str) -> JsonObject:
    return {"streamIngestionConfig": {"streamConfigMaps": [{"streamType": "kafka", **stream}]}}


def test_a_bare_table_has_pinots_defaults() -> None:
    found = table_settings(config({"replication": "2"}))
    assert (found.replication, found.peer_scheme, found.pauseless, found.upsert, found.dedup) == (
        2, None, False, None, False,
    )  # fmt: skip
    assert (found.completion_mode, found.retention_ms, found.streams) == ("DEFAULT", None, ())
    assert (found.download_timeout_s, found.commit_timeout_s, found.server_uploads) == (600, 120, None)


def test_everything_set() -> None:
    stream = {
        "realtime.segment.pauseless.download.timeoutSeconds": "15",
        "realtime.segment.commit.timeoutSeconds": "60",
        "realtime.segment.serverUploadToDeepStore": "true",
    }
    ingestion = streams(**stream)
    ingestion["streamIngestionConfig"] |= {
        "pauselessConsumptionEnabled": True,
        "disasterRecoveryMode": "ALWAYS",
    }
    found = table_settings(
        config(
            {
                "replication": "1",
                "replicasPerPartition": "3",
                "peerSegmentDownloadScheme": "https",
                "completionConfig": {"completionMode": "DOWNLOAD"},
                "retentionTimeUnit": "DAYS",
                "retentionTimeValue": "2",
            },
            ingestionConfig=ingestion,
            upsertConfig={"mode": "PARTIAL", "dropOutOfOrderRecord": True},
            dedupConfig={"dedupEnabled": True},
        )
    )
    assert (found.replication, found.peer_scheme, found.bypasses) == (3, "https", True)
    assert (found.completion_mode, found.retention_ms) == ("DOWNLOAD", 2 * 86_400_000)
    assert (found.pauseless, found.recovery_always, found.upsert, found.dedup) == (
        True, True, "PARTIAL", True,
    )  # fmt: skip
    assert found.must_be_read_in_order
    assert found.drops_out_of_order
    assert (found.download_timeout_s, found.commit_timeout_s, found.server_uploads) == (15, 60, True)


def test_the_older_name_of_the_download_wait_is_in_minutes() -> None:
    older = {"segmentDownloadTimeoutMinutes": "3"}
    assert table_settings(config(ingestionConfig=streams(**older))).download_timeout_s == 180
    newer = {"realtime.segment.pauseless.download.timeoutSeconds": "45", **older}
    assert table_settings(config(ingestionConfig=streams(**newer))).download_timeout_s == 45


def test_the_peer_scheme_is_read_as_pinot_reads_it() -> None:
    assert table_settings(config({"peerSegmentDownloadScheme": "HTTPS"})).peer_scheme == "https"


def test_the_older_place_of_a_stream_config() -> None:
    found = table_settings(config(tableIndexConfig={"streamConfigs": {"streamType": "kafka"}}))
    assert found.streams == ({"streamType": "kafka"},)


def test_credentials_of_a_stream_do_not_show() -> None:
    found = table_settings(config(ingestionConfig=streams(**{"sasl.jaas.config": 'password="GEHEIM"'})))
    assert "GEHEIM" not in repr(found)


@pytest.mark.parametrize("mode", [None, "NONE", "none"])
def test_no_upsert(mode: str | None) -> None:
    assert table_settings(config(upsertConfig={"mode": mode} if mode else None)).upsert is None


def test_cluster_settings_by_default() -> None:
    found = cluster_settings("1.5.1", AppConfig(), AppConfig(), {"a": AppConfig()}, {"x": AppConfig()})
    assert found.unread == {}
    assert (found.validation_period_s, found.segment_level_period_s) == (3600, 86_400)
    assert (found.error_auto_reset, found.deep_store_upload_retry) == (True, False)
    assert (found.consistency_mode, found.new_segment_expiration_s) == ("RESTRICTED", 300)
    assert (found.startup_timeout_s, found.upload_timeout_ms, found.data_dir) == (600, 300_000, None)


def test_what_no_server_and_no_broker_says_is_not_known() -> None:
    found = cluster_settings("1.5.1", AppConfig(), AppConfig(), {}, {})
    assert {"segment_store", "startup_timeout_s", "new_segment_expiration_s"} <= found.unread.keys()
    assert "data_dir" not in found.unread


def test_before_1_4_nothing_resets_errors() -> None:
    assert not cluster_settings("0.11.0", AppConfig(), AppConfig(), {}, {}).error_auto_reset


def test_the_longest_time_of_servers_and_brokers_counts() -> None:
    servers = {
        "a": AppConfig.of(
            {"pinot.server.startup.timeoutMs": "1000", "pinot.server.instance.segment.store.uri": "u"}
        ),
        "b": AppConfig.of({"pinot.server.segment.uploader.upload.request.timeout.ms": "1"}),
    }  # fmt: skip
    brokers = {"x": AppConfig.of({"pinot.broker.new.segment.expiration.seconds": 30})}
    found = cluster_settings("1.5.1", AppConfig(), AppConfig(), servers, brokers)
    assert (found.startup_timeout_s, found.upload_timeout_ms) == (600, 300_000)
    assert (found.segment_store, found.new_segment_expiration_s) == ({"a": "u", "b": None}, 30)


def test_controller_and_cluster() -> None:
    controller = AppConfig.of(
        {
            "controller.realtime.segment.validation.frequencyPeriod": "10m",
            "controller.segment.level.validation.intervalInSeconds": "7",
            "controller.realtime.segment.deepStoreUploadRetryEnabled": "true",
            "controller.segment.disaster.recovery.mode": "DEFAULT",
            "controller.data.dir": "s3://b/d",
        }
    )
    cluster = AppConfig.of(
        {
            "controller.segment.disaster.recovery.mode": "ALWAYS",
            "pinot.server.consuming.segment.consistency.mode": "protected",
        }
    )
    found = cluster_settings("1.5.1", controller, cluster, {}, {})
    assert (found.validation_period_s, found.segment_level_period_s, found.data_dir) == (600, 7, "s3://b/d")
    assert (found.deep_store_upload_retry, found.recovery_always, found.consistency_mode) == (
        True, True, "PROTECTED",
    )  # fmt: skip
    assert reingests(table_settings(config(dedupConfig={"dedupEnabled": True})), found)


def test_what_did_not_answer_is_told_by_setting() -> None:
    found = cluster_settings(
        "1.5.1", "refused", AppConfig(), {"s1": "away", "s2": AppConfig()}, {"b": "gone"}
    )
    assert found.unread["data_dir"] == "the controller: refused"
    assert found.unread["segment_store"] == "s1: away"
    assert found.unread["new_segment_expiration_s"] == "b: gone"
    assert "consistency_mode" not in found.unread
    assert found.segment_store == {"s2": None}
