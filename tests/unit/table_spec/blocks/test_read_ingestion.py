from __future__ import annotations

import pytest

from pinot_assets.ingest.formats.read import check_reader
from pinot_assets.table_spec.blocks.ingestion import DEFAULT_SEGMENT_BYTES, SINGLE_CHARACTER

FEW = {"ingestionMode": "append"}


@pytest.mark.parametrize(
    ("block", "attribute", "value"),
    [
        ({"inputFormat": "PARQUET"}, "input_format", "parquet"),
        ({"consistentPushMaxRetries": "0"}, "max_retries", 0),
        ({"consistentPushMaxRetries": 2147483647}, "max_retries", 2147483647),
        ({"consistentPushEnabled": True}, "consistent_push", True),
        ({"consistentPushEnabled": "TRUE"}, "consistent_push", True),
        ({"consistentPushSwapEnabled": "false"}, "consistent_push_swap", False),
        ({"ingestionMode": "SYNC"}, "ingestion_mode", "sync"),
        ({"push.mode": "Tar"}, "push_mode", "TAR"),
        ({}, "push_mode", None),
        ({}, "skip_unreadable", False),
        ({}, "max_retries", 0),
        ({}, "rollback_window", "keepUntilSwitch"),
        ({"rollbackWindow": "keepuntilswitch"}, "rollback_window", "keepUntilSwitch"),
        ({"rollbackWindow": "pinotDefault"}, "rollback_window", "pinotDefault"),
        ({}, "snapshots_to_keep", None),
        ({"snapshotsToKeep": "30"}, "snapshots_to_keep", 30),
        ({"snapshotDaysToKeep": 14}, "snapshot_days_to_keep", 14),
        ({"emptySourceAction": "refuse"}, "empty_source_action", "REFUSE"),
        ({}, "target", "auto"),
        ({"writeFor": "AUTO"}, "target", "auto"),
        ({"writeFor": 1.6}, "target", "1.6"),
        ({"minServer": 1.5}, "target", "1.5"),
        ({"writeFor": "1.5.1"}, "known_target", "1.5.1"),
        ({}, "known_target", "1.6"),
        ({}, "on_spec_change", "ask"),
        ({"onSpecChange": "Rebuild"}, "on_spec_change", "rebuild"),
        ({}, "assured_target", "0.11"),
        ({}, "min_file_age_sec", 0),
        ({"minFileAgeSec": "30"}, "min_file_age_sec", 30),
        ({"settleSeconds": "90"}, "settle_seconds", 90),
        ({}, "settle_seconds", 0),
        ({"completenessMarker": "_SUCCESS"}, "completeness_marker", "_SUCCESS"),
        ({}, "completeness_marker", None),
        ({"schedule": "0 0 4 * * ?", "scheduleTimezone": "Asia/Tokyo"}, "schedule_timezone", "Asia/Tokyo"),
        ({}, "schedule_timezone", "UTC"),
        ({}, "max_file_partitions", 2000),
        ({"maxFilePartitions": 5}, "max_file_partitions", 5),
        ({}, "partition_group", "directory"),
        ({"partitionGroup": "hash:064"}, "partition_group", "hash:64"),
        ({"partitionGroup": "hash:100000"}, "partition_group", "hash:100000"),
        ({"partitionGroup": "regex:/(?:y|d)=([0-9]+)/"}, "partition_group", "regex:/(?:y|d)=([0-9]+)/"),
        ({"maxNumRecordsPerSegment": "1000"}, "max_rows_per_segment", 1000),
        ({}, "segment_bytes", DEFAULT_SEGMENT_BYTES),
        ({"maxNumRecordsPerSegment": "5000000"}, "segment_bytes", None),
        ({"maxNumRecordsPerSegment": "9", "desiredSegmentSize": "1g"}, "segment_bytes", 1 << 30),
        ({"desiredSegmentSize": "1g"}, "segment_bytes", 1 << 30),
        ({}, "desired_segment_bytes", None),
        ({"desiredSegmentSize": "1.5m"}, "desired_segment_bytes", 1572864),
        ({"desiredSegmentSize": "500"}, "desired_segment_bytes", 500),
        ({"desiredSegmentSize": "1GB"}, "desired_segment_bytes", 1 << 30),
        ({}, "bad_row_limit", None),
        ({"maxBadRows": "5"}, "bad_row_limit", None),
        ({}, "bad_row_days_to_keep", 30),
        ({"badRowDaysToKeep": 0}, "bad_row_days_to_keep", 0),
        ({"onBadRow": "QUARANTINE", "maxBadRows": 5}, "bad_row_limit", "5"),
        ({"onBadRow": "quarantine", "maxBadRows": "0.50 %"}, "bad_row_limit", "0.5%"),
        ({"onMissingColumn": "fail"}, "on_missing_column", "fail"),
        ({}, "engine", "arrow"),
        ({"engine": "SPARK"}, "engine", "spark"),
        ({}, "filter", ""),
        ({"filter": " carrier <> 'x' "}, "filter", "carrier <> 'x'"),
        ({"transforms.carrier": "upper(c)"}, "transforms", {"carrier": "upper(c)"}),
        ({"excludeFileNamePattern": "regex:.*tmp"}, "exclude", "regex:.*tmp"),
        ({"recordReader.prop.delimiter": "|"}, "reader", {"delimiter": "|"}),
        ({"recordReader.prop.delimiter": "\t"}, "reader", {"delimiter": "\t"}),
        ({"output.fs.prop.region": "eu"}, "output_props", {"region": "eu"}),
        ({"schedule": "0 0/5 * ? * * *"}, "schedule", "0 0/5 * ? * * *"),
        ({"sensorRetries": "true", "consistentPushMaxRetries": 1}, "sensor_retries", True),
    ],
)
def test_keys_and_their_values(folder, block, attribute, value):
    assert getattr(folder.load(block).ingestion, attribute) == value


