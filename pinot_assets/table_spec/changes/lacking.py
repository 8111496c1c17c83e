"""How a segment differs from what the spec says, as far as the report of a server shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot.held_segment import HeldSegment, type_text
from pinot_assets.table_spec.changes.recipe import COLUMNS, INDEXES, Recipe

_BY_SIZE: Final = ("optimizeDictionary", "optimizeDictionaryForMetrics")
"""With one of these, values decide whether a column gets a dictionary."""


def lacking(recipe: Recipe, held: HeldSegment) -> tuple[str, ...]:
    """Return what a reload of the segment would build or remove: `column city`, `inverted index of city`.

    Compares only what servers build and report: columns, indexes, star-trees.
    """
    return tuple(_lacking(recipe, held)) if held.rows else ()


def built_otherwise(recipe: Recipe, held: HeldSegment) -> tuple[str, ...]:
    """Return what no reload changes in a segment: `dataType of price (LONG there)`.

    Compares the types of columns and missing dictionaries: metadata say no more of what built a segment.
    """
    return tuple(_built_otherwise(recipe, held)) if held.rows else ()


def _built_otherwise(recipe: Recipe, held: HeldSegment) -> Iterator[str]:
    sizes_decide = any(setting in recipe.write for setting in _BY_SIZE)
    for column, values in recipe.read[COLUMNS].items():
        if (there := held.types.get(column)) is None:
            continue  # a reload brings the column
        wanted = type_text(values["dataType"], values.get("singleValueField", True))
        if there != wanted:
            yield f"dataType of {column} ({there} there)"
        is_raw = recipe.write[COLUMNS][column].get("noDictionaryColumns")
        if not (is_raw or sizes_decide or "dictionary" in held.indexes.get(column, ())):
            yield f"dictionary of {column} (none there)"


def _lacking(recipe: Recipe, held: HeldSegment) -> Iterator[str]:
    for column in recipe.read[COLUMNS]:
        if (kinds := held.indexes.get(column)) is None:
            yield f"column {column}"
            continue
        settings = recipe.write[COLUMNS][column]
        for kind, setting in INDEXES.items():
            # A sorted column needs neither; up to 1.4 no inverted index is built without a dictionary.
            needless = kind in ("inverted", "range") and column in held.sorted_columns
            needless = needless or (kind == "inverted" and "dictionary" not in kinds)
            if kind in held.reported and not needless and (setting in settings) != (kind in kinds):
                yield f"{'' if setting in settings else 'no '}{kind} index of {column}"
    yield from _star_trees(recipe.write, held.star_trees)


def _star_trees(write: JsonObject, held: int) -> Iterator[str]:
    if write.get("enableDynamicStarTreeCreation") and not write.get("enableDefaultStarTree"):
        wanted = len(write.get("starTreeIndexConfigs", ()))
        if wanted != held:
            yield f"{wanted or 'no'} star-tree{'' if wanted == 1 else 's'}"
