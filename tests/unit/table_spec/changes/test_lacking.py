"""What a server lacks, of what it reports."""

from __future__ import annotations

from dataclasses import replace

import pytest
from oracle.spec_change_kinds import KINDS

from pinot_assets.pinot.held_segment import HeldSegment
from pinot_assets.table_spec.changes.lacking import built_otherwise, lacking
from pinot_assets.table_spec.changes.recipe import Recipe

ANSWER = {
    "totalDocs": 7,
    "columns": [
        {"columnName": "city", "sorted": True, "dataType": "STRING"},
        {"columnName": "code", "sorted": False, "dataType": "INT", "singleValue": False},
    ],
    "indexes": {
        "city": {"bloom-filter": "NO", "dictionary": "YES", "inverted-index": "YES", "range-index": "NO"},
        "code": {"bloom-filter": "YES", "dictionary": "NO", "inverted-index": "NO", "range-index": "NO"},
    },
    "star-tree-index": [{"dimension-columns": ["city"]}],
}


def recipe(name: str) -> Recipe:
    """That of the table after the kind of change."""
    (kind,) = (kind for kind in KINDS if kind.name == name)
    return kind.after.recipe


def held(**columns: str) -> HeldSegment:
    """A segment whose columns have these indexes, and all other columns none."""
    everything = recipe("a column is added").read["columns"]
    indexes = {column: frozenset({"dictionary", *columns.get(column, "").split()}) for column in everything}
    reported = frozenset({"dictionary", "inverted", "range", "bloom", "json"})
    return HeldSegment(indexes, reported, frozenset(), 0, {}, 40)


def test_an_answer_of_a_server_is_read() -> None:
    one = HeldSegment.from_json(ANSWER)
    assert one.indexes == {"city": {"dictionary", "inverted"}, "code": {"bloom"}}
    assert one.reported == {"bloom", "dictionary", "inverted", "range"}
    assert (one.sorted_columns, one.star_trees, one.rows) == ({"city"}, 1, 7)
    assert one.types == {"city": "STRING", "code": "INT[]"}
    assert HeldSegment.from_json({**ANSWER, "star-tree-index": None}).star_trees == 0


@pytest.mark.parametrize("key", ["totalDocs", "columns", "indexes"])
def test_an_answer_of_another_form_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="in the place of"):
        HeldSegment.from_json({**ANSWER, key: "x"})


@pytest.mark.parametrize(
    ("name", "indexes", "lacks"),
    [
        ("an inverted index is added", {}, ("inverted index of city",)),
        ("an inverted index is added", {"city": "inverted"}, ()),
        ("an inverted index is removed", {"city": "inverted"}, ("no inverted index of city",)),
        ("a bloom filter is added", {"city": "bloom"}, ("bloom index of name", "no bloom index of city")),
        ("a text index is added", {}, ()),
        ("a star-tree is added", {}, ("1 star-tree",)),
        ("a star-tree is removed", {}, ()),
    ],
)
def test_what_a_segment_lacks(name: str, indexes: dict[str, str], lacks: tuple[str, ...]) -> None:
    assert sorted(lacking(recipe(name), held(**indexes))) == sorted(lacks)


def test_a_sorted_column_needs_no_index() -> None:
    city = HeldSegment(held().indexes, held().reported, frozenset({"city"}), 0, {}, 40)
    assert lacking(recipe("an inverted index is added"), city) == ()


def test_a_column_that_is_not_there() -> None:
    some = {column: kinds for column, kinds in held().indexes.items() if column != "extra"}
    without = HeldSegment(some, held().reported, frozenset(), 0, {}, 40)
    assert lacking(recipe("a column with an index is added"), without) == ("column extra",)


def test_an_empty_segment_lacks_nothing() -> None:
    assert lacking(recipe("a column is added"), HeldSegment({}, frozenset(), frozenset(), 0, {}, 0)) == ()


def test_what_no_reload_changes_is_told() -> None:
    wanted = recipe("a column is added")
    types = {
        column: f"{values['dataType']}{'' if values.get('singleValueField', True) else '[]'}"
        for column, values in wanted.read["columns"].items()
    }
    assert built_otherwise(wanted, replace(held(), types=types)) == ()
    assert built_otherwise(wanted, replace(held(), types={})) == ()
    other = replace(held(), types=types | {"city": "LONG[]"}, indexes=held().indexes | {"city": frozenset()})
    told = ("dataType of city (LONG[] there)", "dictionary of city (none there)")
    assert built_otherwise(wanted, other) == told
    assert built_otherwise(wanted, replace(other, rows=0)) == ()