def test_a_version_keeps_its_digits(folder):
    file = folder.spec()
    file.write_text(file.read_text() + "  minServer: 0.110\n")
    assert folder.check()[0][0].ingestion.target == "0.110"


@pytest.mark.parametrize(
    ("mode", "swap", "expected"),
    [(None, None, "append"), ("sync", "false", "sync"), (None, "true", "swap"), ("sync", "true", "swap")],
)
def test_swap_wins_over_append_and_sync(folder, mode, swap, expected):
    assert folder.load({"ingestionMode": mode, "consistentPushSwapEnabled": swap}).mode == expected


@pytest.mark.parametrize(
    ("swap", "consistent", "atomic", "mode", "expected"),
    [
        ("true", "true", "true", "sync", "consistent"),
        ("true", None, "true", None, "consistent"),
        (None, "true", "true", "sync", "consistent"),
        (None, None, "true", "sync", "atomic"),
        (None, None, "true", "append", "plain"),
        (None, None, "true", None, "plain"),
        (None, None, None, "sync", "plain"),
        ("false", "false", "false", None, "plain"),
    ],
)
def test_e16_swap_over_consistent_push_over_atomic_upload_over_plain(
    folder, swap, consistent, atomic, mode, expected
):
    flags = {
        "consistentPushSwapEnabled": swap,
        "consistentPushEnabled": consistent,
        "enableAtomicUpload": atomic,
        "ingestionMode": mode,
    }
    assert folder.load(flags).ingestion.push_kind == expected


@pytest.mark.parametrize(
    ("consistent", "mode", "note"),
    [
        ("true", "sync", "consistent push includes it"),
        (None, "append", "no effect in append mode"),
        (None, "sync", None),
    ],
)
def test_e16_where_atomic_upload_has_no_effect_a_note_says_so(folder, consistent, mode, note):
    notes = folder.notes(
        {"consistentPushEnabled": consistent, "enableAtomicUpload": "true", "ingestionMode": mode}
    )
    said = [text for key, text in notes.items() if "enableAtomicUpload" in key]
    assert [note in text for text in said] == ([True] if note else [])


@pytest.mark.parametrize(
    ("block", "key", "text"),
    [
        ({}, "", "one after the other"),
        ({"consistentPushMaxRetries": 3}, ".consistentPushMaxRetries", "failed files are tried again"),
        ({"consistentPushMaxRetries": 3, "sensorRetries": "true"}, ".sensorRetries", "no effect"),
        ({"enableAtomicUpload": "true"}, ".enableAtomicUpload", "no effect in append mode"),
    ],
)
def test_notes_of_a_plain_push(folder, block, key, text):
    assert text in folder.notes({"consistentPushEnabled": None, **block})[f"fileIngestion{key}"]


@pytest.mark.parametrize(
    ("flags", "retries"),
    [
        ({"consistentPushEnabled": "true"}, 3),
        ({"consistentPushSwapEnabled": "true"}, 3),
        ({"enableAtomicUpload": "true", "ingestionMode": "sync"}, 0),
        ({}, 0),
    ],
)
def test_retries_are_consistent_pushs_alone(folder, flags, retries):
    block = {"consistentPushEnabled": None, "consistentPushMaxRetries": 3, **flags}
    assert folder.load(block).ingestion.retries == retries


