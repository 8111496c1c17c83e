"""Specs of REALTIME tables: the block, and what it becomes in the table config."""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SpecError
from pinot_assets.table_spec import RealtimeTableSpec, TableSpec, load_any_table, load_table, load_tables

FLUSH = "realtime.segment.flush.threshold."


def load(folder, block: JsonObject | None = None, **more: Any) -> RealtimeTableSpec:
    folder.realtime(block, **more)
    return load_tables(folder.path).realtime["flights"]


def problems(folder, block: JsonObject | None = None, **more: Any) -> dict[str, str]:
    folder.realtime(block, **more)
    return {problem.key: f"{problem.reason} → {problem.fix}" for problem in folder.check()[1]}


def stream_of(spec: RealtimeTableSpec) -> JsonObject:
    (stream,) = spec.table_json["ingestionConfig"]["streamIngestionConfig"]["streamConfigMaps"]
    return dict(stream)


def test_a_block_becomes_part_of_the_table_config(folder):
    spec = load(
        folder,
        {
            "peerSegmentDownloadScheme": "HTTP",
            "pauselessConsumptionEnabled": "true",
            "disasterRecoveryMode": "always",
            "flushThresholdRows": 1_000_000,
            "flushThresholdTime": "6H",
        },
    )
    assert (spec.name, spec.name_with_type, spec.asset_name) == (
        "flights",
        "flights_REALTIME",
        "flights_realtime",
    )
    assert spec.table_json["segmentsConfig"]["peerSegmentDownloadScheme"] == "http"
    ingestion = spec.table_json["ingestionConfig"]["streamIngestionConfig"]
    assert ingestion["pauselessConsumptionEnabled"] is True
    assert ingestion["disasterRecoveryMode"] == "ALWAYS"
    assert stream_of(spec) == {
        "streamType": "kafka",
        "stream.kafka.topic.name": "flights",
        "stream.kafka.broker.list": "127.0.0.1:9092",
        f"{FLUSH}rows": "1000000",
        f"{FLUSH}time": "6h",
    }
    assert spec.table_json["tableIndexConfig"] == {"loadMode": "MMAP"}


def test_a_size_alone_counts_by_size_on_every_release(folder):
    stream = stream_of(load(folder, {"flushThresholdSegmentSize": "200M"}))
    assert stream[f"{FLUSH}segment.size"] == "200m"
    assert stream[f"{FLUSH}rows"] == "0"


@pytest.mark.parametrize("former", [{}, {f"{FLUSH}size": "100"}, {f"{FLUSH}size.llc": "100"}])
def test_rows_beside_a_size_are_a_problem(folder, former):
    block = {"flushThresholdSegmentSize": "200m", **({} if former else {"flushThresholdRows": "100"})}
    found = problems(folder, block, change=lambda whole: whole["realtime"]["stream"].update(former))
    assert "uses only the 100 rows" in found["realtime.flushThresholdSegmentSize"]
    assert stream_of(load(folder, {"flushThresholdSegmentSize": "200m", "flushThresholdRows": "0"}))


def test_a_size_in_the_table_config_is_left_as_it_is(folder):
    size = {f"{FLUSH}segment.size": "1G"}
    stream = stream_of(load(folder, change=lambda whole: whole["realtime"]["stream"].update(size)))
    assert f"{FLUSH}rows" not in stream


def test_a_stream_at_its_former_place_is_moved_with_a_note(folder):
    def put(whole: JsonObject) -> None:
        whole["table"]["tableIndexConfig"]["streamConfigs"] = whole["realtime"].pop("stream")

    spec = load(folder, {"flushThresholdTime": "30m"}, change=put)
    assert "streamConfigs" not in spec.table_json["tableIndexConfig"]
    assert stream_of(spec)[f"{FLUSH}time"] == "30m"
    (note,) = spec.notes
    assert note.key == "table.tableIndexConfig.streamConfigs"


def test_an_empty_block_leaves_a_whole_config_as_it_is(folder):
    def put(whole: JsonObject) -> None:
        streams = {"streamConfigMaps": [whole["realtime"].pop("stream")], "pauselessConsumptionEnabled": True}
        whole["table"]["ingestionConfig"] = {"streamIngestionConfig": streams}
        self_given.append(whole["table"])

    self_given: list[JsonObject] = []
    assert load(folder, change=put).table_json == self_given[0]


