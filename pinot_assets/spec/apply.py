"""Make Pinot hold what a spec says, and notice when it no longer does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pinot_assets.effects import recording
from pinot_assets.errors import SpecDrift
from pinot_assets.spec.difference import Difference, diff_schema, diff_table
from pinot_assets.spec.model import TableSpec
from pinot_assets.spec.realtime import AnyTableSpec, RealtimeTableSpec

Action = Literal["create", "update", "keep"]


class SchemaAndTableStore(Protocol):
    """The part of a Pinot controller that is needed here; `table` is a raw table name."""

    def get_schema(self, name: str) -> dict[str, Any] | None:
        """The schema as Pinot holds it, None where there is none."""
        ...

    def put_schema(self, schema: Mapping[str, Any]) -> None:
        """Create the schema or update it in place."""
        ...

    def get_table_config(self, table: str) -> dict[str, Any] | None:
        """The OFFLINE table config as Pinot holds it, None where there is none."""
        ...

    def get_realtime_config(self, table: str) -> dict[str, Any] | None:
        """The REALTIME table config as Pinot holds it, None where there is none."""
        ...

    def create_table(self, config: Mapping[str, Any]) -> None:
        """Create the table."""
        ...

    def update_table(self, config: Mapping[str, Any]) -> None:
        """Replace the config of an existing table."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """What applying a spec would do to its schema or its table."""

    action: Action
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """What applying one spec would do to Pinot."""

    spec: AnyTableSpec
    schema: Change
    table: Change

    @property
    def changes_nothing(self) -> bool:
        """Whether Pinot already holds what the spec says."""
        return self.schema.action == self.table.action == "keep"


def plan_apply(spec: AnyTableSpec, store: SchemaAndTableStore) -> ApplyPlan:
    """Look what applying would change; changes nothing itself.

    :raises PinotError: Pinot could not be asked.
    """
    schema, table = store.get_schema(spec.name), held_config(spec, store)
    return ApplyPlan(
        spec,
        Change("create", ()) if schema is None else _change(diff_schema(spec.schema_json, schema)),
        Change("create", ()) if table is None else _change(diff_table(spec.table_json, table)),
    )


def apply_plan(plan: ApplyPlan, store: SchemaAndTableStore) -> None:
    """Carry out a plan, the schema first, and read back what Pinot made of it.

    :raises PinotError: Pinot refused (a column removed or its type changed, for one).
    :raises SpecDrift: Pinot accepted everything and holds something else, so that every run would refuse.
    """
    with recording(store, f"`pinot-assets tables apply {plan.spec.name}` does what is left") as door:
        left = _applied(plan, door)
    if left:
        raise SpecDrift(
            f"Pinot took the configs of {plan.spec.name} but did not keep all of them:{_listed(left)}",
            hint="this Pinot does not know these settings, or rewrites them: take them out of the spec",
        )


def _applied(plan: ApplyPlan, store: SchemaAndTableStore) -> list[Difference]:
    if plan.schema.action != "keep":
        store.put_schema(plan.spec.schema_json)
    if plan.table.action == "create":
        store.create_table(plan.spec.table_json)
    elif plan.table.action == "update":
        store.update_table(plan.spec.table_json)
    return drift(plan.spec, store)


def drift(spec: AnyTableSpec, store: SchemaAndTableStore) -> list[Difference]:
    """Where Pinot is not what the spec says; a missing schema or table is one difference.

    :raises PinotError: Pinot could not be asked.
    """
    schema, table = store.get_schema(spec.name), held_config(spec, store)
    return [
        *(
            [Difference("schema", spec.name, None)]
            if schema is None
            else diff_schema(spec.schema_json, schema)
        ),
        *(
            [Difference("table", spec.name_with_type, None)]
            if table is None
            else diff_table(spec.table_json, table)
        ),
    ]


def held_config(spec: AnyTableSpec, store: SchemaAndTableStore) -> dict[str, Any] | None:
    """The table config as Pinot holds it, None where it has no such table.

    :raises PinotError: Pinot could not be asked.
    """
    if isinstance(spec, RealtimeTableSpec):
        return store.get_realtime_config(spec.name)
    return store.get_table_config(spec.name)


def held_table_config(spec: TableSpec, store: SchemaAndTableStore) -> Mapping[str, Any]:
    """As Pinot holds it, which may say more than the spec; the spec's where Pinot has none."""
    return store.get_table_config(spec.name) or spec.table_json


def refuse_drift(spec: TableSpec, store: SchemaAndTableStore) -> None:
    """What a run does first.

    :raises SpecDrift: Pinot's schema or table config is not what the spec says; lists where.
    :raises PinotError: Pinot could not be asked.
    """
    if found := drift(spec, store):
        raise SpecDrift(
            f"Pinot is not what {spec.path} says:{_listed(found)}",
            hint=f"pinot-assets tables apply {spec.name}, or change the spec",
        )


def _change(differences: list[Difference]) -> Change:
    return Change("update" if differences else "keep", tuple(differences))


def _listed(differences: list[Difference]) -> str:
    return "".join(f"\n  {difference}" for difference in differences)
