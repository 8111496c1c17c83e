"""Apply table specs to Pinot.

Several tables can be applied to one Pinot: when one cannot be applied, the others still are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

from pinot_assets.core.effects import recording
from pinot_assets.core.exit_codes import ExitCode, code_of, worst
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
from pinot_assets.table_spec.changes.recipe import provenance_of, recipe_from, recipe_of
from pinot_assets.table_spec.changes.spec_changes import COLUMN, SpecChange, Verdict, spec_changes
from pinot_assets.table_spec.tables.difference import SpecDifference, diff_schema, diff_table
from pinot_assets.table_spec.tables.drift import difference_lines, drift, held_config
from pinot_assets.table_spec.tables.reload import (
    Progress,
    ReloadPlan,
    carry_out,
    ignore_progress,
    plan_reload,
)
from pinot_assets.table_spec.tables.specs import AnyTableSpec, LeftOut, RealtimeTableSpec, TableSpec
from pinot_assets.table_spec.yaml.document import show_path

Action = Literal["create", "update", "keep"]
_COLUMN: Final = "schema.columns."


@dataclass(frozen=True, slots=True)
class Change:
    """What applying a spec would do to its schema or to its table config."""

    action: Action
    differences: tuple[SpecDifference, ...]


@dataclass(frozen=True, slots=True)
class ApplyPlan:
    """What applying one spec would do to Pinot.

    :ivar lasting: changes that Pinot cannot undo, one sentence each without a final full stop.
    :ivar changes: what the differences mean for published segments.
    :ivar reload: the segments that servers have to reload.
    """

    spec: AnyTableSpec
    schema: Change
    table: Change
    lasting: tuple[str, ...] = ()
    changes: tuple[SpecChange, ...] = ()
    reload: ReloadPlan = field(default_factory=ReloadPlan)

    @property
    def changes_nothing(self) -> bool:
        """Whether Pinot, with its servers, already holds what the spec says."""
        return self.holds_configs and not self.reload.segments

    @property
    def holds_configs(self) -> bool:
        """Whether schema and table config in Pinot are as the spec says."""
        return self.schema.action == self.table.action == "keep"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What queries will see until it is over, one sentence each without a final full stop."""
        if not self.reload.segments:
            return ()
        added = [one.column for one in self.changes if one.setting == COLUMN and one.before is None]
        if not added:
            return ()
        names, is_one = ", ".join(added), len(added) == 1
        return (
            f"until they are reloaded, {self.reload} are left out of queries that name the "
            f"{'column' if is_one else 'columns'} {names}",
        )


def plan_apply(spec: AnyTableSpec, store: PinotClient) -> ApplyPlan:
    """Compare the spec with Pinot and return what applying it would change. This changes nothing.

    :raises PinotError: Pinot could not be asked.
    """
    schema, table = store.get_schema(spec.name), held_config(spec, store)
    of_schema = Change("create", ()) if schema is None else _change(diff_schema(spec.schema_json, schema))
    of_table = Change("create", ()) if table is None else _change(diff_table(spec.table_json, table))
    lasting = tuple(_lasting(of_schema, of_table))
    if not isinstance(spec, TableSpec) or schema is None or table is None:
        return ApplyPlan(spec, of_schema, of_table, lasting)
    recipe = recipe_of(spec)
    changes: tuple[SpecChange, ...] = ()
    if of_schema.differences or of_table.differences:
        # Pinot fills in defaults: without a difference, a recipe of what it holds may differ all the same.
        held = recipe_from(schema, table, spec.ingestion, provenance_of(spec), spec.layout.cells)
        changes = spec_changes(held, recipe, spec.ingestion.assured_target)
    return ApplyPlan(
        spec, of_schema, of_table, lasting, changes, plan_reload(spec.name, recipe, changes, store)
    )


def refuse_unless_valid(plan: ApplyPlan, store: PinotClient) -> None:
    """Ask the policy and Pinot whether they accept the schema and the table config, before writing either.

    :raises SpecError: the policy refuses a place that Pinot would reach because of them. Nothing was changed.
    :raises PinotError: Pinot would not accept them, or could not be asked. Nothing was changed.
    """
    if plan.holds_configs:
        return
    _require_allowed(plan.spec)
    _refuse_changes(plan)
    try:
        store.validate_table(plan.spec.schema_json, plan.spec.table_json)
    except PinotUnreachable:
        raise
    except PinotError as refusal:
        raise PinotError(
            f"Pinot would not accept {plan.spec.name_with_type}; nothing was changed",
            why=refusal.reason,
            hint=f"correct {plan.spec.path} and apply it again",
        ) from refusal


