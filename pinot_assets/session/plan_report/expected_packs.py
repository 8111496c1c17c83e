"""How many packs the small files of a plan are expected to give: exact only once they are read."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pinot_assets.core.text import plural, size
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.plan_report.planned_run import PlannedRun


@dataclass(frozen=True, slots=True)
class ExpectedPacks:
    """What is expected of small files that are not read yet.

    :ivar bytes: of their rows in segments, as published segments have them for each byte of their files; the
        files' own without any.
    """

    files: int
    bytes: int
    target: int

    @property
    def packs(self) -> int:
        """How many packs these are."""
        return math.ceil(self.bytes / self.target)

    @property
    def text(self) -> str:
        """Return the estimate as a sentence."""
        return (
            f"the rows of {plural(self.files, 'small file')} in about {plural(self.packs, 'segment')} "
            f"of up to {size(self.target)} (estimated from sizes)"
        )


def expected_packs(context: TriggerContext, planned: PlannedRun) -> ExpectedPacks | None:
    """Return what to expect; None if no small file is to be read."""
    small = [row.planned.size for row in planned.to_build if row.is_small and row.planned.size]
    if not small:
        return None
    current = planned.decision.current
    source = sum(file.fingerprint.size for file in current.files) if current is not None else 0
    loaded = sum(o.loaded_bytes for o in current.segments.values()) if current is not None else 0
    times = loaded / source if loaded and source else 1.0
    return ExpectedPacks(len(small), round(sum(small) * times), context.spec.layout.target_bytes)


def names_of_packs(context: TriggerContext, planned: PlannedRun) -> list[str]:
    """Return a name for each expected pack: what Pinot stores of a segment depends on their length."""
    plan, expected = planned.decision.plan, expected_packs(context, planned)
    if plan is None or expected is None:
        return []
    ordinals = range(plan.next_ordinal, plan.next_ordinal + expected.packs)
    return [segment_name(context.table, plan.session, plan.attempt, ordinal, 0) for ordinal in ordinals]
