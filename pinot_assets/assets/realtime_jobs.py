"""Jobs for what is done to a REALTIME table: preflight, repair, pauseless on and off, rebalance.

They do what the commands of the same names do, one at a time for a table.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from pinot_assets.assets.keys import TABLE_TAG, pool_of
from pinot_assets.assets.operations import TAGS
from pinot_assets.assets.realtime import job_name, observations
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.deep_store import open_deep_store
from pinot_assets.realtime.looking import look
from pinot_assets.realtime.opening import hold_table, open_operations
from pinot_assets.realtime.preflight import judge, refuse_unless_safe, summary
from pinot_assets.realtime.preflight.gather import gather
from pinot_assets.realtime.reading import read_state
from pinot_assets.realtime.repair import memory
from pinot_assets.realtime.repair.apply import Repair, preview
from pinot_assets.realtime.repair.model import USUAL_LIMITS, Limits, Plan
from pinot_assets.realtime.repair.words import manual
from pinot_assets.realtime.state import RealtimeState
from pinot_assets.resources import PinotResource
from pinot_assets.settings import Settings
from pinot_assets.spec import RealtimeTableSpec


@dataclass(frozen=True, slots=True)
class Work:
    """What an operation works with.

    :ivar run: what the table's lease is held as.
    :ivar config: the op's config.
    """

    spec: RealtimeTableSpec
    settings: Settings
    run: str
    config: Mapping[str, Any]
    log: dg.DagsterLogManager


@dataclass(frozen=True, slots=True)
class Operation:
    """What a job does.

    :ivar act: does it, and says what was done.
    :ivar config: the op's config schema.
    """

    name: str
    description: str
    act: Callable[[Work], str]
    config: Mapping[str, dg.Field] = field(default_factory=dict)


def _preflight(work: Work) -> str:
    with RealtimePinot(work.settings.pinot) as pinot:
        facts = gather(pinot, work.spec.name, work.spec.table_json)
    answers = judge(facts)
    for answer in answers:
        fix = f" → {answer.fix}" if answer.fix else ""
        work.log.info(f"{answer.verdict}: {answer.rule}: {answer.reason}{fix}")
    refuse_unless_safe(facts.table, answers)
    return summary(answers)


def _repair(work: Work) -> str:
    limits = Limits(steps=work.config["limit"])
    with RealtimePinot(work.settings.pinot) as pinot:

        def read() -> RealtimeState:
            return read_state(pinot, work.spec.name, deep_store=open_deep_store(pinot))

        if not work.config["apply"]:
            with open_operations(work.settings, work.spec.name_with_type) as operations:
                remembered = operations.recall(memory.SUBJECT)
            found = preview(read(), remembered, limits)
            _tell_plan(work.log, found)
            return f"{len(found.steps)} steps would be done; only shown, as apply is not set"
        with hold_table(work.settings, work.spec.name_with_type, work.run) as lease:
            found, outcomes = Repair(pinot, read, lease, limits=limits, tell=work.log.info).round()
    _tell_plan(work.log, found)
    failed = [
        f"{outcome.step}: {outcome.result}; {outcome.text}" for outcome in outcomes if not outcome.helped
    ]
    if failed:
        raise dg.Failure("\n".join(failed), allow_retries=False)
    return f"{len(outcomes)} steps done"


def _tell_plan(log: dg.DagsterLogManager, found: Plan) -> None:
    for step in found.steps:
        log.info(f"{step}: {step.why}")
    for step in found.advice:
        log.warning(f"for a person: {step}: {step.why}; {manual(step).precondition}")
    for refusal in found.refusals:
        log.warning(f"{refusal.subject}: {refusal.why} → {refusal.remedy}")
    for waiting in found.waiting:
        log.info(f"{waiting.subject} waits: {waiting.why}")


_PREFLIGHT = Operation(
    "preflight",
    "Look whether what the table spec switches on would hold; fails where a rule refuses. Changes nothing.",
    _preflight,
)
_REPAIR = Operation(
    "repair",
    "Mend what can be mended now: upload, finish, reset, re-ingest, each read back. Without `apply` the plan "
    "is only shown in the log.",
    _repair,
    {
        "apply": dg.Field(bool, default_value=False, description="Do it."),
        "limit": dg.Field(int, default_value=USUAL_LIMITS.steps, description="At most so many steps."),
    },
)
OPERATIONS = (_PREFLIGHT, _REPAIR)
"""In the order of the commands."""


def realtime_operations(spec: RealtimeTableSpec) -> tuple[dg.JobDefinition, ...]:
    """`<name>_realtime_preflight`, and so forth."""
    return tuple(_job(spec, operation) for operation in OPERATIONS)


def _job(spec: RealtimeTableSpec, operation: Operation) -> dg.JobDefinition:
    name = job_name(spec, operation.name)

    @dg.op(
        name=f"{name}_op",
        out={},
        pool=pool_of(spec),
        description=operation.description,
        config_schema=dict(operation.config) or None,
    )
    def act(context: dg.OpExecutionContext, pinot: PinotResource) -> Iterator[dg.AssetObservation]:
        run = f"run {context.run.run_id}"
        work = Work(spec, pinot.settings(), run, context.op_config or {}, context.log)
        context.log.info(operation.act(work))
        yield from observations(spec, look(spec.name, pinot.settings))

    @dg.job(
        name=name,
        tags={TABLE_TAG: spec.name_with_type, **TAGS},
        executor_def=dg.in_process_executor,
        description=operation.description,
    )
    def job() -> None:
        act()

    return job
