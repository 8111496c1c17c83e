"""Which published files another revision of the table spec built, and what of them can be built again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.tables import APPEND, SWAP, SYNC, write_table

from pinot_assets.core.json_object import JsonObject
from pinot_assets.session.values.hold import NO_HOLD, Hold
from pinot_assets.session.values.outdated import (
    need_of_listing,
    outdated,
    outdated_values,
    spec_changes_since,
    stored_recipe,
    waiting_words,
)
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Fingerprint, Output
from pinot_assets.snapshot.recipes import StoredRecipe, with_recipe
from pinot_assets.table_spec import TableSpec

SEMICOLONS = {"recordReader.prop.delimiter": ";"}


def spec_of(folder: Path, options: JsonObject, **more: str) -> TableSpec:
    return write_table(folder, "t", {**options, **more})


def file(uri: str, revision: int, segments: int = 1, n: int = 1) -> PublishedFile:
    outputs = tuple(Output(f"{uri}.{n}.{k}", 1, 5, "", 1, "", "") for k in range(segments))
    return PublishedFile(
        f"s3://in/{uri}", Fingerprint(100, n), "sha", 5 * segments, 0, "cp1-0", outputs, "v", 2.0, revision
    )


def published(recipes: tuple[StoredRecipe, ...], *files: PublishedFile) -> Snapshot:
    return Snapshot(1, "t_OFFLINE", "cp1-0", "SYNC", "e", None, "d", "f", 0, files, recipes=recipes)


@pytest.fixture
def before(tmp_path: Path) -> Snapshot:
    """Two files of revision 1, one of a release that stored no recipe."""
    recipes, _ = with_recipe((), stored_recipe(spec_of(tmp_path, SYNC)))
    return published(recipes, file("a", 1), file("b", 1, segments=2), file("c", 0))


def test_nothing_is_outdated_while_the_spec_says_the_same(tmp_path: Path, before: Snapshot) -> None:
    found = outdated(spec_of(tmp_path, SYNC, minServer="1.0", consistentPushMaxRetries="7"), before)
    assert (found.now, found.older) == (1, ())
    assert outdated(spec_of(tmp_path, SYNC), None).older == ()


def test_files_of_an_older_revision_are_outdated_and_unknown_ones_are_not(
    tmp_path: Path, before: Snapshot
) -> None:
    found = outdated(spec_of(tmp_path, SYNC, **SEMICOLONS), before)
    assert [one.uri for one in found.files] == ["s3://in/a", "s3://in/b"]
    assert str(found) == (
        "3 of 4 segments were built under revision 1 (now 2): rows changed by recordReader.prop.delimiter"
    )
    assert found.effort == "2 files of 200 B with 15 rows; about 4 s of CPU, as last time"
    assert outdated_values(found)["older"][0]["changes"][0]["setting"] == "recordReader.prop.delimiter"


def test_a_change_that_needs_no_rebuild_makes_no_file_outdated(tmp_path: Path, before: Snapshot) -> None:
    spec = spec_of(tmp_path, SYNC)
    index = spec.table_json["tableIndexConfig"] | {"invertedIndexColumns": ["v"]}
    indexed = replace(spec, table_json={**spec.table_json, "tableIndexConfig": index})
    assert outdated(indexed, before).older == ()
    assert [change.setting for change in spec_changes_since(indexed, before)] == ["invertedIndexColumns"]


def test_a_change_of_the_form_alone_does_not_say_that_rows_changed(tmp_path: Path, before: Snapshot) -> None:
    spec = spec_of(tmp_path, SYNC)
    index = spec.table_json["tableIndexConfig"] | {"sortedColumn": ["v"]}
    found = outdated(replace(spec, table_json={**spec.table_json, "tableIndexConfig": index}), before)
    assert str(found).endswith("(now 2): their form changed by sortedColumn")


def test_a_swap_has_no_outdated_files(tmp_path: Path, before: Snapshot) -> None:
    assert outdated(spec_of(tmp_path, SWAP, **SEMICOLONS), before).older == ()


def test_several_older_revisions_are_named(tmp_path: Path, before: Snapshot) -> None:
    recipes, second = with_recipe(before.recipes, stored_recipe(spec_of(tmp_path, SYNC, **SEMICOLONS)))
    snapshot = published(recipes, file("a", 1), file("b", second))
    found = outdated(spec_of(tmp_path, SYNC, **{"recordReader.prop.delimiter": "|"}), snapshot)
    assert str(found).startswith("2 of 2 segments were built under revisions 1 and 2 (now 3)")


def test_a_file_without_rows_is_outdated_too(tmp_path: Path, before: Snapshot) -> None:
    found = outdated(
        spec_of(tmp_path, SYNC, **SEMICOLONS), published(before.recipes, file("a", 1, segments=0))
    )
    assert str(found).startswith("1 file without rows was built under revision 1")


# --- beside the source ----------------------------------------------------------------------------


def test_a_file_that_left_the_source_is_gone_in_append_and_removed_in_sync(
    tmp_path: Path, before: Snapshot
) -> None:
    for options, gone in ((APPEND, ["s3://in/a"]), (SYNC, [])):
        need = need_of_listing(spec_of(tmp_path, options, **SEMICOLONS), before, NO_HOLD, (), ["s3://in/a"])
        assert [one.uri for one in need.possible.files] == ["s3://in/b"]
        assert [one.uri for one in need.gone.files] == gone


def test_a_rewritten_file_is_neither(tmp_path: Path, before: Snapshot) -> None:
    need = need_of_listing(spec_of(tmp_path, SYNC, **SEMICOLONS), before, NO_HOLD, ["s3://in/a"], ())
    assert [one.uri for one in (*need.possible.files, *need.gone.files)] == ["s3://in/b"]


def test_the_version_that_a_rollback_shows_is_not_in_the_source(tmp_path: Path, before: Snapshot) -> None:
    hold = Hold({"s3://in/a": "token"}, ())
    need = need_of_listing(spec_of(tmp_path, SYNC, **SEMICOLONS), before, hold, (), ())
    assert [one.uri for one in need.gone.files] == ["s3://in/a"]


def test_older_versions_of_append_are_gone(tmp_path: Path, before: Snapshot) -> None:
    snapshot = published(before.recipes, file("a", 1, n=1), file("a", 1, n=2))
    need = need_of_listing(spec_of(tmp_path, APPEND, **SEMICOLONS), snapshot, NO_HOLD, (), ())
    assert [one.fingerprint.mtime_us for one in need.possible.files] == [2]
    assert [one.fingerprint.mtime_us for one in need.gone.files] == [1]


def test_words_name_what_waits_and_what_stays(tmp_path: Path, before: Snapshot) -> None:
    need = need_of_listing(spec_of(tmp_path, APPEND, **SEMICOLONS), before, NO_HOLD, (), ["s3://in/a"])
    waits, stays = waiting_words("t", need)
    assert waits.startswith("2 of 4 segments were built under revision 1")
    assert waits.endswith("; `pinot-assets rebuild t` builds them again")
    assert stays.endswith("because the source lacks a")
    assert [*waiting_words("t", need, {"s3://in/b"})] == [stays]
