"""Make Pinot hold what a spec says, and notice when it no longer does.

Several tables can be applied to one Pinot: one that cannot be applied keeps no other from its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

from pinot_assets.core.effects import recording
from pinot_assets.core.exit_codes import ExitCode, code_of, worst
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import (
    PinotAssetsError,
    PinotError,
    PinotUnreachable,
    SpecDrift,
    SpecError,
    SwitchStateUnknown,
)
from pinot_assets.pinot.api import PinotClient
from pinot_assets.table_spec.blocks.pinot_reach import literal_secrets, refused_schema, refused_table
from pinot_assets.table_spec.tables.difference import SpecDifference, diff_schema, diff_table
from pinot_assets.table_spec.tables.specs import AnyTableSpec, LeftOut, RealtimeTableSpec, TableSpec
from pinot_assets.table_spec.yaml.document import show_path

Action = Literal["create", "update", "keep"]
_COLUMN: Final = "schema.columns."


@dataclass(frozen=True, slots=True)
class Change:
    """What applying a spec would do to its schema or its table."""

    action: Action
    differences: tuple[SpecDifference, ...]


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """What applying one spec would do to Pinot.

    :ivar lasting: what of it Pinot cannot take back, one sentence each without a final full stop.
    """

    spec: AnyTableSpec
    schema: Change
    table: Change
    lasting: tuple[str, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        """Whether Pinot already holds what the spec says."""
        return self.schema.action == self.table.action == "keep"


def plan_apply(spec: AnyTableSpec, store: PinotClient) -> ApplyPlan:
    """Look what applying would change; changes nothing itself.

    :raises PinotError: Pinot could not be asked.
    """
    schema, table = store.get_schema(spec.name), held_config(spec, store)
    of_schema = Change("create", ()) if schema is None else _change(diff_schema(spec.schema_json, schema))
    of_table = Change("create", ()) if table is None else _change(diff_table(spec.table_json, table))
    return ApplyPlan(spec, of_schema, of_table, tuple(_lasting(of_schema, of_table)))


def refuse_unless_valid(plan: ApplyPlan, store: PinotClient) -> None:
    """Ask the policy and Pinot whether they take schema and table config, before anything of them is there.

    :raises SpecError: the policy refuses what Pinot would reach by them. Nothing was changed.
    :raises PinotError: Pinot would not take them, or could not be asked. Nothing was changed.
    """
    if plan.changes_nothing:
        return
    _require_allowed(plan.spec)
    try:
        store.validate_table(plan.spec.schema_json, plan.spec.table_json)
    except PinotUnreachable:
        raise
    except PinotError as refusal:
        raise PinotError(
            f"Pinot would not take {plan.spec.name_with_type}; nothing was changed",
            why=refusal.reason,
            hint=f"correct {plan.spec.path} and apply it again",
        ) from refusal


def apply_plan(plan: ApplyPlan, store: PinotClient) -> None:
    """Carry out a plan, the schema first, and read back what Pinot made of it.

    Pinot is asked first whether it would take both. A schema that this made, and of which no table is made
    because Pinot refuses that, is deleted again: it would stand in the way of its own correction.

    :raises PinotError: Pinot refused (a column removed or its type changed, for one); says what is left.
    :raises SpecDrift: Pinot accepted everything and holds something else, so that every run would refuse.
    """
    with recording(store, f"`pinot-assets tables apply {plan.spec.name}` does what is left") as pinot:
        refuse_unless_valid(plan, pinot)
        left = _applied(plan, pinot)
    if left:
        raise SpecDrift(
            f"Pinot took the configs of {plan.spec.name} but did not keep all of them:{_listed(left)}",
            hint="this Pinot does not know these settings, or rewrites them: take them out of the spec",
        )


def _applied(plan: ApplyPlan, store: PinotClient) -> list[SpecDifference]:
    """Write both, and say what Pinot made otherwise."""
    spec = plan.spec
    is_new = plan.schema.action == "create" and store.get_schema(spec.name) is None
    if plan.schema.action != "keep":
        store.put_schema(spec.schema_json)
    try:
        if plan.table.action == "create":
            store.create_table(spec.table_json)
        elif plan.table.action == "update":
            store.update_table(spec.table_json)
    except (SwitchStateUnknown, PinotUnreachable):
        raise  # the table may be there, or be made by the next call, and would lack its schema
    except PinotError as refusal:
        hints = filter(None, (refusal.hint, _schema_after(plan, is_new, store)))
        raise type(refusal)(refusal.what, why=refusal.why, hint="; ".join(hints) or None) from refusal
    return drift(spec, store)


def _schema_after(plan: ApplyPlan, is_new: bool, store: PinotClient) -> str:
    """What becomes of the schema of a table that Pinot refuses."""
    name = plan.spec.name
    if not is_new:
        return f"the schema {name} stays as it is now" if plan.schema.action == "update" else ""
    try:
        # Pinot 0.11.0 deletes a schema in use, too.
        if store.get_table_config(name) is not None or store.get_realtime_config(name) is not None:
            return f"the schema {name} stays: a table uses it by now"
        store.delete_schema(name)
    except PinotError as error:
        return f"the schema {name}, which this made, is still there: {error.reason}"
    return f"the schema {name}, which this had made, was deleted again"


def _lasting(schema: Change, table: Change) -> Iterator[str]:
    """What of these changes no later change undoes."""
    absent = [d.path.removeprefix(_COLUMN) for d in schema.differences if d.in_pinot is None]
    if added := [name for name in absent if "." not in name]:
        what = "the column" if len(added) == 1 else "the columns"
        yield f"Pinot takes no column out of a schema again: {what} {', '.join(added)} will stay"
    paths = {d.path for d in table.differences}
    if paths & {f"table.segmentsConfig.retentionTime{part}" for part in ("Unit", "Value")}:
        yield "Pinot deletes segments that are older than the new retention, and does not bring them back"
    if "table.segmentsConfig.replacedSegmentsRetentionPeriod" in paths:
        yield (
            "Pinot keeps what earlier switches replaced for the new replacedSegmentsRetentionPeriod only; "
            "after that no revert leads back to it"
        )


def drift(spec: AnyTableSpec, store: PinotClient) -> list[SpecDifference]:
    """Where Pinot is not what the spec says; a missing schema or table is one difference.

    :raises PinotError: Pinot could not be asked.
    """
    schema, table = store.get_schema(spec.name), held_config(spec, store)
    no_schema = SpecDifference("schema", spec.name, None)
    no_table = SpecDifference("table", spec.name_with_type, None)
    of_schema = [no_schema] if schema is None else diff_schema(spec.schema_json, schema)
    return of_schema + ([no_table] if table is None else diff_table(spec.table_json, table))


def held_config(spec: AnyTableSpec, store: PinotClient) -> JsonObject | None:
    """The table config as Pinot holds it, None where it has no such table.

    :raises PinotError: Pinot could not be asked.
    """
    is_realtime = isinstance(spec, RealtimeTableSpec)
    return store.get_realtime_config(spec.name) if is_realtime else store.get_table_config(spec.name)


def held_table_config(spec: TableSpec, store: PinotClient) -> JsonMapping:
    """As Pinot holds it, which may say more than the spec; the spec's where Pinot has none."""
    return store.get_table_config(spec.name) or spec.table_json


