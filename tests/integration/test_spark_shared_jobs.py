"""Files that one Spark job builds together: the same segments, and the same failures, as one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import fastavro
import pytest
from fakes.builder import make_order, tasks_of
from pyspark.sql import SparkSession

from pinot_assets.ingest.contract.build_spec import BuildSpec, Query
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.snapshot.receipt import Failure, FileResult, Receipt

pytestmark = pytest.mark.spark

FIRST_MS = 1_577_836_800_000
FIELDS = {"name": ["null", "string"], "count": "long", "at": "long"}


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    started = local_session("spark shared jobs", 2)
    yield started
    started.stop()


def write(path: Path, rows: Sequence[Mapping[str, object]], fields: Mapping[str, object] = FIELDS) -> None:
    members = [{"name": name, "type": kind} for name, kind in fields.items()]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": members}, rows, "null", 1000)


def rows(number: int, count: int = 40) -> list[dict[str, object]]:
    return [{"name": f"n{number}-{k}", "count": k, "at": FIRST_MS + k} for k in range(count)]


def order(root: Path, query: Query) -> BuildSpec:
    return make_order(root, query=query, input_format="avro")


def together(session: SparkSession, build_spec: BuildSpec) -> dict[str, FileResult]:
    done: list[FileResult] = []
    SparkBuilder(lambda: session).build(build_spec, tasks_of(build_spec), done.append)
    assert len({result.uri for result in done}) == len(done), "each result is given once"
    return {result.uri.rpartition("/")[2]: result for result in done}


def one_by_one(session: SparkSession, build_spec: BuildSpec, root: Path) -> dict[str, FileResult]:
    """The same files, each given alone, staged in another folder."""
    root.mkdir()
    apart = replace(build_spec, staging_uri=(root / "s").as_uri(), segments_uri=(root / "t").as_uri())
    done: list[FileResult] = []
    for task in tasks_of(apart):
        SparkBuilder(lambda: session).build(apart, [task], done.append)
    return {result.uri.rpartition("/")[2]: result for result in done}


def outcome(result: FileResult) -> tuple[object, ...]:
    if isinstance(result, Failure):
        return result.code, result.reason
    read = result.rows, result.rows_read, result.rows_filtered, result.missing
    return (*read, result.facts, [(output.segment, output.crc) for output in result.outputs])


def jobs(session: SparkSession, words: str) -> int:
    """How many jobs have had these words in their description."""
    scala = session.sparkContext._jsc.sc()
    scala.listenerBus().waitUntilEmpty()
    listed = scala.statusStore().jobsList(None)
    described = (listed.apply(n).description() for n in range(listed.size()))
    return sum(words in one.get() for one in described if one.isDefined())


def test_files_with_the_same_columns_share_a_job(session: SparkSession, tmp_path: Path) -> None:
    # The filter drops the last row of each file, and one file as a whole.
    query = Query(where="count < 39 AND name IS NOT NULL", transforms={"name": "upper(name)"})
    build_spec = order(tmp_path, query)
    for number in range(5):
        write(tmp_path / "in" / f"{number}.avro", rows(number))
    write(tmp_path / "in" / "gone.avro", [{"name": None, "count": 1, "at": FIRST_MS}])
    write(tmp_path / "in" / "empty.avro", [])
    for name in ("x", "y"):
        write(tmp_path / "in" / f"{name}.avro", rows(7), FIELDS | {"count": "int"})
    write(tmp_path / "in" / "alone.avro", [{"count": 3, "at": FIRST_MS}], {"count": "long", "at": "long"})
    built = together(session, build_spec)
    assert jobs(session, "one job builds 7 files") == jobs(session, "one job builds 2 files") == 1
    before = jobs(session, "one job")
    expected = one_by_one(session, build_spec, tmp_path / "apart")
    assert jobs(session, "one job") == before, "a file alone has nothing to share"
    assert {name: outcome(result) for name, result in built.items()} == {
        name: outcome(result) for name, result in expected.items()
    }
    found = [outcome(built[name])[:3] for name in ("0.avro", "gone.avro", "empty.avro")]
    assert found == [(39, 40, 1), (0, 1, 1), (0, 0, 0)]


def test_a_broken_file_and_a_bad_row_fail_only_their_files(session: SparkSession, tmp_path: Path) -> None:
    words = {"count": "if(count = 99, 'many', string(count))"}
    build_spec = order(tmp_path, Query(where="count > 0", transforms=words))
    for name in ("a", "b", "c", "torn"):
        write(tmp_path / "in" / f"{name}.avro", rows(0))
    content = bytearray((tmp_path / "in" / "torn.avro").read_bytes())
    content[-40:-20] = b"\xff" * 20  # within a block
    (tmp_path / "in" / "torn.avro").write_bytes(content)
    bad = rows(1)
    bad[6]["count"] = 99
    write(tmp_path / "in" / "bad.avro", bad)
    built = together(session, build_spec)
    expected = one_by_one(session, build_spec, tmp_path / "apart")
    assert {name: outcome(result) for name, result in built.items()} == {
        name: outcome(result) for name, result in expected.items()
    }
    assert all(isinstance(built[f"{name}.avro"], Receipt) for name in "abc"), built
    failed = built["bad.avro"]
    assert isinstance(failed, Failure), failed
    assert "row 7" in failed.reason, failed.reason
    assert isinstance(built["torn.avro"], Failure), built["torn.avro"]


def test_an_expression_that_fails_in_one_file_fails_that_file(session: SparkSession, tmp_path: Path) -> None:
    build_spec = order(tmp_path, Query(transforms={"count": "cast(substr(name, 2, 1) AS int)"}))
    for number in range(4):
        write(tmp_path / "in" / f"{number}.avro", rows(number))
    write(tmp_path / "in" / "words.avro", [{"name": "word", "count": 1, "at": FIRST_MS}])
    built = together(session, build_spec)
    failed = built.pop("words.avro")
    assert isinstance(failed, Failure), failed
    assert "CAST_INVALID_INPUT" in failed.reason, failed
    assert len(built) == 4
    assert all(isinstance(result, Receipt) for result in built.values()), built


def test_receipts_arrive_while_the_job_builds_other_files(session: SparkSession, tmp_path: Path) -> None:
    build_spec = order(tmp_path, Query(where="count >= 0"))
    for number in range(8):
        write(tmp_path / "in" / f"{number}.avro", rows(number, 10_000))
    active: list[int] = []

    def on_done(_: FileResult) -> None:
        active.append(len(session.sparkContext.statusTracker().getActiveJobsIds()))

    SparkBuilder(lambda: session).build(build_spec, tasks_of(build_spec), on_done)
    assert (len(active), active[0]) == (8, 1), active
