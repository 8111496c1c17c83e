"""The whole machine with files and staging area in S3: on a real Pinot, through production's own wiring.

The server is the local stack's s3proxy, which checks signatures; moto's has versions.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import boto3
import pyarrow.parquet as pq
import pytest
import yaml
from fakes import spoiler as spoiling
from fakes.builder import BuildsHere
from fakes.stores.moto_server import moto_server

from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import ListingFailed, SourceError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.builder import Builder, ignore_rows
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.ingest.task import build_file
from pinot_assets.local.stack import Stack
from pinot_assets.pinot import HttpPinotClient, PinotConnection
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients, open_session_store, open_staging
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.settings.environment import Settings
from pinot_assets.settings.local_stack import StackState
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source import bucket_settings
from pinot_assets.table_spec import TableSpec, load_tables
from pinot_assets.zookeeper import close_client, connect

pytestmark = pytest.mark.integration

ODD_PREFIX = "in/day 1+%/ü#[x]"
ODD_NAMES = [
    "a b.csv",
    "a+b.csv",
    "x#1.csv",
    "100%.csv",
    "%41.csv",
    "a,b;c=d.csv",
    "q?x=1&y.csv",
    "dt=2024-01-01/part-0.csv",
    "ü/日本.csv",
    "[x]{y}*.csv",
    "back\\slash.csv",
    "quote'\"`.csv",
]
_numbers = itertools.count()


@dataclass
class S3Server:
    """An S3 server, and a key pair that it takes."""

    endpoint: str
    access_key: str
    secret_key: str

    @property
    def port(self) -> int:
        port = urlsplit(self.endpoint).port
        assert port is not None
        return port

    @property
    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
        )


@dataclass
class HereBuilder(BuildsHere):
    """Builds in this process what executors build on Spark."""

    built: list[str] = field(default_factory=list)

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        self.built = [task.file.uri for task in tasks]
        for task in tasks:
            on_done(build_file(build_spec, task))


@dataclass
class Lake:
    """One table whose files lie in a bucket and are staged in another.

    :ivar folder: of the table spec.
    :ivar props: what the spec says of both buckets, beside the keys; see `input_props`, `output_props`.
    """

    stack: StackState
    s3: S3Server
    folder: Path
    prefix: str
    table: str = field(default_factory=lambda: f"lake_{time.time_ns()}")
    builder: Builder = field(default_factory=HereBuilder)
    input_props: dict[str, str] = field(default_factory=dict)
    output_props: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bucket = self.table.replace("_", "-")
        self.staging_bucket = f"{self.bucket}-staging"
        self.client = self.s3.client
        for bucket in (self.bucket, self.staging_bucket):
            self.client.create_bucket(Bucket=bucket)

    # --- the source ------------------------------------------------------------------------------

    def put(self, name: str, *values: str) -> JsonObject:
        """A csv file with these rows, gzipped if its name says so."""
        text = io.StringIO()
        csv.writer(text).writerows([["v"], *([value] for value in values)])
        data = text.getvalue().encode()
        return self.put_bytes(name, gzip.compress(data, mtime=0) if name.endswith(".gz") else data)

    def put_bytes(self, name: str, data: bytes) -> JsonObject:
        reply: JsonObject = self.client.put_object(Bucket=self.bucket, Key=f"{self.prefix}/{name}", Body=data)
        return reply

    def remove(self, name: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=f"{self.prefix}/{name}")

    # --- the spec --------------------------------------------------------------------------------

    @property
    def spec(self) -> TableSpec:
        return load_tables(self.folder)[self.table]

    def write_spec(self) -> None:
        """The YAML, as a user writes it: the keys are references to the environment."""
        props = {
            "region": "us-east-1",
            "endpoint": self.s3.endpoint,
            "accessKey": "${TABLE_ACCESS_KEY}",
            "secretKey": "${TABLE_SECRET_KEY}",
        }
        document = {
            "schema": {
                "schemaName": self.table,
                "dimensionFieldSpecs": [{"name": "v", "dataType": "STRING"}],
            },
            "table": {
                "tableName": self.table,
                "tableType": "OFFLINE",
                "segmentsConfig": {"replication": "2"},
                "tenants": {},
                "tableIndexConfig": {"loadMode": "MMAP"},
                "ingestionConfig": {
                    "batchIngestionConfig": {
                        "segmentIngestionType": "REFRESH",
                        "segmentIngestionFrequency": "DAILY",
                    }
                },
                "metadata": {},
            },
            "fileIngestion": {
                "inputDirURI": f"s3://{self.bucket}/{quote(self.prefix)}",
                "inputFormat": "csv",
                "includeFileNamePattern": "glob:**/*.{csv,csv.gz}",
                **{f"input.fs.prop.{k}": v for k, v in {**props, **self.input_props}.items()},
                "output.segment.dir.uri": f"s3://{self.staging_bucket}/pinot",
                **{f"output.fs.prop.{k}": v for k, v in {**props, **self.output_props}.items()},
                "consistentPushEnabled": True,
                "consistentPushMaxRetries": 3,
                "ingestionMode": "sync",
            },
        }
        (self.folder / "lake.yaml").write_text(yaml.safe_dump(document))

    # --- the machine -----------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        return Settings(PinotConnection(self.stack.controller_url), self.stack.zookeeper, self.stack.cluster)

    def run(self) -> TriggerReport:
        """One trigger, the gate and the switch, as `pinot-assets run` does them."""
        with (
            open_clients(self.spec, self.settings, self.builder) as clients,
            Driver(self.spec, clients, f"run-{next(_numbers)}") as driver,
        ):
            report = driver.trigger()
            if report.result is TriggerResult.STAGED:
                _, findings = driver.audit()
                assert [f for f in findings if not f.passed] == []
                driver.publish()
            return report

    def rollback(self) -> Snapshot:
        with (
            open_clients(self.spec, self.settings, self.builder) as clients,
            Driver(self.spec, clients, f"run-{next(_numbers)}") as driver,
        ):
            return driver.rollback()

    @property
    def built(self) -> list[str]:
        """Base names of the files of the last build."""
        assert isinstance(self.builder, HereBuilder)
        return [uri.rpartition("/")[2] for uri in self.builder.built]

    # --- what is there ---------------------------------------------------------------------------

    @property
    def shown(self) -> list[str]:
        """The values that queries see, the same at both brokers."""
        sql = f'SELECT v, COUNT(*) FROM "{self.table}" GROUP BY v LIMIT 1000'
        with HttpPinotClient(PinotConnection(self.stack.controller_url)) as pinot:
            answers = [
                sorted(v for v, n in pinot.broker(broker).query(sql).rows for _ in range(n))
                for broker in pinot.brokers(self.table)
            ]
        assert len(answers) == 2
        assert answers[0] == answers[1]
        return answers[0]

    def state(self) -> JsonObject:
        """All that a trigger can change, but for who held the lease last."""
        with open_session_store(self.spec, self.settings) as store:
            pointer, sessions = store.pointer(), store.sessions()
        with HttpPinotClient(PinotConnection(self.stack.controller_url)) as pinot:
            lineage, segments = pinot.lineage(self.table), pinot.all_segments(self.table)
        return {
            "pointer": replace(pointer, owner=None, epoch=0),
            "sessions": sessions,
            "lineage": lineage,
            "segments": segments,
            "staged": {info.key: info.fingerprint for info in open_staging(self.spec).store.list()},
        }


@pytest.fixture(scope="module")
def stack_with_s3(stack: StackState) -> StackState:
    """The tests' stack with its S3 part, which Pinot was told of when it started."""
    return Stack(stack.home).up(s3=True)