def refuse_drift(spec: TableSpec, store: PinotClient) -> None:
    """What a run does first.

    :raises SpecDrift: Pinot's schema or table config is not what the spec says; lists where.
    :raises PinotError: Pinot could not be asked.
    """
    if differences := drift(spec, store):
        raise SpecDrift(
            f"Pinot is not what {spec.path} says:{_listed(differences)}",
            hint=f"pinot-assets tables apply {spec.name}, or change the spec",
        )


def _change(differences: list[SpecDifference]) -> Change:
    return Change("update" if differences else "keep", tuple(differences))


def _listed(differences: list[SpecDifference]) -> str:
    return "".join(f"\n  {difference}" for difference in differences)


def _require_allowed(spec: AnyTableSpec) -> None:
    """Hand nothing to Pinot that the policy refuses, however the spec was made.

    :raises SpecError: it refuses something; says which line of the policy would allow it.
    """
    of_table = (*refused_table(spec.table_json, spec.policy), *literal_secrets(spec.table_json))
    of_schema = refused_schema(spec.schema_json, spec.policy)
    for part, refused in (("schema", of_schema), ("table", of_table)):
        for path, refusal in refused:
            raise SpecError(
                f"{spec.path}: {show_path((part, *path))} {refusal.reason}; nothing was changed",
                hint=refusal.fix,
            )


