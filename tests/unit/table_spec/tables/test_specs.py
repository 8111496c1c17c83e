from __future__ import annotations

import pytest

from pinot_assets.core.json_object import JsonObject

ENVIRONMENT = {"inputDirURI": "${TABLE_DATA_HERE:-data}/x"}


def _schema_type(whole: JsonObject) -> None:
    whole["schema"]["dimensionFieldSpecs"][1]["dataType"] = "LONG"


@pytest.mark.parametrize(
    ("block", "change"),
    [
        ({"ingestionMode": "sync"}, None),
        ({"consistentPushSwapEnabled": "true"}, None),
        ({"consistentPushEnabled": None}, None),
        ({"consistentPushEnabled": None, "ingestionMode": "sync", "enableAtomicUpload": "true"}, None),
        ({"inputDirURI": "s3://flights-in/2014"}, None),
        ({"includeFileNamePattern": "glob:**/*.gz"}, None),
        ({"excludeFileNamePattern": "glob:**/*.gz"}, None),
        ({"inputFormat": "json"}, None),
        ({"recordReader.prop.delimiter": ";"}, None),
        ({"maxNumRecordsPerSegment": 7}, None),
        ({"desiredSegmentSize": "1g"}, None),
        ({"onBadRow": "quarantine"}, None),
        ({"onMissingColumn": "fail"}, None),
        ({"engine": "spark"}, None),
        ({"filter": "carrier IS NOT NULL"}, None),
        ({"transforms.carrier": "upper(carrier)"}, None),
        ({"minServer": "1.5"}, None),
        ({"writeFor": "1.6"}, None),
        (None, _schema_type),
        (None, lambda w: w["table"]["tableIndexConfig"].update(nullHandlingEnabled=False)),
        (None, lambda w: w["table"]["tableIndexConfig"].update(sortedColumn=["carrier"])),
        (None, lambda w: w["table"]["segmentsConfig"].pop("timeColumnName")),
        (None, lambda w: w["table"]["ingestionConfig"].update(segmentTimeValueCheck=False)),
        (
            None,
            lambda w: w["table"].update(
                metadata={"customConfigs": {"generate.inverted.index.before.push": "true"}}
            ),
        ),
    ],
)
def test_r28_what_shapes_segments_changes_the_fingerprint(folder, block, change):
    before = folder.load().config_fingerprint("1")
    after = folder.load(block, **({"change": change} if change else {})).config_fingerprint("1")
    assert before != after


@pytest.mark.parametrize(
    ("block", "change"),
    [
        ({"consistentPushMaxRetries": "5"}, None),
        ({"schedule": "0 0 1 * * ?", "scheduleTimezone": "Asia/Tokyo"}, None),
        ({"writeFor": "auto"}, None),
        ({"writeFor": "0.11"}, None),
        ({"minFileAgeSec": 60, "settleSeconds": 90, "completenessMarker": "_SUCCESS"}, None),
        ({"maxFilePartitions": 3, "partitionGroup": "hash:7"}, None),
        (None, lambda w: w.update(dagster={"group": "air", "tags": {"tier": "gold"}, "automation": True})),
        ({"push.mode": "TAR"}, None),
        ({"tableMaxNumTasks": "5"}, None),
        ({"input.fs.prop.accessKey": "${TABLE_ONE}", "input.fs.prop.secretKey": "${TABLE_OTHER}"}, None),
        ({"output.segment.dir.uri": "s3://elsewhere/x"}, None),
        ({"inputDirURI": "s3://flights-in/2013/"}, None),
        (None, lambda w: w["table"]["segmentsConfig"].update(replication="3")),
        (None, lambda w: w["table"].update(quota={"storage": "1G"})),
        (None, lambda w: w["table"].update(metadata={"customConfigs": {"owner": "x"}})),
    ],
)
def test_r28_e14_what_does_not_leaves_it(folder, block, change):
    before = folder.load().config_fingerprint("1")
    after = folder.load(block, **({"change": change} if change else {})).config_fingerprint("1")
    assert before == after


def test_the_writer_version_and_the_environment_are_part_of_it(folder, monkeypatch):
    spec = folder.load(ENVIRONMENT)
    before = spec.config_fingerprint("1")
    assert before != spec.config_fingerprint("2")
    monkeypatch.setenv("TABLE_DATA_HERE", "other")
    assert before != spec.config_fingerprint("1")


def test_the_order_of_keys_in_the_file_is_not(folder):
    def turned(whole: JsonObject) -> None:
        whole["table"] = dict(reversed(whole["table"].items()))
        whole["schema"] = dict(reversed(whole["schema"].items()))

    assert folder.load().config_fingerprint("1") == folder.load(change=turned).config_fingerprint("1")


def test_a_spec_cannot_be_changed(folder):
    spec = folder.load()
    with pytest.raises(AttributeError):
        spec.name = "other"
    with pytest.raises(ValueError, match="frozen"):
        spec.ingestion.max_retries = 5