@pytest.mark.parametrize("mode", ["sync", "swap"])
@pytest.mark.parametrize("flag", [{"enableAtomicUpload": "true"}, {}])
def test_what_replaces_needs_a_refresh_table_whatever_the_push(folder, mode, flag):
    keys = {"ingestionMode": "sync"} if mode == "sync" else {"consistentPushSwapEnabled": "true"}
    (problem,) = folder.problems(
        {"consistentPushEnabled": None, **flag, **keys},
        change=lambda w: w["table"]["ingestionConfig"]["batchIngestionConfig"].update(
            segmentIngestionType="APPEND"
        ),
    )
    assert "REFRESH" in problem.reason


def test_swap_is_enough_by_itself(folder):
    spec = folder.load({"consistentPushEnabled": None, "consistentPushSwapEnabled": "true"})
    assert spec.mode == "swap"


@pytest.mark.parametrize(
    ("block", "key", "reason", "fix"),
    [
        ({"inputDirURI": None}, "", "inputDirURI is missing", "inputDirURI: "),
        ({"inputFormat": None}, "", "inputFormat is missing", "csv, json or parquet"),
        (
            {"output.segment.dir.uri": None},
            "",
            "output.segment.dir.uri is missing",
            "output.segment.dir.uri: ",
        ),
        ({"inputFormat": "thrift"}, "inputFormat", "not one of csv, json, parquet, avro, orc", ""),
        ({"rollbackWindow": "never"}, "rollbackWindow", "not one of keepUntilSwitch, pinotDefault", ""),
        ({"consistentPushEnabled": "yes"}, "consistentPushEnabled", "neither true nor false", ""),
        ({"consistentPushMaxRetries": "-1"}, "consistentPushMaxRetries", "negative", ""),
        ({"consistentPushMaxRetries": "2147483648"}, "consistentPushMaxRetries", "above", ""),
        ({"consistentPushMaxRetries": "many"}, "consistentPushMaxRetries", "whole number", ""),
        ({"consistentPushMaxRetries": "1_0"}, "consistentPushMaxRetries", "whole number", ""),
        ({"maxNumRecordsPerSegment": 0}, "maxNumRecordsPerSegment", "not above 0", ""),
        ({"push.mode": "URI"}, "push.mode", "not one of TAR, METADATA", ""),
        ({"includeFileNamePattern": "**/*.csv"}, "includeFileNamePattern", "lacks its syntax", ""),
        ({"includeFileNamePattern": "glob:{a"}, "includeFileNamePattern", "not a path pattern", ""),
        (
            {"segmentNameGenerator.type": "fixed"},
            "segmentNameGenerator.type",
            "same segment name",
            "remove it",
        ),
        ({"segmentNameGenerator": "inputFile"}, "segmentNameGenerator", "same segment name", "remove it"),
        ({"inputDirURI": "hdfs://bucket/in"}, "inputDirURI", "scheme", "s3://"),
        ({"inputDirURI": "s3://"}, "inputDirURI", "no bucket", "s3://"),
        ({"inputDirURI": ""}, "inputDirURI", "empty", ""),
        (
            {"output.segment.dir.uri": "s3://flights-in/2013/staging"},
            "output.segment.dir.uri",
            "inside inputDirURI",
            "directory of its own",
        ),
        ({"output.segment.dir.uri": "s3://flights-in"}, "output.segment.dir.uri", "contains inputDirURI", ""),
        ({"output.segment.dir.uri": "s3://flights-in/2013/"}, "output.segment.dir.uri", "inside", ""),
        ({"inputFromat": "csv"}, "inputFromat", "not a key", "inputFormat"),
        ({"INPUTFORMAT": "csv"}, "INPUTFORMAT", "not a key", "inputFormat"),
        ({"rollbackwindow": "x"}, "rollbackwindow", "not a key", "rollbackWindow"),
        ({"input": {"fs": {"prop": {"region": "x"}}}}, "input", "single value", "input.fs.prop.<name>"),
        ({"schedule": None, "minServer": "0.10"}, "minServer", "older", ""),
        ({"minServer": "new"}, "minServer", "version", ""),
        ({"writeFor": "0.10.1"}, "writeFor", "older", ""),
        ({"writeFor": "newest"}, "writeFor", "neither auto nor a version", ""),
        ({"writeFor": "1.6", "minServer": "1.5"}, "minServer", "older name of writeFor", "remove minServer"),
        ({"desiredSegmentSize": "big"}, "desiredSegmentSize", "size", ""),
        ({"desiredSegmentSize": "0m"}, "desiredSegmentSize", "is not above 0", ""),
        ({"onBadRow": "skip"}, "onBadRow", "is not one of fail, quarantine", ""),
        ({"onBadRow": "quarantin"}, "onBadRow", "quarantine (did you mean quarantine?)", ""),
        (
            {"maxBadRows": "many"},
            "maxBadRows",
            "neither a number of rows nor a percentage; write 100 or 0.5%",
            "",
        ),
        ({"maxBadRows": "101%"}, "maxBadRows", "is above 100%", ""),
        ({"maxBadRows": "-1"}, "maxBadRows", "neither a number of rows nor a percentage", ""),
        ({"onSpecChange": "reload"}, "onSpecChange", "is not one of ask, rebuild", ""),
        ({"onMissingColumn": "skip"}, "onMissingColumn", "is not one of null, fail", ""),
        ({"schedule": "${CRON}"}, "schedule", "environment", ""),
        ({"scheduleTimezone": "Berlin"}, "scheduleTimezone", "not a time zone", ""),
        ({"scheduleTimezone": "../UTC"}, "scheduleTimezone", "not a time zone", ""),
        ({"completenessMarker": "done/_SUCCESS"}, "completenessMarker", "plain file name", ""),
        ({"completenessMarker": ".."}, "completenessMarker", "plain file name", ""),
        ({"maxFilePartitions": 0}, "maxFilePartitions", "not above 0", ""),
        ({"snapshotsToKeep": 0}, "snapshotsToKeep", "0", ""),
        ({"settleSeconds": "-1"}, "settleSeconds", "negative", ""),
        ({"minFileAgeSec": "1.5"}, "minFileAgeSec", "whole number", ""),
        ({"partitionGroup": "Directory"}, "partitionGroup", "not one of directory", ""),
        ({"partitionGroup": "hash:0"}, "partitionGroup", "100000", ""),
        ({"partitionGroup": "hash:100001"}, "partitionGroup", "100000", ""),
        ({"partitionGroup": "regex:a(b"}, "partitionGroup", "not a regular expression", ""),
        ({"partitionGroup": "regex:ab"}, "partitionGroup", "0 groups", ""),
        ({"partitionGroup": "regex:(a)(b)"}, "partitionGroup", "2 groups", ""),
        ({"input.fs.prop.region": "${1X}"}, "input.fs.prop.region", "malformed", ""),
        ({"recordReader.prop.delimeter": ";"}, "recordReader.prop.delimeter", "csv reader", ""),
        ({"recordReader.prop.delimiter": "||"}, "recordReader.prop.delimiter", "single ASCII character", ""),
        ({"recordReader.prop.delimiter": "é"}, "recordReader.prop.delimiter", "single ASCII character", ""),
        (
            {"recordReader.prop.quoteCharacter": ""},
            "recordReader.prop.quoteCharacter",
            "single ASCII character",
            "",
        ),
        ({"recordReader.prop.header": ""}, "recordReader.prop.header", "names no column", "remove header"),
        ({"recordReader.prop.header": " , "}, "recordReader.prop.header", "names no column", ""),
        (
            {"recordReader.prop.header": "a\nb"},
            "recordReader.prop.header",
            "cannot be split into columns",
            "",
        ),
        (
            {"recordReader.prop.header": "flight, carrier ,carrier"},
            "recordReader.prop.header",
            "names carrier twice",
            "",
        ),
        (
            {"recordReader.prop.header": "x,x,flight", "engine": "spark"},
            "recordReader.prop.header",
            "names x twice",
            "",
        ),
        (
            {"recordReader.prop.header": "a;flight"},
            "recordReader.prop.header",
            "none of the table's columns",
            "",
        ),
        (
            {"recordReader.prop.header": "carrier", "recordReader.prop.delimiter": "||"},
            "recordReader.prop.delimiter",
            "single ASCII character",
            "",
        ),
        (
            {"recordReader.prop.commentMarker": "x", "recordReader.prop.skipHeader": "true"},
            "recordReader.prop.skipHeader",
            "skipHeader without header",
            "",
        ),
    ],
)
def test_what_is_refused(folder, block, key, reason, fix):
    problems = folder.problems(block)
    assert [problem.key for problem in problems] == [f"fileIngestion.{key}".rstrip(".")]
    assert reason in problems[0].reason
    assert fix in (problems[0].fix or "")