@dataclass(frozen=True, slots=True)
class ApplyOutcome:
    """How far one table came.

    :ivar name: its raw name.
    :ivar table: its name with type.
    :ivar plan: what applying it would change; None where that could not be seen.
    :ivar error: why it is not applied.
    :ivar applied: Pinot was changed, and holds what the spec says.
    """

    name: str
    table: str
    plan: ApplyPlan | None = None
    error: PinotAssetsError | None = None
    applied: bool = False

    @property
    def due(self) -> ApplyPlan | None:
        """What is to be applied; None where there is nothing to change, or something against it."""
        return None if self.error or self.plan is None or self.plan.changes_nothing else self.plan


def plan_each(specs: Iterable[AnyTableSpec], store: PinotClient) -> list[ApplyOutcome]:
    """Look what applying each would change.

    :raises PinotUnreachable: no Pinot answers, so that it is the same for all of them.
    """
    return [
        _tried(ApplyOutcome(spec.name, spec.name_with_type), partial(plan_apply, spec, store))
        for spec in specs
    ]


def check_each(
    fates: Iterable[ApplyOutcome], store: PinotClient, realtime_gate: Callable[[ApplyPlan], None]
) -> list[ApplyOutcome]:
    """Ask for each that is due whether it may be applied: a REALTIME table's preflight, and Pinot itself.

    :raises PinotUnreachable: no Pinot answers, so that it is the same for all of them.
    """

    def checked(plan: ApplyPlan) -> ApplyPlan:
        if isinstance(plan.spec, RealtimeTableSpec):
            realtime_gate(plan)
        refuse_unless_valid(plan, store)
        return plan

    return [_tried(fate, partial(checked, fate.due)) if fate.due else fate for fate in fates]


def apply_each(fates: Iterable[ApplyOutcome], store: PinotClient) -> list[ApplyOutcome]:
    """Apply each that is due; once Pinot does not answer any more, the rest is not tried."""
    done: list[ApplyOutcome] = []
    gone = False
    for fate in fates:
        outcome = fate
        if fate.due and gone:
            outcome = replace(fate, error=PinotUnreachable("it was not tried", why="Pinot went away"))
        elif fate.due:
            try:
                apply_plan(fate.due, store)
                outcome = replace(fate, applied=True)
            except PinotAssetsError as error:
                gone = isinstance(error, PinotUnreachable)
                outcome = replace(fate, error=error)
        done.append(outcome)
    return done


def exit_code_of(fates: Iterable[ApplyOutcome], left_out: Sequence[LeftOut]) -> ExitCode:
    """What a command ends with."""
    codes = [code_of(fate.error) for fate in fates if fate.error is not None]
    return worst([*codes, *([ExitCode.ERROR] if left_out else [])])


def _tried(fate: ApplyOutcome, step: Callable[[], ApplyPlan]) -> ApplyOutcome:
    try:
        return replace(fate, plan=step())
    except PinotUnreachable:
        raise
    except PinotAssetsError as error:
        return replace(fate, error=error)
