"""What schema and table config may let Pinot reach: brokers, registries, files, classes, other tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SpecError
from pinot_assets.table_spec import load_tables
from pinot_assets.table_spec.tables.apply import ApplyPlan, Change, apply_plan, refuse_unless_valid

STREAM_PLACES = ("block", "maps", "second", "former")
PLUGIN = "org.apache.pinot.plugin"
DECODER = "stream.kafka.decoder.prop."
BROKERS = "names kafka://kafka.example.org:9092"
CODE = "is code that Pinot's servers would run"
OUTSIDE = "is outside the folders"
QUERY = "a query that Pinot's minions would run"
SYSTEM = "never read as data"

HOSTILE_STREAMS = [
    ({"stream.kafka.broker.list": "kafka.example.org:9092"}, BROKERS),
    ({"stream.kafka.broker.list": "127.0.0.1:1, kafka.example.org"}, BROKERS),
    ({"stream.kafka.broker.list": "SASL_SSL://kafka.example.org:9092"}, BROKERS),
    ({"stream.kafka.broker.list": "127.0.0.1:1@kafka.example.org:9092"}, "names an address"),
    ({"bootstrap.servers": "kafka.example.org:9092"}, BROKERS),
    ({"stream.kafka.consumer.prop.bootstrap.servers": "kafka.example.org:9092"}, BROKERS),
    ({"stream.kafka.zk.broker.url": "zk.example.org:2181/kafka"}, "zookeeper://zk.example.org:2181"),
    ({"stream.pulsar.bootstrap.servers": "pulsar://p.example.org:6650"}, "pulsar://p.example.org:6650"),
    ({"stream.pulsar.issuerUrl": "https://login.example.org"}, "https://login.example.org:443"),
    ({f"{DECODER}schema.registry.rest.url": "http://r.example.org:8081"}, "http://r.example.org:8081"),
    ({f"{DECODER}schema.registry.rest.url": "http://127.0.0.1:1,http://r.example.org"}, "r.example.org:80"),
    ({"stream.pulsar.topic.name": "http://t.example.org/x"}, "http://t.example.org:80"),
    ({"stream.pulsar.other": "persistent://public/default/logs"}, "names an address"),
    ({f"{DECODER}descriptorFile": "s3://x/d.desc"}, "no bucket can have the name"),
    ({"sasl.oauthbearer.token.endpoint.url": "https://t.example.org/token"}, "https://t.example.org:443"),
    ({"sasl.oauthbearer.jwks.endpoint.url": "file:///etc/passwd"}, "names an address"),
    ({"any.other.key": "http://r.example.org:8081"}, "http://r.example.org:8081"),
    ({"any.other.key": "jar:http://r.example.org:8081/x.jar!/"}, "names an address"),
    ({"any.other.key": "/etc/passwd"}, SYSTEM),
    ({"ssl.keystore.location": "/var/lib/pinot/own.jks"}, OUTSIDE),
    ({"stream.kafka.consumer.prop.ssl.truststore.location": "/etc/ssl/cacerts"}, SYSTEM),
    ({f"{DECODER}schema.registry.ssl.keystore.location": "/var/lib/own.jks"}, OUTSIDE),
    ({"stream.pulsar.tlsTrustCertsFilePath": "/var/lib/ca.pem"}, OUTSIDE),
    ({"stream.pulsar.credsFilePath": "file:///%65tc/secret.json"}, SYSTEM),
    ({f"{DECODER}descriptorFile": "/var/lib/d.desc"}, OUTSIDE),
    ({f"{DECODER}descriptorFile": "../../d.desc"}, "without its whole path"),
    ({f"{DECODER}descriptorFile": "http://r.example.org/d.desc"}, "http://r.example.org:80"),
    ({f"{DECODER}jarFile": "/opt/x.jar"}, CODE),
    ({f"{DECODER}jarFile": "s3://jars/x.jar"}, CODE),
    ({"stream.kafka.decoder.class.name": "com.example.Decoder"}, CODE),
    ({"stream.kafka.decoder.class.name": "org.apache.pinot.shaded.com.example.Decoder"}, CODE),
    ({"stream.kafka.consumer.factory.class.name": "com.example.Factory"}, CODE),
    ({"key.deserializer": "com.example.Evil"}, CODE),
    ({"interceptor.classes": "org.apache.pinot.plugin.A, com.example.Evil"}, CODE),
    ({"metric.reporters": "com.example.Evil"}, CODE),
    ({"security.providers": "com.example.Evil"}, CODE),
    ({"config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider"}, CODE),
    ({"stream.kafka.consumer.prop.sasl.client.callback.handler.class": "com.example.Handler"}, CODE),
    ({"sasl.login.class": "com.example.Login"}, CODE),
    ({"sasl.kerberos.kinit.cmd": "kinit"}, CODE),
    ({f"{DECODER}schema.registry.proxy.host": "proxy.example.org"}, "http://proxy.example.org:80"),
    ({"any.other.key": " /etc/passwd"}, SYSTEM),
    ({"any.other.key": "file://work/etc/passwd"}, "names an address"),
    ({f"{DECODER}descriptorFile": "/%65tc/passwd"}, SYSTEM),
    ({"ssl.engine.factory.class": "com.example.Engine"}, CODE),
    ({"partition.assignment.strategy": "com.example.Assignor"}, CODE),
    ({f"{DECODER}specific.json.value.type": "com.sun.rowset.JdbcRowSetImpl"}, CODE),
    ({"sasl.jaas.config": "com.sun.security.auth.module.JndiLoginModule required;"}, CODE),
    ({"sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required keyTab=/k;"}, CODE),
    ({"stream.kafka.topic.name": "${PINOT_PASSWORD}"}, "refers to PINOT_PASSWORD"),
    ({"client.id": "${ZK_PASSWORD}"}, "refers to ZK_PASSWORD"),
    ({"client.id": "${sys:user.home}"}, "refers to the environment in"),
    ({"client.id": "${file:/etc/passwd:root}"}, "refers to the environment in"),
    ({"streamType": "kinesis", "endpoint": "https://k.example.org"}, "https://k.example.org:443"),
]
HARMLESS_STREAMS = [
    {"stream.pulsar.topic.name": "persistent://public/default/logs"},
    {"stream.pulsar.topic.name": "non-persistent://public/default/logs-partition-0"},
    {"stream.kafka.broker.list": "127.0.0.1:9092,[::1]:9093"},
    {"stream.kafka.broker.list": "${TABLE_BROKERS}"},
    {"stream.kafka.decoder.class.name": "org.apache.pinot.plugin.inputformat.json.JSONMessageDecoder"},
    {"stream.kafka.consumer.factory.class.name": f"{PLUGIN}.stream.kafka20.KafkaConsumerFactory"},
    {"value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer"},
    {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor"},
    {"stream.kafka.topic.name": "com.example.orders.v1.Created"},
    {"sasl.jaas.config": "${TABLE_KAFKA_JAAS_CONFIG}", "ssl.keystore.password": "${TABLE_PASSWORD}"},
    {"ssl.truststore.location": "${TABLE_CA}", f"{DECODER}jarFile": "${TABLE_JAR}"},
    {"metric.reporters": "", "ssl.provider": "SunJSSE", "ssl.endpoint.identification.algorithm": ""},
    {f"{DECODER}descriptorFile": "s3://schemas/d.desc", f"{DECODER}protoClassName": "com.example.Order"},
    {f"{DECODER}schema.registry.rest.url": "http://127.0.0.1:8081"},
    {"any.delimiter": "/", "any.other.delimiter": "//"},
    {"realtime.segment.offset.autoReset": "true", "group.id": "a/b", "stream.kafka.topic.name": "a-b_c.d"},
]


def lay(whole: JsonObject, place: str, settings: dict[str, str]) -> None:
    """Write settings of a stream at one of the places where Pinot takes them."""
    stream = whole["realtime"]["stream"] | settings
    if place == "block":
        whole["realtime"]["stream"] = stream
        return
    first = whole["realtime"].pop("stream")
    if place == "former":
        whole["table"]["tableIndexConfig"]["streamConfigs"] = stream
        return
    streams = [stream] if place == "maps" else [first, stream]
    whole["table"]["ingestionConfig"] = {"streamIngestionConfig": {"streamConfigMaps": streams}}


@pytest.mark.parametrize("place", STREAM_PLACES)
@pytest.mark.parametrize(("settings", "words"), HOSTILE_STREAMS)
def test_what_a_stream_may_not_reach(folder: Any, place: str, settings: dict[str, str], words: str) -> None:
    folder.realtime(change=lambda whole: lay(whole, place, settings))
    _, problems, _ = folder.check()
    key = [*settings][-1]
    found = [one for one in problems if one.key.endswith(key)]
    assert found
    if "jaas" in key and place == "block":
        assert "literal secret" in found[0].reason  # and so nothing else is said of it
    elif "${" in settings[key] and place == "block" and not words.startswith("refers to Z"):
        assert any("refers to" in one.reason for one in found)
    else:
        assert any(words in one.reason for one in found)
    lines = found[0].file.read_text().splitlines()
    assert key in lines[found[0].line - 1]


@pytest.mark.parametrize("place", STREAM_PLACES)
@pytest.mark.parametrize("settings", HARMLESS_STREAMS)
def test_what_a_stream_may_reach(folder: Any, place: str, settings: dict[str, str]) -> None:
    folder.realtime(change=lambda whole: lay(whole, place, settings))
    assert folder.check()[1] == []


def table(*path: str | int, value: Any) -> Callable[[JsonObject], None]:
    """A change of a table config."""

    def change(whole: JsonObject) -> None:
        inner = whole["table"]
        for step in path[:-1]:
            inner = inner.setdefault(step, {})
        inner[path[-1]] = value

    return change


def batch(**settings: str) -> Callable[[JsonObject], None]:
    return table("ingestionConfig", "batchIngestionConfig", "batchConfigMaps", value=[settings])


def task(**settings: str) -> Callable[[JsonObject], None]:
    return table("task", "taskTypeConfigsMap", "SegmentGenerationAndPushTask", value=settings)


def view(**settings: str) -> Callable[[JsonObject], None]:
    return table("task", "taskTypeConfigsMap", "MaterializedViewTask", value=settings)


def provided(whole: JsonObject) -> None:
    whole["schema"]["dimensionFieldSpecs"][0]["virtualColumnProvider"] = "com.example.Provider"


HOSTILE_TABLES = [
    (batch(inputDirURI="/var/lib/other"), OUTSIDE),
    (batch(inputDirURI="file:///etc"), SYSTEM),
    (batch(inputDirURI="../other"), "without its whole path"),
    (batch(inputDirURI="hdfs://nn.example.org/x"), "hdfs://nn.example.org:8020"),
    (batch(**{"input.fs.className": "com.example.Fs"}), CODE),
    (batch(**{"recordReader.className": "com.example.Reader"}), CODE),
    (batch(**{"input.fs.prop.endpoint": "https://minio.example.org"}), "https://minio.example.org:443"),
    (batch(**{"push.controllerUri": "http://other.example.org:9000"}), "http://other.example.org:9000"),
    (task(inputDirURI="/var/lib/other"), OUTSIDE),
    (task(**{"output.fs.className": "com.example.Fs"}), CODE),
    (task(tableName="salaries"), "names another table than its own"),
    (task(realtimeTableName="salaries_REALTIME"), "names another table than its own"),
    (task(sourceTable="salaries"), "names another table than its own"),
    (task(tableNames="flights,salaries"), "names another table than its own"),
    (view(definedSql="SELECT name, amount FROM salaries"), QUERY),
    (view(definedSQL="/* x */ SELECT/**/amount\nFROM/**/salaries"), QUERY),
    (view(bucketTimePeriod="1d"), QUERY),
    (task(definedSql="TABLE salaries"), QUERY),
    (task(sourceQuery="whatever it says"), QUERY),
    (task(rows="with a as (select amount from salaries) select * from a"), QUERY),
    (table("segmentsConfig", "peerSegmentDownloadScheme", value="file"), "is not one of the schemes"),
    (
        table("tierConfigs", value=[{"tierBackendProperties": {"dataDir": "/var/lib/pinot/other"}}]),
        OUTSIDE,
    ),
    (table("tierConfigs", value=[{"tierBackendProperties": {"dataDir": "/etc/cron.d"}}]), SYSTEM),
    (table("upsertConfig", value={"metadataManagerClass": "com.example.Manager"}), CODE),
    (table("dedupConfig", value={"metadataManagerClass": "com.example.Manager"}), CODE),
    (table("routing", value={"instanceSelectorClass": "com.example.Selector"}), CODE),
    (table("fieldConfigList", value=[{"properties": {"luceneAnalyzerClass": "com.example.A"}}]), CODE),
    (table("tenants", value={"server": "${PINOT_PASSWORD}"}), "refers to PINOT_PASSWORD"),
    (table("metadata", value={"customConfigs": {"who": "${HOME}"}}), "refers to HOME"),
    (provided, CODE),
]


@pytest.mark.parametrize(("change", "words"), HOSTILE_TABLES)
@pytest.mark.parametrize("kind", ["spec", "realtime"])
def test_what_a_table_may_not_reach(folder: Any, kind: str, change: Callable[..., None], words: str) -> None:
    getattr(folder, kind)(change=change)
    _, problems, _ = folder.check()
    assert any(words in one.reason for one in problems), problems


@pytest.mark.parametrize("change", [batch, task])
def test_what_minions_take_files_from_holds_data(folder: Any, change: Callable[..., Any]) -> None:
    project = folder.path.parent
    folder.realtime(change=change(inputDirURI=f"{project}/in", outputDirURI=f"file://{project}/out"))
    assert folder.check()[1] == []
    folder.realtime(change=change(inputDirURI=f"{project}/.git", outputDirURI=f"{project}/.venv/lib"))
    assert ["belongs to the project and is not data" in one.reason for one in folder.check()[1]] == [
        True,
        True,
    ]


def test_a_policy_allows_the_query_of_a_task(
    folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"definedSql": "SELECT amount FROM salaries", "schedule": "0 0 * * * ?"}
    folder.realtime(change=view(**settings))
    problem, *_ = folder.check()[1]
    assert "allowCode: true" in (problem.fix or "")
    policy = tmp_path / "installation"
    policy.write_text("allowCode: true")
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    assert folder.check()[1] == []


@pytest.mark.parametrize(
    "change",
    [
        task(schedule="0 0 * * * ?", tableName="flights_OFFLINE"),
        task(bufferTimePeriod="1d", sourceTable="flights", note="rows come from the select few"),
        batch(inputDirURI="s3://flights/in", includeFileNamePattern="glob:/x/**/*.csv"),
        batch(**{"input.fs.className": "org.apache.pinot.plugin.filesystem.S3PinotFS"}),
        table("metadata", value={"customConfigs": {"wiki": "https://wiki.example.org/flights"}}),
        table("segmentsConfig", "peerSegmentDownloadScheme", value="https"),
        table("ingestionConfig", value={"complexTypeConfig": {"delimiter": "/"}}),
        table("upsertConfig", value={"mode": "FULL", "partialUpsertStrategies": {"class": "OVERWRITE"}}),
    ],
)
def test_what_a_table_may_reach(folder: Any, change: Callable[..., None]) -> None:
    folder.realtime(change=change)
    assert folder.check()[1] == []


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"stream.kafka.broker.list": "kafka.example.org:9092"},
            "endpoints: [loopback, kafka://kafka.example.org:9092]",
        ),
        ({"ssl.keystore.location": "/var/lib/own.jks"}, "roots: [project, /var/lib/own.jks]"),
        ({"metric.reporters": "com.example.Mine"}, "allowCode: true"),
        ({"client.id": "${WHO}"}, "variables: [TABLE_*, PINOT_ASSETS_DATA, PINOT_ASSETS_STAGING, WHO]"),
    ],
)
def test_the_line_that_is_shown_allows_it(
    folder: Any, settings: dict[str, str], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.realtime(change=lambda whole: lay(whole, "block", settings))
    [problem] = folder.check()[1]
    assert f"`{line}`" in problem.fix
    policy = folder.path.parent / "allowing.yaml"
    policy.write_text(line)
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    assert folder.check()[1] == []


def test_a_stream_of_the_cloud_that_has_no_keys_takes_the_machines_own(
    folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = folder.path.parent / "narrow.yaml"
    policy.write_text("ambientCredentials: []\nendpoints: ['https://k.example.org']")
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    kinesis = {"streamType": "kinesis", "stream.kafka.broker.list": "", "region": "eu-central-1"}
    folder.realtime(change=lambda whole: lay(whole, "maps", kinesis))
    assert "this machine's own credentials" in folder.check()[1][0].reason
    folder.realtime(change=lambda whole: lay(whole, "maps", kinesis | {"endpoint": "https://k.example.org"}))
    assert "credentials to https://k.example.org:443" in folder.check()[1][0].reason
    keys = {"accessKey": "${TABLE_A}", "secretKey": "${TABLE_S}"}
    folder.realtime(change=lambda whole: lay(whole, "maps", kinesis | keys))
    assert folder.check()[1] == []


ELSEWHERE = "https://k.example.org"
NAMED = {"streamType": "kinesis", "region": "eu-central-1", "endpoint": ELSEWHERE}
FACTORY = f"{PLUGIN}.stream.kinesis.KinesisConsumerFactory"
OWN = {"accessKey": "${TABLE_A}", "secretKey": "${TABLE_S}"}


@pytest.mark.parametrize("place", ["maps", "second", "former"])
@pytest.mark.parametrize(
    "settings",
    [
        NAMED | {"accessKey": "", "secretKey": ""},
        NAMED | {"accessKey": "${TABLE_A}", "secretKey": " "},
        NAMED | {"access.key": "${TABLE_A}", "secret_key": "${TABLE_S}"},
        NAMED | {"end.point": "https://good.example.org"},
        NAMED | {"streamType": "kafka", "stream.kafka.consumer.factory.class.name": FACTORY},
        NAMED | {"streamType": "mine", "stream.mine.consumer.factory.class.name": FACTORY},
    ],
)
def test_keys_that_pinot_does_not_take_for_keys_are_none(
    folder: Any, place: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`KinesisConnectionHandler`: keys that are blank are none, and the machine's own are taken."""
    policy = folder.path.parent / "narrow.yaml"
    policy.write_text(
        f"endpoints: [loopback, '{ELSEWHERE}', 'https://good.example.org']\n"
        "ambientCredentials: [provider, 'https://good.example.org']"
    )
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    folder.realtime(change=lambda whole: lay(whole, place, settings))
    problems = [one for one in folder.check()[1] if f"credentials to {ELSEWHERE}:443" in one.reason]
    assert [one.key.rpartition(".")[2] for one in problems] == ["endpoint"]
    folder.realtime(change=lambda whole: lay(whole, place, settings | OWN))
    assert not [one for one in folder.check()[1] if "credentials" in one.reason]