@pytest.fixture
def s3proxy(stack_with_s3: StackState) -> S3Server:
    state = stack_with_s3
    assert state.s3_endpoint
    assert state.s3_access_key
    assert state.s3_secret_key
    return S3Server(state.s3_endpoint, state.s3_access_key, state.s3_secret_key)


@pytest.fixture
def make_lake(
    stack_with_s3: StackState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Lake]]:
    """Makes a lake with its table in Pinot: `make_lake(server, prefix, input_props=…)`."""
    lakes: list[Lake] = []
    # A wrong endpoint is to be told soon.
    monkeypatch.setattr(bucket_settings, "RETRY", {"max_retries": 1, "retry_timeout": timedelta(seconds=10)})

    def make(s3: S3Server, prefix: str = "in", **options: Any) -> Lake:
        monkeypatch.setenv("TABLE_ACCESS_KEY", s3.access_key)
        monkeypatch.setenv("TABLE_SECRET_KEY", s3.secret_key)
        folder = tmp_path / f"tables-{len(lakes)}"
        folder.mkdir()
        lake = Lake(stack_with_s3, s3, folder, prefix, **options)
        lakes.append(lake)
        lake.write_spec()
        with HttpPinotClient(PinotConnection(stack_with_s3.controller_url)) as pinot:
            pinot.put_schema(lake.spec.schema_json)
            pinot.create_table(lake.spec.table_json)
            end = time.monotonic() + 60
            while len(pinot.brokers(lake.table)) < 2:
                assert time.monotonic() < end, "the brokers do not know the table"
                time.sleep(0.05)
        return lake

    yield make
    with HttpPinotClient(PinotConnection(stack_with_s3.controller_url)) as pinot:
        for lake in lakes:
            pinot.delete_table(lake.table)
            pinot.delete_schema(lake.table)


