"""Where a server holds a segment otherwise than the spec says, as far as its report shows."""

from __future__ import annotations

from collections.abc import Iterator

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot.held_segment import HeldSegment
from pinot_assets.table_spec.changes.recipe import COLUMNS, INDEXES, Recipe


def lacking(recipe: Recipe, held: HeldSegment) -> tuple[str, ...]:
    """Return what a reload of the segment would build or remove: `column city`, `inverted index of city`.

    Compares only what servers build and report: columns, indexes, star-trees.
    """
    return tuple(_lacking(recipe, held)) if held.rows else ()


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