@pytest.mark.parametrize("change", [batch, task])
@pytest.mark.parametrize("side", ["input", "output"])
def test_buckets_of_another_service_that_have_no_keys_take_the_machines_own(
    folder: Any, change: Callable[..., Any], side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = folder.path.parent / "narrow.yaml"
    policy.write_text(f"endpoints: [loopback, '{ELSEWHERE}']")
    monkeypatch.setenv("PINOT_ASSETS_POLICY", str(policy))
    prefix = f"{side}.fs.prop."
    settings = {f"{side}DirURI": "s3://flights/in", f"{prefix}endpoint": ELSEWHERE}
    folder.realtime(change=change(**settings))
    [problem] = folder.check()[1]
    assert f"credentials to {ELSEWHERE}:443" in problem.reason
    assert problem.key.endswith(f"{prefix}endpoint")
    folder.realtime(change=change(**settings, **{f"{prefix}{key}": text for key, text in OWN.items()}))
    assert folder.check()[1] == []


@pytest.mark.parametrize("do", [refuse_unless_valid, apply_plan])
def test_a_spec_that_nobody_has_checked_is_not_applied(folder: Any, do: Callable[..., None]) -> None:
    folder.realtime()
    spec = load_tables(folder.path).realtime["flights"]
    config = {**spec.table_json, "dedupConfig": {"metadataManagerClass": "com.example.Manager"}}
    plan = ApplyPlan(replace(spec, table_json=config), Change("create", ()), Change("create", ()))
    with pytest.raises(SpecError, match=r"dedupConfig\.metadataManagerClass is code") as refused:
        do(plan, Untouched())
    assert "allowCode: true" in str(refused.value)


def test_a_literal_secret_is_not_applied_either(folder: Any) -> None:
    folder.realtime()
    spec = load_tables(folder.path).realtime["flights"]
    config = {**spec.table_json, "task": {"taskTypeConfigsMap": {"T": {"secretKey": "hunter2"}}}}
    plan = ApplyPlan(replace(spec, table_json=config), Change("create", ()), Change("create", ()))
    with pytest.raises(SpecError, match=r" table\.task\..*contains a literal secret") as refused:
        refuse_unless_valid(plan, Untouched())
    assert "hunter2" not in str(refused.value)


class Untouched:
    """A Pinot that must not be asked."""