# --- the story -----------------------------------------------------------------------------------


def test_push_rewrite_deletion_retry_and_rollback(make_lake: Callable[..., Lake], s3proxy: S3Server) -> None:
    lake = make_lake(s3proxy, ODD_PREFIX)
    for n, name in enumerate(ODD_NAMES):
        lake.put(name, f"v{n}", f"w{n}")
    lake.put_bytes("notes.txt", b"not chosen")
    report = lake.run()
    count = len(ODD_NAMES)
    assert (report.result, report.listed, len(report.built)) == (TriggerResult.STAGED, count, count)
    first = sorted(f"{letter}{n}" for n in range(count) for letter in "vw")
    assert lake.shown == first
    # The controller's deep store is a disk, so it refuses to copy from S3, and the whole tars are sent.
    assert [note for note in report.notes if "whole tars are sent" in note], report.notes
    assert [note for note in report.notes if "(TAR push" in note], report.notes
    assert lake.run().result is TriggerResult.NOTHING

    lake.put(ODD_NAMES[0], "rewritten")
    lake.remove(ODD_NAMES[1])
    whole = gzip.compress(b"v\nnew\n")
    lake.put_bytes("new.csv.gz", whole[: len(whole) // 2])
    report = lake.run()
    assert (report.result, len(report.built), len(report.failed)) == (TriggerResult.FAILED, 1, 1)
    assert [len(x) for x in (report.new, report.rewritten, report.deleted)] == [1, 1, 1]
    assert lake.shown == first

    lake.put_bytes("new.csv.gz", whole)
    assert lake.run().result is TriggerResult.STAGED
    assert lake.built == ["new.csv.gz"]
    second = sorted({*first} - {"v0", "w0", "v1", "w1"} | {"rewritten", "new"})
    assert lake.shown == second

    lake.rollback()
    assert lake.shown == first
    assert lake.run().result is TriggerResult.HELD
    assert lake.shown == first


def test_e04_a_rewrite_of_the_same_size_in_the_same_second_is_seen(
    make_lake: Callable[..., Lake], tmp_path: Path
) -> None:
    """A version that is taken back leaves an object of the same size, from the same second."""
    with moto_server(tmp_path / "moto.log") as endpoint:
        lake = make_lake(S3Server(endpoint, "lake", "versions4096"))
        versioned = {"Status": "Enabled"}
        lake.client.put_bucket_versioning(Bucket=lake.bucket, VersioningConfiguration=versioned)
        lake.put("other.csv", "other")
        for n in itertools.count():
            name = f"{n}.csv"
            lake.put(name, "one")
            undone = lake.put(name, "two")["VersionId"]
            key = f"{lake.prefix}/{name}"
            versions = lake.client.list_object_versions(Bucket=lake.bucket, Prefix=key)["Versions"]
            if len({v["LastModified"].replace(microsecond=0) for v in versions}) == 1:
                break
            lake.remove(name)
        lake.run()
        assert lake.shown == ["other", "two"]
        lake.client.delete_object(Bucket=lake.bucket, Key=key, VersionId=undone)
        report = lake.run()
        assert [len(x) for x in (report.new, report.rewritten, report.deleted)] == [0, 1, 0]
        assert lake.built == [name]
        assert lake.shown == ["one", "other"]
        assert lake.run().result is TriggerResult.NOTHING

        lake.put(name, "one")  # another version, the same content
        lake.run()
        assert lake.built == [name], "nothing was built again"
        assert lake.shown == ["one", "other"]


# --- S3 on bad days ------------------------------------------------------------------------------


def test_a_listing_that_dies_on_its_second_page_changes_nothing(
    make_lake: Callable[..., Lake], s3proxy: S3Server
) -> None:
    """Invariant I12, through the whole machine: with nothing open, and with a session open."""
    with spoiling.spoiler(s3proxy.port) as spoiler:
        lake = make_lake(s3proxy, input_props={"endpoint": spoiler.endpoint})
        for name in ("a", "m", "z"):
            lake.put(f"{name}.csv", name)
        for n in range(1000):  # a page holds 1000
            lake.put_bytes(f"chaff/{n}.txt", b"x")
        lake.run()
        assert lake.shown == ["a", "m", "z"]
        assert [r for r in spoiler.requests if "continuation-token" in r], "the listing has two pages"

        def dies() -> None:
            spoiler.spoil = lambda method, path: "cut the body" if "continuation-token" in path else None
            before, lake.builder = lake.state(), HereBuilder()
            for _ in range(2):
                with pytest.raises(ListingFailed, match="did not complete"):
                    lake.run()
            assert lake.state() == before
            assert lake.shown == ["a", "m", "z"]
            assert lake.built == []
            spoiler.spoil = lambda method, path: None

        lake.remove("z.csv")
        lake.put("b.csv", "b")
        dies()
        lake.put_bytes("bad.csv.gz", b"torn")
        assert lake.run().result is TriggerResult.FAILED
        dies()
        lake.remove("bad.csv.gz")
        assert lake.run().result is TriggerResult.STAGED
        assert lake.shown == ["a", "b", "m"]


def test_r28_staging_is_tried_before_the_first_session(
    make_lake: Callable[..., Lake], s3proxy: S3Server
) -> None:
    """R28."""
    with spoiling.spoiler(s3proxy.port) as spoiler:
        lake = make_lake(s3proxy, output_props={"endpoint": spoiler.endpoint})
        lake.put("a.csv", "a")
        before = lake.state()
        spoiler.spoil = lambda method, path: "close at once" if method == "PUT" else None
        with pytest.raises(SourceError, match=r"Cannot write .*pinot-assets-probe"):
            lake.run()
        spoiler.spoil = lambda method, path: None
        assert lake.state() == before
        assert lake.built == []
        lake.run()
        assert lake.shown == ["a"]
        assert not [key for key in lake.state()["staged"] if "probe" in key]


def test_a_staging_area_that_goes_away_fails_the_files_and_not_the_machine(
    make_lake: Callable[..., Lake], s3proxy: S3Server
) -> None:
    with spoiling.spoiler(s3proxy.port) as spoiler:
        lake = make_lake(s3proxy, output_props={"endpoint": spoiler.endpoint})
        lake.put("a.csv", "a")
        lake.put("b.csv", "b")
        spoiler.spoil = lambda method, path: "close at once" if "/segments/" in path else None
        report = lake.run()
        assert [failure.code for failure in report.failed] == ["STORE", "STORE"]
        for failure in report.failed:
            assert f"s3://{lake.staging_bucket}/pinot" in failure.reason
            assert s3proxy.secret_key not in failure.reason
        spoiler.spoil = lambda method, path: None
        assert lake.run().result is TriggerResult.STAGED
        assert lake.shown == ["a", "b"]


@pytest.mark.spark
def test_r28_executors_without_the_keys_are_told_before_the_first_session_and_fail_each_file_later(
    make_lake: Callable[..., Lake], s3proxy: S3Server
) -> None:
    """Spark's workers have the environment of its JVM, which starts here before the keys are exported."""
    session = local_session("executors without keys", 1)
    try:
        lake = make_lake(s3proxy, builder=SparkBuilder(lambda: session))
        lake.put("a.csv", "a")
        before = lake.state()
        with pytest.raises(SourceError, match=r"(?s)where files are built.*TABLE_ACCESS_KEY is not set"):
            lake.run()
        assert lake.state() == before

        lake.builder = HereBuilder()
        lake.run()
        lake.builder = SparkBuilder(lambda: session)
        lake.put("b.csv", "b")
        report = lake.run()
        assert [failure.code for failure in report.failed] == ["SETTINGS"]
        assert "TABLE_ACCESS_KEY is not set" in report.failed[0].reason
        assert "where Dagster and the Spark executors run" in report.failed[0].reason
    finally:
        session.stop()


# --- secrets -------------------------------------------------------------------------------------


@pytest.mark.spark
def test_the_secret_key_is_written_nowhere(
    make_lake: Callable[..., Lake], s3proxy: S3Server, tmp_path: Path
) -> None:
    """Dagster, Spark and the command line as a user starts them; then all bytes that any of them wrote."""
    lake = make_lake(s3proxy, ODD_PREFIX)
    lake.put("a b.csv", "a")
    lake.put_bytes("bad.csv.gz", b"torn")
    dagster_home = tmp_path / "dagster"
    dagster_home.mkdir()
    (dagster_home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = os.environ | {
        "DAGSTER_HOME": str(dagster_home),
        "PINOT_ASSETS_TABLES": str(lake.folder),
        "PINOT_CONTROLLER_URL": lake.stack.controller_url,
        "PINOT_ZOOKEEPER": lake.stack.zookeeper,
        "PINOT_CLUSTER": lake.stack.cluster,
        "TMPDIR": str(scratch),
    }
    output: list[str] = []

    def call(*command: str, code: int = 0, **more: str) -> str:
        done = subprocess.run(
            [str(Path(sys.executable).with_name(command[0])), *command[1:]],
            env=environment | more,
            cwd=scratch,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        output.append(done.stdout)
        assert done.returncode == code, done.stdout
        return done.stdout

    job = ("dagster", "job", "execute", "-m", "pinot_assets.definitions", "-j", f"{lake.table}_ingest")
    job += ("--tags", json.dumps({"dagster/partition": ALL_FILES}))
    wrong = s3proxy.secret_key[::-1]
    assert "SignatureDoesNotMatch" in call(*job, code=1, TABLE_SECRET_KEY=wrong)
    assert "bad.csv.gz" in call("pinot-assets", "run", lake.table, code=2)
    lake.put("bad.csv.gz", "good now")
    call(*job)
    assert lake.shown == ["a", "good now"]

    written = {"output": "".join(output).encode(), **written_by(lake), **written_below(tmp_path)}
    for place in ("run_id", f"s3://{lake.bucket}/in/day%201"):
        assert any(place.encode() in data for data in written.values()), f"{place}: read what was written"
    for secret in (s3proxy.access_key, s3proxy.secret_key, wrong):
        assert [name for name, data in written.items() if secret.encode() in data] == []


def written_below(folder: Path) -> dict[str, bytes]:
    """All files below a folder, readable."""
    return {str(path): readable(path.read_bytes(), path) for path in folder.rglob("*") if path.is_file()}


def written_by(lake: Lake) -> dict[str, bytes]:
    """The objects of a lake's staging area and the nodes of its table in ZooKeeper, readable."""
    store = open_staging(lake.spec).store
    objects = {info.uri: readable(store.read(info.key)) for info in store.list()}
    client = connect(lake.stack.zookeeper)
    try:
        nodes = [f"/{lake.stack.cluster}"]
        while nodes:
            node = nodes.pop()
            children = client.get_children(node)
            nodes += [f"{node}/{child}" for child in children]
            if lake.table in node:
                objects[node] = readable(client.get(node)[0] or b"")
    finally:
        close_client(client)
    assert any("consistentPush/cp" in name for name in objects)
    return objects


def readable(data: bytes, path: Path | None = None) -> bytes:
    """The bytes as they are, and what they hold if that is compressed or paged."""
    if data.startswith(b"\x1f\x8b"):
        return data + gzip.decompress(data)
    if data.startswith(b"PAR1"):
        return data + str(pq.read_table(io.BytesIO(data)).to_pydict()).encode()
    if data.startswith(b"SQLite format 3") and path is not None:
        with closing(sqlite3.connect(path)) as database:
            return data + "\n".join(database.iterdump()).encode(errors="surrogateescape")
    return data