@pytest.mark.parametrize("written", [r"\t", r"'\t'", r'"\t"', '"\t"', "'|'"])
@pytest.mark.parametrize("key", sorted(SINGLE_CHARACTER))
def test_what_validate_takes_for_a_character_the_readers_take(folder, key, written):
    folder.spec({f"recordReader.prop.{key}": "CHARACTER"})
    file = folder.path / "flights.yaml"
    file.write_text(file.read_text().replace("CHARACTER", written))
    (spec,), problems, _ = folder.check()
    assert problems == []
    check_reader("csv", spec.ingestion.reader)


@pytest.mark.parametrize(
    "block",
    [
        {"recordReader.prop.header": "x,x,,,flight"},
        {"recordReader.prop.header": "carrier|flight", "recordReader.prop.delimiter": "|"},
        {"recordReader.prop.header": "y,,", "transforms.flight": "int(y)"},
        {"recordReader.prop.header": "carrier", "recordReader.prop.skipHeader": "true"},
    ],
)
def test_headers_that_the_readers_take(folder, block):
    assert folder.problems(block) == []


@pytest.mark.parametrize(
    "mode", [{"ingestionMode": "sync"}, {"consistentPushSwapEnabled": "true"}, {"onSpecChange": "rebuild"}]
)
def test_modes_that_replace_need_a_refresh_table(folder, mode):
    (problem,) = folder.problems(
        mode,
        change=lambda w: w["table"]["ingestionConfig"]["batchIngestionConfig"].update(
            segmentIngestionType="APPEND"
        ),
    )
    assert problem.key == f"fileIngestion.{next(iter(mode))}"
    assert "segmentIngestionType: REFRESH" in (problem.fix or "")