def apply_plan(plan: ApplyPlan, store: PinotClient, on_progress: Progress = ignore_progress) -> None:
    """Carry out a plan: schema, table config, reloads. Read back what Pinot holds afterwards.

    Pinot is first asked whether it would accept both. If this call created the schema and Pinot then refuses
    the table, the schema is deleted again: it would block the correction of itself.

    :raises PinotError: Pinot refused, e.g. to remove a column or change its type. The hint says what remains.
    :raises SpecDrift: Pinot accepted everything but holds something else, so every run would refuse.
    """
    with recording(store, f"`pinot-assets tables apply {plan.spec.name}` does what is left") as pinot:
        refuse_unless_valid(plan, pinot)
        if left := [] if plan.holds_configs else _applied(plan, pinot):
            raise SpecDrift(
                f"Pinot accepted the configs of {plan.spec.name} but did not keep all of them:"
                + difference_lines(left),
                hint="this Pinot does not know these settings, or rewrites them: remove them from the spec",
            )
        if isinstance(plan.spec, TableSpec) and plan.reload.segments:
            carry_out(plan.reload, plan.spec.name, recipe_of(plan.spec), pinot, on_progress)


def _applied(plan: ApplyPlan, store: PinotClient) -> list[SpecDifference]:
    """Write schema and table config; return where Pinot differs from the spec afterwards."""
    spec = plan.spec
    is_new = plan.schema.action == "create" and store.get_schema(spec.name) is None
    if plan.schema.action != "keep":
        _write_schema(plan, store)
    try:
        if plan.table.action == "create":
            store.create_table(spec.table_json)
        elif plan.table.action == "update":
            store.update_table(spec.table_json)
    except (SwitchStateUnknown, PinotUnreachable):
        raise  # the table may exist, or the next call may create it, and it needs its schema
    except PinotError as refusal:
        hints = filter(None, (refusal.hint, _schema_after(plan, is_new, store)))
        raise type(refusal)(refusal.what, why=refusal.why, hint="; ".join(hints) or None) from refusal
    return drift(spec, store)


def _write_schema(plan: ApplyPlan, store: PinotClient) -> None:
    """Create or update the schema. One that Pinot finds incompatible is replaced, because
    `_refuse_changes` found that published segments allow it."""
    schema = plan.spec.schema_json
    try:
        store.put_schema(schema)
    except (SwitchStateUnknown, PinotUnreachable):
        raise
    except PinotError:
        changes_columns = any(
            one.path.startswith(_COLUMN) and one.in_pinot for one in plan.schema.differences
        )
        if not changes_columns or not isinstance(plan.spec, TableSpec):
            raise
        if store.get_realtime_config(plan.spec.name) is not None:
            raise  # its consuming segments would keep the schema of before
        store.replace_schema(schema)


def _schema_after(plan: ApplyPlan, is_new: bool, store: PinotClient) -> str:
    """Return a hint: what happens to the schema when Pinot refuses its table. Deletes a schema we created."""
    name = plan.spec.name
    if not is_new:
        return f"the schema {name} stays as it is now" if plan.schema.action == "update" else ""
    try:
        # Pinot 0.11.0 deletes a schema in use, too.
        if store.get_table_config(name) is not None or store.get_realtime_config(name) is not None:
            return f"the schema {name} stays: a table uses it by now"
        store.delete_schema(name)
    except PinotError as error:
        return f"the schema {name}, which this command made, still exists: {error.reason}"
    return f"the schema {name}, which this command had made, was deleted again"


def _lasting(schema: Change, table: Change) -> Iterator[str]:
    """Yield a sentence for each of these changes that no later change can undo."""
    absent = [d.path.removeprefix(_COLUMN) for d in schema.differences if d.in_pinot is None]
    if added := [name for name in absent if "." not in name]:
        what = "the column" if len(added) == 1 else "the columns"
        yield f"Pinot never removes a column from a schema: {what} {', '.join(added)} will stay"
    paths = {d.path for d in table.differences}
    if paths & {f"table.segmentsConfig.retentionTime{part}" for part in ("Unit", "Value")}:
        yield "Pinot deletes segments that are older than the new retention, and does not bring them back"
    if "table.segmentsConfig.replacedSegmentsRetentionPeriod" in paths:
        yield (
            "Pinot keeps what earlier switches replaced only for the new "
            "replacedSegmentsRetentionPeriod; after that they cannot be reverted"
        )


