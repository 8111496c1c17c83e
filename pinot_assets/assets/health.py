"""Health checks as asset checks on the Pinot table: they do not block, and run by hand or by a schedule.

`sensors/tables.py` records the same checks without a run. `sensors/files.py` records one of
them while it cannot read the table. Only Dagster's event log stores the results. A check with an unknown
result is a warning. After an hour the files sensor records an error, and since when the result is unknown.
Later looks read that here, so that a look that fails, too, does not turn the error back into a warning.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)

from pinot_assets.assets.history import checked_materialization, newest_evaluation
from pinot_assets.assets.keys import table_key
from pinot_assets.assets.metadata import Metadata
from pinot_assets.core.check_result import HealthCheck
from pinot_assets.health import CheckResult, source
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.resources import PinotResource
from pinot_assets.table_spec import AnyTableSpec, TableSpec

AGAIN_MS: Final = 15 * 60_000
"""Milliseconds until a lasting error is recorded again: a tick every 30 s would fill Dagster's event log."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """The newest evaluation of `snapshot_equals_source`, if it records since when the result is unknown.

    :ivar since_ms: since when the result is unknown, epoch milliseconds.
    :ivar recorded_ms: when the evaluation was recorded, epoch milliseconds.
    """

    since_ms: int
    recorded_ms: int

    def is_due(self, now_ms: int) -> bool:
        """Whether it is time to record the error again."""
        return not self.recorded_ms <= now_ms < self.recorded_ms + AGAIN_MS


def unseen(instance: dg.DagsterInstance, spec: TableSpec) -> Unseen | None:
    """Return the newest evaluation from Dagster; None if its result is known, or there is none."""
    newest = newest_evaluation(instance, dg.AssetCheckKey(table_key(spec), source.NAME))
    since = newest.evaluation.metadata.get("not_known_since") if newest is not None else None
    if newest is None or not isinstance(since, dg.TimestampMetadataValue):
        return None
    return Unseen(int(since.value * 1000), newest.recorded_ms)


def with_lasting(
    instance: dg.DagsterInstance, spec: TableSpec, answers: tuple[CheckResult, ...]
) -> tuple[CheckResult, ...]:
    """Return the answers of one look, and add since when the table could not be read, if Dagster has that."""
    if all(answer.known for answer in answers if answer.name == source.NAME):
        return answers
    if (before := unseen(instance, spec)) is None:
        return answers
    now_ms = time.time_ns() // 1_000_000
    return tuple(
        source.lasts(answer, before.since_ms, now_ms) if answer.name == source.NAME else answer
        for answer in answers
    )


def evaluations(
    instance: dg.DagsterInstance, spec: AnyTableSpec, answers: Iterable[CheckResult]
) -> list[dg.AssetCheckEvaluation]:
    """Return the answers as evaluations that a sensor can record without a run."""
    target = checked_materialization(instance, table_key(spec))
    return [check_evaluation(spec, answer, result_metadata(answer), target) for answer in answers]


def check_evaluation(
    spec: AnyTableSpec,
    answer: CheckResult,
    metadata: Metadata,
    target: AssetCheckEvaluationTargetMaterializationData | None,
) -> dg.AssetCheckEvaluation:
    """Return an answer as an evaluation of the table's check of that name, for a sensor or a run.

    :param target: the materialization that it is about, as `checked_materialization` returns it.
    """
    return dg.AssetCheckEvaluation(
        asset_key=table_key(spec),
        check_name=answer.name,
        passed=answer.passed,
        severity=dg.AssetCheckSeverity(answer.severity.value),
        description=answer.description,
        metadata=metadata,
        target_materialization_data=target,
        blocking=False,
    )


def result_metadata(answer: CheckResult) -> Metadata:
    """Return numbers to plot and the next step. An unknown result has no numbers: zeros would be wrong."""
    values: dict[str, dg.MetadataValue | str | int | float] = {}
    if answer.known:
        values |= {"expected": answer.expected, "found": answer.found, **answer.numbers}
    if answer.next_step:
        values["next_step"] = answer.next_step
    if isinstance(answer, source.Lasting):
        values["not_known_since"] = dg.MetadataValue.timestamp(answer.since_ms / 1000)
    return values


AssetEvent = dg.AssetObservation | dg.AssetMaterialization | dg.AssetCheckEvaluation
AnyHealthCheck = HealthCheck[TableProbe] | HealthCheck[RealtimeState]
Look = Callable[[dg.DagsterInstance, PinotResource], Iterable[AssetEvent]]
"""Looks at a table once; returns what Dagster records of it."""


def health_checks(
    spec: AnyTableSpec, checks: Iterable[AnyHealthCheck], description: str, look: Look
) -> dg.AssetChecksDefinition:
    """Return one asset check for each of `checks`; one look answers all of them."""
    table = table_key(spec)

    @dg.multi_asset_check(
        name=f"{spec.asset_name}_health_checks",
        specs=[
            dg.AssetCheckSpec(check.name, asset=table, description=check.promise, blocking=False)
            for check in checks
        ],
        can_subset=True,
        description=description,
    )
    def health(
        context: dg.AssetCheckExecutionContext, pinot: PinotResource
    ) -> Iterator[dg.AssetObservation | dg.AssetCheckResult]:
        selected = set(context.selected_asset_check_keys)
        for event in look(context.instance, pinot):
            if isinstance(event, dg.AssetObservation):
                yield event
            elif isinstance(event, dg.AssetCheckEvaluation) and event.asset_check_key in selected:
                yield dg.AssetCheckResult(
                    asset_key=table,
                    check_name=event.check_name,
                    passed=event.passed,
                    severity=event.severity,
                    description=event.description,
                    metadata=event.metadata,
                )

    return health


WARN_SHARE = 0.75
"""Fraction of the promised freshness after which Dagster warns."""


def freshness_policy(spec: TableSpec) -> dg.FreshnessPolicy | None:
    """Return the policy by which Dagster watches the table asset; None if the spec promises no freshness."""
    if (promised := spec.dagster.freshness_hours) is None:
        return None
    warn = timedelta(hours=promised * WARN_SHARE)
    return dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=promised),
        # Dagster refuses a window below a minute.
        warn_window=warn if warn >= timedelta(minutes=1) else None,
    )