def append_table(period):
    def change(whole):
        whole["table"]["ingestionConfig"]["batchIngestionConfig"]["segmentIngestionType"] = "APPEND"
        whole["table"]["segmentsConfig"]["replacedSegmentsRetentionPeriod"] = period

    return change


@pytest.mark.parametrize("mode", [{"ingestionMode": "sync"}, {"consistentPushSwapEnabled": "true"}])
def test_or_a_table_that_says_for_how_long_newer_releases_keep_what_is_replaced(folder, mode):
    assert folder.load(mode, change=append_table("1d")).ingestion.mode == folder.load(mode).ingestion.mode
    (problem,) = folder.problems(mode, change=append_table("0d"))
    assert "newer than 1.5.1, replacedSegmentsRetentionPeriod: 1d" in (problem.fix or "")


def test_a_swap_has_no_use_for_on_spec_change(folder):
    notes = folder.notes({"consistentPushSwapEnabled": "true", "onSpecChange": "rebuild"})
    assert "a swap builds all files" in notes["fileIngestion.onSpecChange"]


def with_functions(whole):
    transforms = [{"columnName": "flight", "transformFunction": "plus(distance, 1)"}]
    whole["table"]["ingestionConfig"]["transformConfigs"] = transforms


@pytest.mark.parametrize(
    ("block", "key"), [({"filter": "distance > 5"}, "fileIngestion.filter"), ({}, "fileIngestion")]
)
def test_sql_gets_a_note_where_pandas_is_missing(folder, monkeypatch, block, key):
    extra = 'pip install "pinot-assets[sql]"'
    folder.spec(block) if block else folder.spec(change=with_functions)
    assert not any(extra in note.text for note in folder.check()[2])
    monkeypatch.setattr("pinot_assets.ingest.contract.sql_extra.find_spec", lambda name: None)
    assert [note.key for note in folder.check()[2] if extra in note.text] == [key]
    folder.spec()
    assert not any(extra in note.text for note in folder.check()[2])


@pytest.mark.parametrize("key", ["writeFor", "minServer"])
def test_a_release_that_nobody_knows_yet_gets_a_note(folder, key):
    assert "written as for 1.6" in folder.notes({key: "9.9"})[f"fileIngestion.{key}"]


@pytest.mark.parametrize("release", ["auto", "0.11", "1.5.1", "1.6.2"])
def test_a_known_release_gets_no_note(folder, release):
    assert "fileIngestion.writeFor" not in folder.notes({"writeFor": release})


def with_filter(whole):
    whole["table"]["ingestionConfig"]["filterConfig"] = {"filterFunction": "distance > 5"}


def test_avro_needs_no_jar_for_sql_wherever_the_files_are(folder):
    note = folder.notes({"inputFormat": "avro"}, change=with_functions)["fileIngestion"]
    assert "no jar is needed" in note
    assert "spark-avro" not in note
    block = {"inputFormat": "avro", "inputDirURI": "gs://lake/in"}
    assert [p for p in folder.problems(block, change=with_functions) if "not set up for" in p.reason] == []


@pytest.mark.parametrize("change", [with_functions, with_filter])
def test_pinots_own_functions_bring_spark_in_unless_the_engine_is_written_otherwise(folder, change):
    assert "Spark reads the files" in folder.notes(change=change)["fileIngestion"]
    (problem,) = folder.problems({"engine": "arrow"}, change=change)
    assert problem.key == "fileIngestion.engine"
    assert "transformConfigs and filterConfig" in problem.reason


@pytest.mark.parametrize(
    "location", ["gs://lake/in", "abfss://files@account.dfs.core.windows.net/in", "${TABLE_PLACE}/in"]
)
@pytest.mark.parametrize(
    ("block", "change"),
    [
        ({"filter": "distance > 5"}, None),
        ({"transforms.carrier": "upper(carrier)"}, None),
        ({"engine": "spark"}, None),
        ({}, with_functions),
    ],
)
def test_what_spark_does_not_read_is_told_before_it_tries(folder, monkeypatch, location, block, change):
    monkeypatch.setenv("TABLE_PLACE", "gs://lake")
    (problem,) = folder.problems({"inputDirURI": location, **block}, change=change or (lambda w: None))
    assert problem.key == "fileIngestion.inputDirURI"
    assert "not set up for" in problem.reason


