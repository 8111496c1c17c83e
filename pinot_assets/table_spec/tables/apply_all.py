"""Several tables applied to one Pinot: one that cannot be applied keeps no other from its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pinot_assets.core.exit_codes import ExitCode, code_of, worst
from pinot_assets.errors import PinotAssetsError, PinotUnreachable
from pinot_assets.table_spec.tables.apply import (
    ApplyPlan,
    SchemaAndTableStore,
    apply_plan,
    plan_apply,
    refuse_unless_valid,
)
from pinot_assets.table_spec.tables.left_out import LeftOut
from pinot_assets.table_spec.tables.realtime import AnyTableSpec, RealtimeTableSpec


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
    def is_due(self) -> bool:
        """Whether there is something to change, and nothing against it."""
        return self.error is None and self.plan is not None and not self.plan.changes_nothing


def plan_each(specs: Iterable[AnyTableSpec], store: SchemaAndTableStore) -> list[ApplyOutcome]:
    """Look what applying each would change.

    :raises PinotUnreachable: no Pinot answers, so that it is the same for all of them.
    """

    def planned(spec: AnyTableSpec, fate: ApplyOutcome) -> ApplyOutcome:
        return replace(fate, plan=plan_apply(spec, store))

    return [_tried(ApplyOutcome(spec.name, spec.name_with_type), partial(planned, spec)) for spec in specs]


def check_each(
    fates: Iterable[ApplyOutcome], store: SchemaAndTableStore, realtime_gate: Callable[[ApplyPlan], None]
) -> list[ApplyOutcome]:
    """Ask for each that is due whether it may be applied: a REALTIME table's preflight, and Pinot itself.

    :raises PinotUnreachable: no Pinot answers, so that it is the same for all of them.
    """

    def checked(fate: ApplyOutcome) -> ApplyOutcome:
        assert fate.plan is not None
        if isinstance(fate.plan.spec, RealtimeTableSpec):
            realtime_gate(fate.plan)
        refuse_unless_valid(fate.plan, store)
        return fate

    return [_tried(fate, checked) if fate.is_due else fate for fate in fates]


def apply_each(fates: Iterable[ApplyOutcome], store: SchemaAndTableStore) -> list[ApplyOutcome]:
    """Apply each that is due; once Pinot does not answer any more, the rest is not tried."""
    done: list[ApplyOutcome] = []
    gone = False
    for fate in fates:
        if fate.is_due and not gone:
            assert fate.plan is not None
            try:
                apply_plan(fate.plan, store)
                done.append(replace(fate, applied=True))
            except PinotAssetsError as error:
                gone = isinstance(error, PinotUnreachable)
                done.append(replace(fate, error=error))
        elif fate.is_due:
            done.append(replace(fate, error=PinotUnreachable("it was not tried", why="Pinot went away")))
        else:
            done.append(fate)
    return done


def exit_code_of(fates: Iterable[ApplyOutcome], left_out: Sequence[LeftOut]) -> ExitCode:
    """What a command ends with."""
    codes = [code_of(fate.error) for fate in fates if fate.error is not None]
    return worst([*codes, *([ExitCode.ERROR] if left_out else [])])


def _tried(fate: ApplyOutcome, step: Callable[[ApplyOutcome], ApplyOutcome]) -> ApplyOutcome:
    try:
        return step(fate)
    except PinotUnreachable:
        raise
    except PinotAssetsError as error:
        return replace(fate, error=error)
