"""What the table spec must be for a snapshot to which a rollback leads, and set Pinot's configs back to it.

A rollback brings segments back. It does not change Pinot's schema and table config, nor the YAML file. So
after a rollback over a rebuild, those are of a later revision than the segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.pinot.api import PinotClient
from pinot_assets.session.values.outdated import changes_between, setting_name, stored_recipe
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import revisions_of
from pinot_assets.snapshot.recipes import StoredRecipe, revision_of
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.blocks.pinot_json import FIELD_KINDS
from pinot_assets.table_spec.changes.spec_changes import SpecChange, Verdict
from pinot_assets.table_spec.tables.apply import ApplyPlan, apply_plan, plan_apply


@dataclass(frozen=True, slots=True)
class SpecOfTarget:
    """The revision of the table spec that built a snapshot, where it is not the present one.

    :ivar now: the present revision.
    :ivar changes: what was changed since: `before` is what the snapshot needs.
    """

    recipe: StoredRecipe
    now: int
    changes: tuple[SpecChange, ...]

    @property
    def lines(self) -> Iterator[str]:
        """What a person has to know before the rollback, line by line."""
        revision = self.recipe.revision
        yield f"was built under revision {revision} of the table spec (now {self.now}), which had"
        for change in self.changes:
            before, now = ("not set" if v is None else str(v) for v in (change.before, change.now))
            yield f"{setting_name(change)}: {before} (now {now})"
        yield (
            f"set the YAML file back to that; --apply-config sets Pinot's schema and table config "
            f"to those of revision {revision}"
        )


def spec_of_target(spec: TableSpec, current: Snapshot, target: Snapshot) -> SpecOfTarget | None:
    """Return what the table spec must be for a snapshot; None if it is that, or if it is not known.

    :param current: the ledger.
    """
    used = revisions_of(target.files)
    known = [recipe for recipe in target.recipes if recipe.revision in used]
    if not known:
        return None
    recipe, now = max(known, key=lambda one: one.revision), stored_recipe(spec)
    changes = tuple(c for c in changes_between(recipe, now) if c.verdict is not Verdict.NOTHING)
    return SpecOfTarget(recipe, revision_of(current.recipes, now), changes) if changes else None


def apply_recipe(spec: TableSpec, recipe: StoredRecipe, pinot: PinotClient) -> ApplyPlan:
    """Set Pinot's schema and table config to those of a recipe; columns that were added since stay.

    :returns: what was changed.
    :raises PinotError: Pinot refuses them.
    """
    schema = with_columns(recipe.schema, pinot.get_schema(spec.name) or {})
    plan = plan_apply(replace(spec, schema_json=schema, table_json=dict(recipe.table_config)), pinot)
    apply_plan(plan, pinot)
    return plan


def with_columns(schema: JsonMapping, held: JsonMapping) -> JsonObject:
    """Return the schema with the columns that only the held one has: Pinot removes none."""
    known = {column["name"] for kind in FIELD_KINDS for column in schema.get(kind) or ()}
    added = {
        kind: [column for column in held.get(kind) or () if column["name"] not in known]
        for kind in FIELD_KINDS
    }
    return {**schema, **{kind: [*(schema.get(kind) or ()), *more] for kind, more in added.items() if more}}
