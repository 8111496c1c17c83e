"""Published files that another revision of the table spec built: a warning; without a source an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.looked import looked
from fakes.tables import APPEND, SYNC, write_table

from pinot_assets.core.check_result import Severity
from pinot_assets.health import table_spec
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.outdated import RebuildNeed, need_of_listing, stored_recipe
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Fingerprint, Output
from pinot_assets.snapshot.recipes import with_recipe


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    recipes, _ = with_recipe((), stored_recipe(write_table(tmp_path, "t", SYNC)))
    files = tuple(
        PublishedFile(f"s3://in/{name}", Fingerprint(1, 1), "h", 1, 0, "cp1-0", (output,), revision=1)
        for name in "ab"
        for output in (Output(name, 1, 1, "", 1, "", ""),)
    )
    return Snapshot(1, "t", "cp1-0", "SYNC", "", None, "", "", 0, files, recipes=recipes)


def need(folder: Path, snapshot: Snapshot, *deleted: str) -> RebuildNeed:
    spec = write_table(folder, "t", {**APPEND, "recordReader.prop.delimiter": ";"})
    return need_of_listing(spec, snapshot, NO_HOLD, (), deleted)


def test_all_built_as_the_spec_says(snapshot: Snapshot) -> None:
    answer = table_spec.built_as_specified(looked(snapshot=snapshot, rebuild_need=RebuildNeed()))
    assert (answer.passed, answer.expected, answer.found) == (True, 2, 2)


def test_files_that_wait_for_a_rebuild_warn(tmp_path: Path, snapshot: Snapshot) -> None:
    answer = table_spec.built_as_specified(looked(snapshot=snapshot, rebuild_need=need(tmp_path, snapshot)))
    assert (answer.passed, answer.severity, answer.found) == (False, Severity.WARN, 0)
    assert answer.message.startswith("2 of 2 segments were built under revision 1 (now 2): rows changed by")
    assert answer.next_step == "`pinot-assets rebuild t`"
    assert answer.numbers == {"files_outdated": 2, "files_outdated_gone": 0}


def test_a_file_that_left_the_source_is_an_error(tmp_path: Path, snapshot: Snapshot) -> None:
    found = need(tmp_path, snapshot, "s3://in/a")
    answer = table_spec.built_as_specified(looked(snapshot=snapshot, rebuild_need=found))
    assert (answer.severity, answer.found) == (Severity.ERROR, 0)
    assert "the source does not have a" in answer.message
    assert answer.numbers == {"files_outdated": 1, "files_outdated_gone": 1}