@pytest.mark.parametrize("location", ["gs://lake/in", "abfss://files@account.dfs.core.windows.net/in"])
def test_what_arrow_reads_may_lie_anywhere(folder, location):
    assert folder.problems({"inputDirURI": location, "output.segment.dir.uri": "gs://lake/out"}) == []


def test_a_misspelt_required_key_is_one_problem(folder):
    problems = folder.problems({"inputFormat": None, "inputFromat": "csv"})
    assert [problem.key for problem in problems] == ["fileIngestion.inputFromat"]


@pytest.mark.parametrize(
    ("cron", "reason"),
    [
        ("*/30 * * * *", "five fields"),
        ("0 * *", "3 fields"),
        ("0 0 12 * * *", "exactly one"),
        ("0 0 12 ? * ?", "exactly one"),
        ("0 0 noon! * * ?", "hours"),
        ("@daily", "1 fields"),
    ],
)
def test_schedules_that_are_not_quartz(folder, cron, reason):
    (problem,) = folder.problems({"schedule": cron})
    assert reason in problem.reason


@pytest.mark.parametrize(
    ("quartz", "cron"),
    [("0 */30 * * * ?", "*/30 * * * *"), ("0  15 10 ? * MON-FRI *", "15 10 * * 1-5"), (None, None)],
)
def test_schedules_are_quartz_and_become_cron(folder, quartz, cron):
    ingestion = folder.load({"schedule": quartz}).ingestion
    assert ingestion.schedule == (None if quartz is None else " ".join(quartz.split()))
    assert ingestion.cron == cron


@pytest.mark.parametrize(
    ("block", "key", "text"),
    [
        ({"tableMaxNumTasks": "-1"}, "tableMaxNumTasks", "makes the Spark tasks"),
        ({"taskMaxDataSize": "1"}, "taskMaxDataSize", "its own segments"),
        ({"taskMaxNumFiles": "3"}, "taskMaxNumFiles", "its own segments"),
        ({"hasDirectories": "true"}, "hasDirectories", "recognises directories"),
        ({"checkpointTTLSec": "0"}, "checkpointTTLSec", "ledger"),
        ({"push.controllerUri": "http://x"}, "push.controllerUri", "resource"),
        ({"uploadURL": "http://x"}, "uploadURL", "resource"),
        ({"input.fs.className": "x"}, "input.fs.className", "scheme"),
        ({"segmentNamePrefix": "x"}, "segmentNamePrefix", "session"),
        ({"segmentNameGenerator.type": "simple"}, "segmentNameGenerator.type", "session"),
        ({"maxBadRows": "5"}, "maxBadRows", "no effect without onBadRow: quarantine"),
        ({"badRowDaysToKeep": "7"}, "badRowDaysToKeep", "rows that earlier runs put aside"),
        ({"onBadRow": "quarantine", "maxBadRows": "5"}, "onBadRow", "put aside, up to 5 of each file"),
        ({"onBadRow": "quarantine"}, "onBadRow", "put aside, up to 1% of each file"),
        ({"enableAtomicUpload": "true"}, "enableAtomicUpload", "includes it"),
        ({"ingestionMode": "sync", "consistentPushSwapEnabled": "true"}, "ingestionMode", "no effect"),
        ({"clearConsistentPushState": "true"}, "clearConsistentPushState", "once"),
        (
            {"inputFormat": "json", "recordReader.prop.x": "y"},
            "recordReader.prop.x",
            "no effect with inputFormat json",
        ),
        ({"sensorRetries": "true"}, "sensorRetries", "no effect"),
        (
            {
                "consistentPushMaxRetries": 3,
                "consistentPushEnabled": None,
                "enableAtomicUpload": "true",
                "ingestionMode": "sync",
            },
            "consistentPushMaxRetries",
            "starts over at the next trigger",
        ),
        ({"consistentPushEnabled": "false"}, "consistentPushEnabled", "one after the other"),
        ({"skipFileIfFailToInitReader": "true"}, "skipFileIfFailToInitReader", "until they change"),
        ({"scheduleTimezone": "Asia/Tokyo"}, "scheduleTimezone", "no effect without a schedule"),
    ],
)
def test_what_is_accepted_with_a_note(folder, block, key, text):
    notes = folder.notes(block)
    assert list(notes) == [f"fileIngestion.{key}"]
    assert text in notes[f"fileIngestion.{key}"]


