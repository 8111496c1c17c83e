"""What the session relies on, whichever builder it has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.ingest.contract.build_spec import BuildSpec
from pinot_assets.ingest.contract.builder import Builder
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.session.checks.staging_probe import require_staging_reachable
from pinot_assets.session.stores.staging import Staging
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source import open_store


@pytest.fixture(scope="module", params=["in_process", pytest.param("spark", marks=pytest.mark.spark)])
def builder(request: pytest.FixtureRequest, fakes: ModuleType) -> Iterator[Builder]:
    if request.param == "in_process":
        yield fakes.InProcessBuilder()
        return
    session = local_session("builder contract", 2)
    try:
        yield SparkBuilder(lambda: session)
    finally:
        session.stop()


@pytest.fixture
def build_spec(fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    made: BuildSpec = fakes.make_order(tmp_path)
    return made


def receipts(build_spec: BuildSpec) -> list[Receipt]:
    folder = Path(build_spec.staging_uri.removeprefix("file://")) / "files"
    return [Receipt.from_bytes(path.read_bytes()) for path in folder.glob("*.json")]


def test_every_file_is_told_once_and_from_the_calling_thread(
    builder: Builder, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    for n in range(7):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", n)
    results: list[Receipt | Failure] = []
    threads = set()

    def on_done(result: Receipt | Failure) -> None:
        results.append(result)
        threads.add(threading.current_thread())

    builder.build(build_spec, fakes.tasks_of(build_spec), on_done)
    assert sorted(result.ordinal for result in results) == list(range(7))
    assert threads == {threading.current_thread()}
    assert {r.ordinal: r.rows for r in results if isinstance(r, Receipt)} == {n: n for n in range(7)}
    assert sorted(receipts(build_spec), key=lambda r: r.ordinal) == sorted(results, key=lambda r: r.ordinal)


def test_one_bad_file_does_no_harm_to_the_others(
    builder: Builder, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    for n in range(6):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", 3)
    (tmp_path / "in" / "3.csv").write_bytes(b"\x1f\x8bnot gzip at all")
    results: list[Receipt | Failure] = []
    builder.build(build_spec, fakes.tasks_of(build_spec), results.append)
    [failure] = [result for result in results if isinstance(result, Failure)]
    assert (failure.ordinal, failure.code, failure.attempt) == (3, "UNREADABLE", 1)
    assert failure.uri.endswith("/3.csv")
    assert sorted(r.ordinal for r in receipts(build_spec)) == [0, 1, 2, 4, 5]


def test_nothing_to_build(builder: Builder, build_spec: BuildSpec) -> None:
    results: list[Receipt | Failure] = []
    builder.build(build_spec, [], results.append)
    assert results == []


def test_a_caller_that_gives_up_is_heard(
    builder: Builder, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    for n in range(4):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", 3)

    class Lost(Exception):
        pass

    def on_done(result: Receipt | Failure) -> None:
        raise Lost

    with pytest.raises(Lost):
        builder.build(build_spec, fakes.tasks_of(build_spec), on_done)


def test_building_again_gives_the_same_receipts(
    builder: Builder, fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    for n in range(3):
        fakes.write_names(tmp_path / "in" / f"{n}.csv", 3)
    first: list[Receipt | Failure] = []
    again: list[Receipt | Failure] = []
    builder.build(build_spec, fakes.tasks_of(build_spec), first.append)
    builder.build(build_spec, fakes.tasks_of(build_spec), again.append)
    assert sorted(first, key=lambda r: r.ordinal) == sorted(again, key=lambda r: r.ordinal)
    assert all(isinstance(result, Receipt) for result in again)


def test_r28_driver_and_builders_see_one_staging_area(builder: Builder, tmp_path: Path) -> None:
    staging = Staging(open_store(str(tmp_path / "staging"), {}, UNLIMITED))
    require_staging_reachable(staging, {}, UNLIMITED, builder)
    assert [info.key for info in staging.store.list()] == []