def _change(differences: list[SpecDifference]) -> Change:
    return Change("update" if differences else "keep", tuple(differences))


def _refuse_changes(plan: ApplyPlan) -> None:
    """Check that published segments allow the changes.

    :raises SpecError: one of them is refused.
    """
    refused = [change for change in plan.changes if change.verdict is Verdict.REFUSED]
    if refused and plan.reload.of:
        listed = "".join(f"\n  {change}" for change in refused)
        raise SpecError(
            f"{plan.spec.path}: published segments do not allow these changes; nothing was changed:{listed}",
            hint="take them back, or write the table anew under another name",
        )


def _require_allowed(spec: AnyTableSpec) -> None:
    """Check schema and table config against the policy, for a spec from any origin.

    :raises SpecError: the policy refuses something; the hint names the policy line that would allow it.
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
    """How far one table got.

    :ivar name: its raw name.
    :ivar table: its name with type.
    :ivar plan: what applying it would change; None if Pinot could not be compared with the spec.
    :ivar error: why it is not applied.
    :ivar applied: whether Pinot was changed and now holds what the spec says.
    """

    name: str
    table: str
    plan: ApplyPlan | None = None
    error: PinotAssetsError | None = None
    applied: bool = False

    @property
    def due(self) -> ApplyPlan | None:
        """The plan to carry out; None if nothing has to change or an error prevents it."""
        return None if self.error or self.plan is None or self.plan.changes_nothing else self.plan


def plan_each(specs: Iterable[AnyTableSpec], store: PinotClient) -> list[ApplyOutcome]:
    """Return for each spec what applying it would change.

    :raises PinotUnreachable: Pinot does not answer, which is the same for every table.
    """
    return [
        _tried(ApplyOutcome(spec.name, spec.name_with_type), partial(plan_apply, spec, store))
        for spec in specs
    ]


def check_each(
    fates: Iterable[ApplyOutcome], store: PinotClient, realtime_gate: Callable[[ApplyPlan], None]
) -> list[ApplyOutcome]:
    """Check for each plan that is due whether it may be applied: a REALTIME table's preflight, then Pinot.

    :raises PinotUnreachable: Pinot does not answer, which is the same for every table.
    """

    def checked(plan: ApplyPlan) -> ApplyPlan:
        if isinstance(plan.spec, RealtimeTableSpec):
            realtime_gate(plan)
        refuse_unless_valid(plan, store)
        return plan

    return [_tried(fate, partial(checked, fate.due)) if fate.due else fate for fate in fates]


def apply_each(
    fates: Iterable[ApplyOutcome],
    store: PinotClient,
    on_progress: Callable[[str], Progress] = lambda _table: ignore_progress,
) -> list[ApplyOutcome]:
    """Apply each plan that is due. Once Pinot does not answer any more, the rest is not tried.

    :param on_progress: returns what is called with the progress of one table's reloads.
    """
    done: list[ApplyOutcome] = []
    gone = False
    for fate in fates:
        outcome = fate
        if fate.due and gone:
            outcome = replace(fate, error=PinotUnreachable("it was not tried", why="Pinot went away"))
        elif fate.due:
            try:
                apply_plan(fate.due, store, on_progress(fate.name))
                outcome = replace(fate, applied=True)
            except PinotAssetsError as error:
                gone = isinstance(error, PinotUnreachable)
                outcome = replace(fate, error=error)
        done.append(outcome)
    return done


def exit_code_of(fates: Iterable[ApplyOutcome], left_out: Sequence[LeftOut]) -> ExitCode:
    """Return the exit code of a command that applied or checked these tables."""
    codes = [code_of(fate.error) for fate in fates if fate.error is not None]
    return worst([*codes, *([ExitCode.ERROR] if left_out else [])])


def _tried(fate: ApplyOutcome, step: Callable[[], ApplyPlan]) -> ApplyOutcome:
    try:
        return replace(fate, plan=step())
    except PinotUnreachable:
        raise
    except PinotAssetsError as error:
        return replace(fate, error=error)