@pytest.mark.parametrize("scheme", ["s3", "s3a", "S3N", "gs", "abfs", "abfss"])
def test_settings_of_a_store_have_their_use_under_each_of_its_names(folder, scheme):
    place = "files@account.dfs.core.windows.net" if scheme.startswith("ab") else "bucket"
    block = {"inputDirURI": f"{scheme}://{place}/in", "input.fs.prop.allowHttp": "false"}
    assert "fileIngestion.input.fs.prop.allowHttp" not in folder.notes(block)


@pytest.mark.parametrize(
    ("scheme", "name", "fix"),
    [
        ("s3a", "acessKey", "did you mean accessKey?"),
        ("gs", "region", "those are gcpKey, projectId, endpoint, allowHttp"),
        ("abfs", "secretKey", "those are accessKey, sasToken"),
    ],
)
@pytest.mark.parametrize("family", ["input", "output"])
def test_a_setting_that_the_store_does_not_have_is_refused(folder, family, scheme, name, fix):
    place = "files@account.dfs.core.windows.net" if scheme.startswith("ab") else "bucket"
    where = {"input": "inputDirURI", "output": "output.segment.dir.uri"}[family]
    block = {where: f"{scheme}://{place}/x", f"{family}.fs.prop.{name}": "${TABLE_X}"}
    (problem,) = folder.problems(block)
    assert problem.key == f"fileIngestion.{family}.fs.prop.{name}"
    assert "is not a setting of" in problem.reason
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("scheme", "names", "key", "lacking"),
    [
        ("s3", ["accessKey"], "accessKey", "secretKey"),
        ("s3n", ["secretKey", "region"], "secretKey", "accessKey"),
        ("s3", ["sessionToken"], "sessionToken", "accessKey and secretKey"),
        ("abfss", ["clientId", "tenantId"], "clientId", "clientSecret"),
    ],
)
def test_half_of_the_keys_of_a_store_is_refused_once(folder, scheme, names, key, lacking):
    place = "files@account.dfs.core.windows.net" if scheme.startswith("ab") else "bucket"
    block = {"inputDirURI": f"{scheme}://{place}/in"} | {
        f"input.fs.prop.{name}": f"${{TABLE_{name}}}" for name in names
    }
    (problem,) = folder.problems(block)
    assert (problem.key, problem.reason) == (
        f"fileIngestion.input.fs.prop.{key}",
        f"has no effect without {lacking}",
    )
    assert "remove all of them" in problem.fix


def test_of_a_place_that_is_not_known_here_nothing_is_said(folder):
    assert (
        folder.problems({"inputDirURI": "${TABLE_BUCKET}/in", "input.fs.prop.accessKey": "${TABLE_A}"}) == []
    )


@pytest.mark.parametrize("where", ["../nowhere", "{}/nowhere", "file://{}/nowhere"])
def test_a_local_input_that_is_not_there_is_a_note_with_its_path(folder, tmp_path, where):
    block = {"inputDirURI": where.format(tmp_path)}
    path = (folder.path / block["inputDirURI"].removeprefix("file://")).resolve()
    assert folder.problems(block) == []
    (note,) = folder.notes(block).values()
    assert note == f"{path} does not exist on this machine, and a run fails until it does"
    path.mkdir()
    assert folder.notes(block) == {}
    path.rmdir()
    path.touch()
    (note,) = folder.notes(block).values()
    assert "is not a folder" in note


# --- the environment -----------------------------------------------------------------------------


def test_directories_are_resolved_at_use_and_relative_to_the_file(folder, monkeypatch):
    monkeypatch.setenv("TABLE_DATA_HERE", "../data")
    spec = folder.load(
        {
            "inputDirURI": "${TABLE_DATA_HERE}/flights",
            "output.segment.dir.uri": "${TABLE_STAGING_HERE:-staging}/x",
        }
    )
    assert spec.ingestion.input_dir_uri == "${TABLE_DATA_HERE}/flights"
    assert spec.input_uri() == f"file://{folder.path.parent}/data/flights"
    assert spec.staging_uri() == f"file://{folder.path}/staging/x"
    monkeypatch.setenv("TABLE_DATA_HERE", "s3://other-bucket")
    assert spec.input_uri() == "s3://other-bucket/flights"


def test_an_unset_variable_is_a_note_and_an_error_at_use(folder, monkeypatch):
    monkeypatch.delenv("TABLE_NOWHERE", raising=False)
    notes = folder.notes({"inputDirURI": "${TABLE_NOWHERE}/x"})
    assert "TABLE_NOWHERE" in notes["fileIngestion.inputDirURI"]
    (spec,) = folder.check()[0]
    with pytest.raises(Exception, match="TABLE_NOWHERE") as caught:
        spec.input_uri()
    assert type(caught.value).__name__ == "SpecError"