def test_contradictions_name_the_other_line(folder):
    def put(whole: JsonObject) -> None:
        whole["table"]["segmentsConfig"]["peerSegmentDownloadScheme"] = "https"
        whole["table"]["ingestionConfig"] = {
            "streamIngestionConfig": {"streamConfigMaps": [{f"{FLUSH}rows": "5", "streamType": "pulsar"}]}
        }

    found = problems(folder, {"peerSegmentDownloadScheme": "http", "flushThresholdRows": 6}, change=put)
    assert set(found) == {
        "realtime.peerSegmentDownloadScheme",
        "realtime.flushThresholdRows",
        "realtime.stream.streamType",
    }
    text = (folder.path / "flights-realtime.yaml").read_text().splitlines()
    line = next(n for n, one in enumerate(text, 1) if "peerSegmentDownloadScheme: https" in one)
    assert f"in line {line} → keep one of the two" in found["realtime.peerSegmentDownloadScheme"]


@pytest.mark.parametrize(
    ("block", "key", "said"),
    [
        ({"pauselessConsumption": "true"}, "realtime.pauselessConsumption", "did you mean pauselessC"),
        (
            {"peerSegmentDownloadScheme": "ftp"},
            "realtime.peerSegmentDownloadScheme",
            "not one of http, https",
        ),
        (
            {"pauselessConsumptionEnabled": "yes"},
            "realtime.pauselessConsumptionEnabled",
            "neither true nor false",
        ),
        ({"disasterRecoveryMode": "NEVER"}, "realtime.disasterRecoveryMode", "not one of DEFAULT, ALWAYS"),
        ({"flushThresholdRows": -1}, "realtime.flushThresholdRows", "is negative"),
        ({"flushThresholdTime": "soon"}, "realtime.flushThresholdTime", "is not a period"),
        ({"flushThresholdTime": {"a": 1}}, "realtime.flushThresholdTime", "more than a single value"),
        ({"flushThresholdSegmentSize": "big"}, "realtime.flushThresholdSegmentSize", "not a size"),
        ({"stream": None}, "realtime", "has no stream"),
        ({"stream": "flights"}, "realtime.stream", "is not a mapping"),
        ({"stream": {"streamType": ["kafka"]}}, "realtime.stream.streamType", "more than a single value"),
    ],
)
def test_a_value_that_means_nothing(folder, block, key, said):
    assert said in problems(folder, block)[key]


def test_a_block_that_is_none(folder):
    assert (
        "is not a mapping"
        in problems(folder, change=lambda whole: whole.update(realtime="kafka"))["realtime"]
    )


@pytest.mark.parametrize(
    ("change", "key", "said"),
    [
        (lambda w: w["table"].update(tableType="OFFLINE"), "table.tableType", "is not REALTIME"),
        (lambda w: w["table"].update(ingestionConfig=[1]), "table.ingestionConfig", "is not a mapping"),
        (
            lambda w: w["table"]["segmentsConfig"].pop("timeColumnName"),
            "table.segmentsConfig",
            "timeColumnName",
        ),
        (lambda w: w.update(fileIngestion={}), "realtime", "a table file is OFFLINE or REALTIME"),
        (
            lambda w: w.update(dagster={"freshnessHours": 2}),
            "dagster.freshnessHours",
            "only for OFFLINE tables",
        ),
        (
            lambda w: w["table"].update(ingestionConfig={"streamIngestionConfig": {"streamConfigMaps": {}}}),
            "table.ingestionConfig.streamIngestionConfig.streamConfigMaps",
            "not a list of mappings",
        ),
        (
            lambda w: w["table"]["tableIndexConfig"].update(streamConfigs=[]),
            "table.tableIndexConfig.streamConfigs",
            "is not a mapping",
        ),
    ],
)
def test_a_table_config_that_is_none_of_a_realtime_table(folder, change, key, said):
    assert said in problems(folder, change=change)[key]


def test_one_stream_for_several(folder):
    def put(whole: JsonObject) -> None:
        streams = [{"streamType": "kafka", "stream.kafka.topic.name": name} for name in "ab"]
        whole["table"]["ingestionConfig"] = {"streamIngestionConfig": {"streamConfigMaps": streams}}

    assert "the table config has 2" in problems(folder, change=put)["realtime.stream"]
    spec = load(folder, {"stream": None, "flushThresholdRows": 7}, change=put)
    streams = spec.table_json["ingestionConfig"]["streamIngestionConfig"]["streamConfigMaps"]
    assert [stream[f"{FLUSH}rows"] for stream in streams] == ["7", "7"]


def test_streams_at_both_places(folder):
    def put(whole: JsonObject) -> None:
        whole["table"]["tableIndexConfig"]["streamConfigs"] = {"streamType": "kafka"}
        whole["table"]["ingestionConfig"] = {"streamIngestionConfig": {"streamConfigMaps": [{}]}}

    assert "Pinot refuses that" in problems(folder, change=put)["table.tableIndexConfig.streamConfigs"]


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";'


