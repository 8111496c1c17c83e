"""Recipes of a snapshot: numbered once, never twice, and stored so that older objects keep their bytes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pinot_assets.snapshot.manifest import (
    Snapshot,
    SnapshotRef,
    header_from_bytes,
    header_to_bytes,
    snapshot_from,
)
from pinot_assets.snapshot.published_files import (
    PublishedFile,
    PublishedFiles,
    files_among,
    files_to_parquet,
    revisions_of,
)
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.snapshot.recipes import (
    UNKNOWN,
    StoredRecipe,
    in_use,
    merged_recipes,
    revision_of,
    with_recipe,
)

FIRST = StoredRecipe(UNKNOWN, {"filter": "a = 1"}, {}, "2", "0.11")
SECOND = replace(FIRST, read={"filter": "a = 2"})
THIRD = replace(FIRST, write={"sortedColumn": ["a"]})


def numbers(recipes: tuple[StoredRecipe, ...]) -> list[int]:
    return [one.revision for one in recipes]


def test_another_recipe_gets_the_next_number_and_an_equal_one_keeps_its_own() -> None:
    known, first = with_recipe((), FIRST)
    known, second = with_recipe(known, SECOND)
    known, again = with_recipe(known, FIRST)
    assert (first, second, again) == (1, 2, 1)
    assert numbers(known) == [1, 2]
    assert revision_of(known, THIRD) == 3


def test_another_writer_or_target_is_no_other_recipe_and_the_newest_one_is_kept() -> None:
    known, _ = with_recipe((), FIRST)
    later = replace(FIRST, writer="3", target="1.5", schema={"schemaName": "t"})
    known, revision = with_recipe(known, later)
    assert revision == 1
    assert known == (replace(later, revision=1),)


def test_files_without_a_recipe_have_no_revision() -> None:
    known, _ = with_recipe((), FIRST)
    assert with_recipe(known, None) == (known, UNKNOWN)


def test_a_number_is_never_given_twice() -> None:
    """The newest recipe stays even if no file has it any more."""
    known: tuple[StoredRecipe, ...] = ()
    for recipe in (FIRST, SECOND, THIRD):
        known, _ = with_recipe(known, recipe)
    left = in_use(known, {1})
    assert numbers(left) == [1, 3]
    assert with_recipe(left, SECOND)[1] == 4
    assert in_use((), {0}) == ()


def test_after_a_rollback_the_numbers_of_both_snapshots_are_known() -> None:
    target, _ = with_recipe((), FIRST)
    left, _ = with_recipe(target, SECOND)
    assert numbers(merged_recipes(target, left)) == [1, 2]


def file(uri: str, revision: int = UNKNOWN) -> PublishedFile:
    return PublishedFile(uri, Fingerprint(1, 2), "sha", 1, 0, "cp1-0", (), "token", 1.5, revision)


@pytest.mark.parametrize("revision", [UNKNOWN, 3])
def test_a_file_keeps_its_revision(revision: int) -> None:
    rows = PublishedFiles(files_to_parquet([file("a", revision), file("b")], 2))
    assert [one.revision for one in rows] == [revision, UNKNOWN]
    assert revisions_of(rows) == revisions_of([*rows]) == {revision, UNKNOWN}


def test_format_1_and_files_without_a_revision_have_no_column_for_it() -> None:
    of_format_1 = PublishedFiles(files_to_parquet([file("a", 3)]))
    unknown = PublishedFiles(files_to_parquet([file("a")], 2))
    for rows in (of_format_1, unknown):
        assert "revision" not in rows._schema.names
        assert revisions_of(rows) == {UNKNOWN}


def test_files_among_makes_no_rows_where_there_are_none() -> None:
    rows = PublishedFiles(files_to_parquet([file("a"), file("b"), file("a", 2)], 2))
    assert files_among(rows, {"c"}) == []
    assert "_rows" not in vars(rows)
    assert [one.revision for one in files_among(rows, {"a"})] == [UNKNOWN, 2]


@pytest.mark.parametrize("number", [1, 2])
def test_a_header_stores_recipes_from_format_2_on(number: int) -> None:
    recipes, _ = with_recipe((), replace(FIRST, schema={"schemaName": "t"}, table_config={"tableName": "t"}))
    snapshot = Snapshot(1, "t", "cp1-0", "SYNC", "", None, "", "", 0, (), format=number, recipes=recipes)
    data = header_to_bytes(snapshot, SnapshotRef("k", "s"))
    assert ("recipes" in json.loads(data)) == (number == 2)
    back = snapshot_from(header_from_bytes(data), ())
    assert back.recipes == (recipes if number == 2 else ())
    assert header_to_bytes(back, SnapshotRef("k", "s")) == data


def test_a_field_of_a_later_release_is_kept_in_a_recipe() -> None:
    recipes, _ = with_recipe((), FIRST)
    snapshot = Snapshot(1, "t", "cp1-0", "SYNC", "", None, "", "", 0, (), format=2, recipes=recipes)
    header = json.loads(header_to_bytes(snapshot, SnapshotRef("k", "s")))
    header["recipes"][0]["colour"] = "blue"
    back = snapshot_from(header_from_bytes(json.dumps(header).encode()), ())
    assert json.loads(header_to_bytes(back, SnapshotRef("k", "s")))["recipes"][0]["colour"] == "blue"
