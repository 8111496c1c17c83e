"""What built the files of a snapshot: recipes, each stored once and named by its revision.

A recipe is what the user said (`table_spec/changes/recipe.py`); to this module its values are opaque. Writer
version and target release are stored beside it, and never make another revision: they are no change of the
user's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.stored_format import Open

UNKNOWN = 0
"""Revision of a file that a release before recipes built, or whose recipe was lost."""


@dataclass(frozen=True, slots=True)
class StoredRecipe(Open):
    """What built files of a table.

    :ivar revision: its number, from 1 on; `UNKNOWN` before a snapshot has given it one.
    :ivar read: what decides rows and values: `Recipe.read`.
    :ivar write: encodings, indexes and the like: `Recipe.write`.
    :ivar writer: version of the segment writer.
    :ivar target: the oldest Pinot server that must be able to read the segments.
    :ivar schema: the Pinot schema then.
    :ivar table_config: the table config then. A rollback offers to apply both.
    """

    revision: int
    read: JsonMapping
    write: JsonMapping
    writer: str = ""
    target: str = ""
    schema: JsonMapping = field(default_factory=dict)
    table_config: JsonMapping = field(default_factory=dict)

    def is_same(self, other: StoredRecipe) -> bool:
        """Whether the user said the same in both."""
        return (self.read, self.write) == (other.read, other.write)


def with_recipe(
    known: Sequence[StoredRecipe], recipe: StoredRecipe | None
) -> tuple[tuple[StoredRecipe, ...], int]:
    """Return the recipes with one more, and its revision; an equal one keeps its revision.

    :param known: of the ledger.
    :param recipe: None if the files that were built have none; then their revision is `UNKNOWN`.
    """
    if recipe is None:
        return tuple(known), UNKNOWN
    revision = revision_of(known, recipe)
    others = (one for one in known if one.revision != revision)
    return tuple(sorted((*others, replace(recipe, revision=revision)), key=_revision)), revision


def revision_of(known: Sequence[StoredRecipe], recipe: StoredRecipe) -> int:
    """Return the revision that a publication with this recipe gets."""
    same = next((one.revision for one in known if one.is_same(recipe)), None)
    return same if same is not None else 1 + max(map(_revision, known), default=UNKNOWN)


def in_use(recipes: Iterable[StoredRecipe], revisions: Collection[int]) -> tuple[StoredRecipe, ...]:
    """Return the recipes of these revisions, and the newest one, so that no number is given twice."""
    ordered = sorted(recipes, key=_revision)
    return tuple(one for one in ordered if one.revision in revisions or one is ordered[-1])


def merged_recipes(some: Iterable[StoredRecipe], others: Iterable[StoredRecipe]) -> tuple[StoredRecipe, ...]:
    """Return the recipes of two snapshots of one table; of the same revision, the one of `some` counts."""
    by_revision = {one.revision: one for one in (*others, *some)}
    return tuple(by_revision[number] for number in sorted(by_revision))


def _revision(recipe: StoredRecipe) -> int:
    return recipe.revision
