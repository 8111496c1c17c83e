"""Plain push and `enableAtomicUpload` in Dagster, on the local stack."""

from __future__ import annotations

import dagster as dg
import pytest
from fakes.locations.code_location import (
    LocationTable,
    gate_evaluations,
    materializations,
    staged_and_published,
)
from fakes.tables import write_table

from pinot_assets.assets.partitions import ALL_FILES

pytestmark = pytest.mark.integration

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR


@pytest.fixture
def plain(table: LocationTable) -> LocationTable:
    table.spec = write_table(table.folder, table.name, {"ingestionMode": "sync"})
    return table


@pytest.fixture
def atomic(table: LocationTable) -> LocationTable:
    options = {"ingestionMode": "sync", "enableAtomicUpload": "true"}
    table.spec = write_table(table.folder, table.name, options)
    return table


def gates(result: dg.ExecuteInProcessResult) -> list[tuple[bool, dg.AssetCheckSeverity]]:
    return [(e.passed, e.severity) for e in gate_evaluations(result)]


def test_a_plain_push_warns_of_failed_files_and_publishes_the_others(plain: LocationTable) -> None:
    plain.write(F1="a", F2="b c")
    plain.corrupt("F3")
    result = plain.publish()
    assert gates(result) == [(False, WARN), (False, WARN)]
    before, after = gate_evaluations(result)
    assert before.description is not None
    assert before.description.startswith("2 of 3 files are built: F3.csv: ")
    assert after.description == "1 file failed; the others are published"
    assert staged_and_published(result)[1].keys() == {"F1.csv", "F2.csv", ALL_FILES}
    assert plain.shown() == ["a", "b", "c"]
    assert plain.observe().session is None

    plain.write(F1="a1", F3="d")
    (plain.folder / "source" / "F2.csv").unlink()
    result = plain.publish()
    assert gates(result) == [(True, ERROR), (True, ERROR)]
    assert plain.shown() == ["a1", "d"]


def test_when_every_file_of_a_plain_push_fails_its_gate_is_shut(plain: LocationTable) -> None:
    plain.write(F1="a")
    plain.publish()
    plain.corrupt("F2")
    result = plain.run()
    assert gates(result) == [(False, ERROR)]
    assert materializations(result, "snapshot") == []
    assert staged_and_published(result)[0] == {}, "what was given up is not staged"
    assert plain.shown() == ["a"]


def test_a_failed_run_with_atomic_upload_shuts_the_gate_and_leaves_nothing_open(
    atomic: LocationTable,
) -> None:
    atomic.write(F1="a")
    atomic.corrupt("F2")
    result = atomic.run()
    assert gates(result) == [(False, ERROR)]
    (evaluation,) = gate_evaluations(result)
    assert evaluation.description is not None
    assert "1 of 2 files are built" in evaluation.description
    assert materializations(result, "snapshot") == []
    assert atomic.observe().session is None
    assert staged_and_published(result)[0] == {}, "what was given up is not staged"
    assert atomic.shown() == []

    atomic.write(F2="b")
    result = atomic.publish()
    assert staged_and_published(result)[0].keys() == {"F1.csv", "F2.csv"}
    assert atomic.shown() == ["a", "b"]
