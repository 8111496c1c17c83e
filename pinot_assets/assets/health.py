"""A table's standing health as asset checks on the Pinot table: not blocking, run by hand or by a schedule.

`sensors/health.py` records the same checks without a run for every look, `sensors/files.py` one of them
while it cannot look at the table. Dagster's event log is the only memory of a look. A check that is not known
is a warning; that it has not been known for an hour, the files sensor finds out and records since when. Later
looks read it here, so that one that fails as well does not turn the error into a warning.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypedDict

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.storage.asset_check_execution_record import (
    COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES,
)

from pinot_assets import health
from pinot_assets.assets.history import checked_materialization
from pinot_assets.assets.keys import keys_of
from pinot_assets.health import CHECKS, CheckResult, source
from pinot_assets.resources import PinotResource
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import TableSpec

Examine = Callable[[TableSpec, Callable[[], Settings]], tuple[CheckResult, ...]]

AGAIN_MS: Final = 15 * 60_000
"""Until an error that lasts is recorded again: a tick every 30 s would fill Dagster's event log."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """The newest evaluation of `snapshot_equals_source`, where it says for how long it has not been known.

    :ivar since_ms: since when, epoch milliseconds.
    :ivar recorded_ms: when it was recorded, epoch milliseconds.
    """

    since_ms: int
    recorded_ms: int

    def is_due(self, now_ms: int) -> bool:
        """Whether it is recorded again."""
        return not self.recorded_ms <= now_ms < self.recorded_ms + AGAIN_MS


def unseen(instance: dg.DagsterInstance, spec: TableSpec) -> Unseen | None:
    """What stands in Dagster; None where the newest evaluation of the check says something else."""
    records = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(keys_of(spec).table, source.NAME),
        limit=1,
        status=COMPLETED_ASSET_CHECK_EXECUTION_RECORD_STATUSES,
    )
    if not records or records[0].evaluation is None or records[0].event is None:
        return None
    since = records[0].evaluation.metadata.get("not_known_since")
    if not isinstance(since, dg.TimestampMetadataValue):
        return None
    return Unseen(int(since.value * 1000), int(records[0].event.timestamp * 1000))


def examine_table(
    instance: dg.DagsterInstance,
    spec: TableSpec,
    settings: Callable[[], Settings],
    examine: Examine | None = None,
) -> tuple[CheckResult, ...]:
    """`health.examine_table`, with what Dagster knows of how long the table could not be looked at.

    :param examine: in its place, by who has no time to wait.
    """
    answers = (examine or health.examine_table)(spec, settings)
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
    instance: dg.DagsterInstance, spec: TableSpec, answers: tuple[CheckResult, ...]
) -> list[dg.AssetCheckEvaluation]:
    """The answers as a sensor records them, without a run."""
    table = keys_of(spec).table
    target = checked_materialization(instance, table)
    return [
        dg.AssetCheckEvaluation(
            asset_key=table,
            check_name=answer.name,
            **said(answer),
            target_materialization_data=target,
            blocking=False,
        )
        for answer in answers
    ]


class Said(TypedDict):
    """What Dagster's results and evaluations of a check have in common."""

    passed: bool
    severity: dg.AssetCheckSeverity
    description: str
    metadata: dict[str, dg.MetadataValue]


def said(answer: CheckResult) -> Said:
    """The answer in Dagster's words."""
    return {
        "passed": answer.passed,
        "severity": dg.AssetCheckSeverity(answer.severity.value),
        "description": answer.description,
        "metadata": metadata_of(answer),
    }


def metadata_of(answer: CheckResult) -> dict[str, dg.MetadataValue]:
    """Numbers to plot and what to do next. A check that is not known has no numbers: zeros would lie."""
    numbers = {"expected": answer.expected, "found": answer.found, **answer.numbers} if answer.known else {}
    values: dict[str, dg.MetadataValue] = {
        name: dg.MetadataValue.int(n) if isinstance(n, int) else dg.MetadataValue.float(float(n))
        for name, n in numbers.items()
    }
    if answer.next_step:
        values["next_step"] = dg.MetadataValue.text(answer.next_step)
    if isinstance(answer, source.Lasting):
        values["not_known_since"] = dg.MetadataValue.timestamp(answer.since_ms / 1000)
    return values


WARN_SHARE = 0.75
"""Share of the promised freshness after which Dagster warns."""


def table_health(spec: TableSpec) -> dg.AssetChecksDefinition:
    """The standing health of one table: one check each, all of one look."""
    table = keys_of(spec).table

    @dg.multi_asset_check(
        name=f"{spec.asset_name}_health_checks",
        specs=[
            dg.AssetCheckSpec(check.name, asset=table, description=check.promise, blocking=False)
            for check in CHECKS
        ],
        can_subset=True,
        description=f"What should hold of {spec.name} at any time. Reads only, and takes no lease.",
    )
    def health(context: dg.AssetCheckExecutionContext, pinot: PinotResource) -> Iterator[dg.AssetCheckResult]:
        selected = {key.name for key in context.selected_asset_check_keys}
        for answer in examine_table(context.instance, spec, pinot.settings):
            if answer.name in selected:
                yield dg.AssetCheckResult(
                    asset_key=table,
                    check_name=answer.name,
                    **said(answer),
                )

    return health


def health_job(spec: TableSpec) -> UnresolvedAssetJobDefinition:
    """The job that makes all checks of one table by hand.

    Without the table's tag: it only reads, and keeps no run of the table waiting.
    """
    table = keys_of(spec).table
    checks = [dg.AssetCheckKey(table, check.name) for check in CHECKS]
    return dg.define_asset_job(
        f"{spec.asset_name}_health",
        selection=dg.AssetSelection.checks(*checks),
        executor_def=dg.in_process_executor,
        description=f"One look at the standing health of {spec.name}; changes nothing.",
    )


def freshness_policy(spec: TableSpec) -> dg.FreshnessPolicy | None:
    """What Dagster itself watches of the table asset; None where no freshness is promised."""
    promised = spec.dagster.freshness_hours
    if promised is None:
        return None
    warn = timedelta(hours=promised * WARN_SHARE)
    return dg.FreshnessPolicy.time_window(
        fail_window=timedelta(hours=promised),
        # Dagster takes no window below a minute.
        warn_window=warn if warn >= timedelta(minutes=1) else None,
    )