@pytest.mark.parametrize(
    ("key", "value", "variable"),
    [
        ("sasl.jaas.config", JAAS, "TABLE_KAFKA_JAAS_CONFIG"),
        ("ssl.keystore.password", "hunter2", "TABLE_PASSWORD"),
        ("stream.kafka.decoder.prop.schema.registry.basic.auth.user.info", "me:hunter2", "TABLE_INFO"),
    ],
)
def test_secrets_of_a_stream_are_refused_and_not_repeated(folder, key, value, variable):
    folder.realtime(change=lambda whole: whole["realtime"]["stream"].update({key: value}))
    (problem,) = folder.check()[1]
    assert problem.key == f"realtime.stream.{key}"
    assert f"${{{variable}}}" in str(problem)
    assert "hunter2" not in str(problem)


def test_where_credentials_are_taken_from_is_no_secret(folder):
    key = "stream.kafka.decoder.prop.schema.registry.basic.auth.credentials.source"
    folder.realtime(change=lambda whole: whole["realtime"]["stream"].update({key: "USER_INFO"}))
    assert not folder.check()[1]


def test_secrets_in_the_table_config_are_refused_too(folder):
    folder.realtime(
        change=lambda w: w["table"]["tableIndexConfig"].update(streamConfigs={"sasl.jaas.config": JAAS})
    )
    assert any("literal secret" in problem.reason for problem in folder.check()[1])


def test_references_are_kept_for_pinot(folder):
    spec = load(
        folder, change=lambda w: w["realtime"]["stream"].update({"sasl.jaas.config": "${TABLE_KAFKA_JAAS}"})
    )
    assert stream_of(spec)["sasl.jaas.config"] == "${TABLE_KAFKA_JAAS}"


@pytest.mark.parametrize("text", ["${HOST}:9092", "${HOST:-127.0.0.1:9092}"])
def test_references_that_pinot_does_not_fill_in(folder, text):
    found = problems(
        folder, change=lambda w: w["realtime"]["stream"].update({"stream.kafka.broker.list": text})
    )
    assert "as it is" in found["realtime.stream.stream.kafka.broker.list"]


def test_both_halves_of_a_hybrid_table(folder):
    folder.spec()
    folder.realtime()
    tables = load_tables(folder.path)
    assert list(tables) == list(tables.realtime) == ["flights"]
    assert [type(spec) for spec in tables.sort_out(["flights"])[0]] == [TableSpec, RealtimeTableSpec]
    assert tables.sort_out(["flights_REALTIME"])[0] == [tables.realtime["flights"]]
    assert tables.sort_out(["flights_OFFLINE"])[0] == [tables["flights"]]
    assert tables.sort_out([])[0] == tables.sort_out(["flights"])[0]
    assert tables.choose(["flights"]) == [tables["flights"]]


def test_halves_with_two_schemas_are_refused(folder):
    folder.spec()
    folder.realtime(change=lambda whole: whole["schema"]["dimensionFieldSpecs"].pop())
    (problem,) = folder.check()[1]
    assert problem.file.name == "flights-realtime.yaml"
    assert "both halves of a hybrid table have one" in problem.reason


def test_two_specs_of_one_realtime_table_clash(folder):
    folder.realtime()
    folder.realtime(name="again.yaml")
    assert ["clashes" in problem.reason for problem in folder.check()[1]] == [True, True]


def test_names_of_the_wrong_type(folder):
    folder.realtime()
    tables = load_tables(folder.path)
    with pytest.raises(SpecError, match="flights is a REALTIME table"):
        tables.choose(["flights"])
    with pytest.raises(SpecError, match="did you mean flights"):
        tables.sort_out(["flight"])
    with pytest.raises(SpecError, match="there is no table spec for trains"):
        tables.sort_out(["trains"])
    assert tables.sort_out(["flights_REALTIME"])[0] == [tables.realtime["flights"]]


def test_an_offline_table_is_no_realtime_one(folder):
    folder.spec()
    assert load_tables(folder.path).find_realtime("flights") is None


def test_single_files(folder):
    file = folder.realtime()
    assert isinstance(load_any_table(file), RealtimeTableSpec)
    with pytest.raises(SpecError, match="is the spec of a REALTIME table"):
        load_table(file)


def test_keys_of_the_dagster_block(folder):
    spec = load(
        folder, change=lambda whole: whole.update(dagster={"repairLimit": "3", "owners": ["team:data"]})
    )
    assert spec.dagster.repair_limit == 3
    folder.spec(change=lambda whole: whole.update(dagster={"repairLimit": 3}))
    assert "only for REALTIME tables" in str(folder.check()[1][0])