def test_staging_inside_the_input_is_seen_after_resolving(folder, monkeypatch):
    monkeypatch.setenv("TABLE_DATA_HERE", "data")
    spec = folder.load(
        {"inputDirURI": "${TABLE_DATA_HERE}", "output.segment.dir.uri": "${TABLE_STAGING_HERE:-staging}"}
    )
    monkeypatch.setenv("TABLE_STAGING_HERE", "data/staging")
    with pytest.raises(Exception, match="inside inputDirURI"):
        spec.staging_uri()


# --- secrets -------------------------------------------------------------------------------------

LEAK = "hunter2-Xy/Zz+0123456789"


@pytest.mark.parametrize(
    "key",
    [
        "input.fs.prop.secretKey",
        "input.fs.prop.accessKey",
        "input.fs.prop.sasToken",
        "input.fs.prop.sessionToken",
        "input.fs.prop.password",
        "input.fs.prop.authToken",
        "input.fs.prop.aws_secret_access_key",
        "input.fs.prop.connectionString",
        "output.fs.prop.secretKey",
        "output.fs.prop.accountKey",
        "authToken",
        "secretKey",
    ],
)
def test_a_literal_secret_is_refused_and_never_shown(folder, key):
    problems = folder.problems({key: LEAK})
    assert problems[0].key == f"fileIngestion.{key}"
    assert f"{key}: ${{" in (problems[0].fix or "")
    assert LEAK not in "".join(map(str, problems))


def test_the_line_to_write_instead_is_accepted(folder):
    for key, variable in (
        ("secretKey", "TABLE_AWS_SECRET_ACCESS_KEY"),
        ("accessKey", "TABLE_AWS_ACCESS_KEY_ID"),
    ):
        (problem,) = folder.problems({f"input.fs.prop.{key}": LEAK})
        assert problem.fix == f"write input.fs.prop.{key}: ${{{variable}}}"
        other = "accessKey" if key == "secretKey" else "secretKey"
        keys = {key: f"${{{variable}}}", other: "${TABLE_OTHER}"}
        spec = folder.load({f"input.fs.prop.{name}": text for name, text in keys.items()})
        assert spec.ingestion.input_props == keys


@pytest.mark.parametrize(
    "block",
    [
        {"input.fs.prop.secretKey": f"${{KEY:-{LEAK}}}"},
        {"input.fs.prop.secretKey": f"{LEAK}${{KEY}}"},
        {"input.fs.prop.secretKey": [LEAK]},
        {"input.fs.prop.secretKey": {"value": LEAK, "secret": LEAK}},
        {"input": {"fs": {"prop": {"secretKey": LEAK}}}},
        {"input.fs.prop.whatever": f"https://user:{LEAK}@host/x"},
        {"inputDirURI": f"s3://key:{LEAK}@bucket/x"},
        {"inputDirURI": f"s3://bucket/x?sig={LEAK}"},
    ],
)
def test_no_way_of_writing_a_secret_shows_it(folder, block):
    problems = folder.problems(block)
    assert problems
    assert LEAK not in "".join(map(str, problems))


def test_a_secret_in_the_table_config_is_refused(folder):
    (problem,) = folder.problems(
        change=lambda w: w["table"].update(
            task={"taskTypeConfigsMap": {"RefreshSegmentTask": {"input.fs.prop.secretKey": LEAK}}}
        )
    )
    assert "literal secret" in problem.reason
    assert LEAK not in str(problem)


@pytest.mark.parametrize(
    "text",
    [
        f"a: [\n  input.fs.prop.secretKey: *{LEAK[:7]}x\n",
        f"input.fs.prop.secretKey: %{LEAK}\n",
        f"input.fs.prop.secretKey: 'unclosed {LEAK}\n",
        f"input.fs.prop.secretKey: !{LEAK[:7]} x\n",
        f"input.fs.prop.secretKey: {LEAK}: b: c\n",
        f"input.fs.prop.secretKey: &{LEAK[:7]} a\nb: &{LEAK[:7]} c\nd: *{LEAK[:7]}2\n",
    ],
)
def test_broken_yaml_does_not_show_a_secret(folder, text):
    folder.text(text)
    _, problems, _ = folder.check()
    assert problems
    assert LEAK[:7] not in "".join(map(str, problems))


@pytest.mark.parametrize("pattern", ["(a+)+$", "(.*)a.*b.*c", r"(a)(?=b)"])
def test_a_partition_is_not_named_by_a_pattern_that_takes_long(folder, pattern):
    (problem,) = folder.problems({"partitionGroup": f"regex:{pattern}"})
    assert problem.reason.startswith("is an expression that ")
