"""What the table spec must be for a snapshot to which a rollback leads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes.pinot.memory import FakePinot
from fakes.tables import SYNC, write_table

from pinot_assets.core.json_object import JsonObject
from pinot_assets.session.rollback.spec_of_target import apply_recipe, spec_of_target, with_columns
from pinot_assets.session.values.outdated import stored_recipe
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.snapshot.recipes import UNKNOWN, StoredRecipe, with_recipe
from pinot_assets.table_spec import TableSpec


def snapshot(recipes: tuple[StoredRecipe, ...], *revisions: int) -> Snapshot:
    files = tuple(
        PublishedFile(f"f{n}", Fingerprint(1, 1), "h", 1, 0, "cp1-0", (), revision=revision)
        for n, revision in enumerate(revisions)
    )
    return Snapshot(1, "t", "cp1-0", "SYNC", "", None, "", "", 0, files, recipes=recipes)


def indexed(spec: TableSpec) -> TableSpec:
    index = spec.table_json["tableIndexConfig"] | {"invertedIndexColumns": ["v"]}
    return replace(spec, table_json={**spec.table_json, "tableIndexConfig": index})


@pytest.fixture
def before(tmp_path: Path) -> TableSpec:
    return write_table(tmp_path, "t", SYNC)


@pytest.fixture
def now(tmp_path: Path) -> TableSpec:
    return indexed(write_table(tmp_path, "t", {**SYNC, "recordReader.prop.delimiter": ";"}))


def test_the_newest_recipe_of_its_files_says_what_the_spec_must_be(before: TableSpec, now: TableSpec) -> None:
    known, first = with_recipe((), stored_recipe(before))
    both, second = with_recipe(known, stored_recipe(now))
    found = spec_of_target(now, snapshot(both, second), snapshot(known, first, UNKNOWN))
    assert found is not None
    assert (found.recipe.revision, found.now) == (1, 2)
    lines = [*found.lines]
    assert lines[0] == "was built under revision 1 of the table spec (now 2), which had"
    assert "recordReader.prop.delimiter: not set (now ;)" in lines
    assert any(line.startswith("invertedIndexColumns of v: not set") for line in lines)
    assert "--apply-config" in lines[-1]


def test_nothing_is_to_be_set_for_the_same_spec_nor_for_an_unknown_one(
    before: TableSpec, now: TableSpec
) -> None:
    known, first = with_recipe((), stored_recipe(before))
    there = snapshot(known, first)
    assert spec_of_target(before, there, there) is None
    assert spec_of_target(now, there, snapshot(known, UNKNOWN)) is None
    assert spec_of_target(now, there, snapshot((), UNKNOWN)) is None


def test_configs_are_set_back_and_columns_that_were_added_since_stay(
    before: TableSpec, now: TableSpec
) -> None:
    recipe = stored_recipe(before)
    grown = [*now.schema_json["dimensionFieldSpecs"], {"name": "n", "dataType": "INT"}]
    pinot = FakePinot()
    pinot.put_schema({**now.schema_json, "dimensionFieldSpecs": grown})
    pinot.create_table(now.table_json)
    apply_recipe(now, recipe, pinot)
    schema, config = pinot.get_schema("t"), pinot.get_table_config("t")
    assert schema is not None
    assert config is not None
    assert [column["name"] for column in schema["dimensionFieldSpecs"]] == ["v", "n"]
    assert not config["tableIndexConfig"].get("invertedIndexColumns")


def test_a_kind_of_columns_that_only_pinot_has_is_kept_too() -> None:
    schema: JsonObject = {"schemaName": "t", "dimensionFieldSpecs": [{"name": "v", "dataType": "INT"}]}
    held = {**schema, "metricFieldSpecs": [{"name": "m", "dataType": "INT"}]}
    assert with_columns(schema, held) == held
    assert with_columns(schema, {}) == schema
