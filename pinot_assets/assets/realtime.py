"""A REALTIME table in Dagster: an external asset, observations of its segments, its checks and its jobs.

Pinot's servers fill the table, without a run. Each look at the table, by a run or by `sensors/tables.py`,
records one observation with numbers to plot, and one evaluation of each check.

Each operation has a job of the code location, whose launch names the table. One runs at a time on a table
and looks at it afterwards. A job does the same as the
command of its name. It takes the table's lease if it changes something, logs what it did, and fails if
something went wrong. The bulk delete and the drill run only if the run's config repeats the table's name. The
drill's commands come from the environment of the code location, so that a person who may launch a run cannot
run any command there.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import dagster as dg

from pinot_assets.assets.health import AssetEvent, evaluations, health_checks
from pinot_assets.assets.keys import asset_attributes, table_key
from pinot_assets.assets.location_jobs import TableChoice, claim, writing_job
from pinot_assets.assets.metadata import Metadata, cell, first_rows
from pinot_assets.core.effects import recording
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError, SpecDrift, SpecError
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.health.all_checks import CHECKS, RealtimeView, view_of
from pinot_assets.realtime.health.metrics import numbers, segment_rows
from pinot_assets.realtime.model.settings import table_settings
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.operations.drill import Drill, Lengths, runs
from pinot_assets.realtime.operations.pauseless import Do, Goal, PauselessChange
from pinot_assets.realtime.operations.rebalance import End, Rebalance, preview_rebalance
from pinot_assets.realtime.operations.rebalance_plan import Request
from pinot_assets.realtime.operations.restart import Restart, plan_restart
from pinot_assets.realtime.operations.table_operation import TableOperation
from pinot_assets.realtime.preflight.gather import gather
from pinot_assets.realtime.preflight.judge import before_drain, recap, refuse_unless_safe, run_rules, verdict
from pinot_assets.realtime.read.reading import open_deep_store
from pinot_assets.realtime.repair.apply import preview_repair
from pinot_assets.realtime.repair.model import SUBJECT, USUAL_LIMITS, RepairLimits, RepairPlan, manual
from pinot_assets.resources import PinotResource
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import RealtimeTableSpec

_UPLOAD_ROUNDS = 20
"""The most rounds of a repair before a rebalance; if they are not enough, the rebalance guard refuses."""


def realtime_asset(spec: RealtimeTableSpec) -> dg.AssetSpec:
    """Return the asset of the table as queries see it."""
    settings = table_settings(spec.table_json)
    stream = settings.streams[0].get("streamType", "") if settings.streams else ""
    return dg.AssetSpec(
        table_key(spec),
        metadata={
            "replication": settings.replication,
            "pauseless": settings.pauseless,
            "peer_scheme": settings.peer_scheme or "none",
            "streams": len(settings.streams),
        },
        **asset_attributes(
            spec,
            spec.dagster.description or f"The Pinot table {spec.name_with_type}, as queries see it.",
            *("pinot", "table", *([stream.lower()] if stream else [])),
        ),
    )


def realtime_health(spec: RealtimeTableSpec) -> dg.AssetChecksDefinition:
    """Return the health checks of the table."""

    def look_at(instance: dg.DagsterInstance, pinot: PinotResource) -> list[AssetEvent]:
        looked = view_of(spec.name, pinot.settings)
        return [*observations(spec, looked), *evaluations(instance, spec, looked.answers)]

    what = f"Checks the health of {spec.name_with_type}. Reads only."
    return health_checks(spec, CHECKS, what, look_at)


def observations(spec: RealtimeTableSpec, looked: RealtimeView) -> list[dg.AssetObservation]:
    """Return the look as an observation of the table; an empty list if the table could not be read."""
    if looked.state is None:
        return []
    return [dg.AssetObservation(table_key(spec), metadata=observed(looked.state))]


def observed(state: RealtimeState) -> Metadata:
    """Return numbers to plot, the segments with a problem, and the parts that could not be read."""
    values: dict[str, dg.MetadataValue | str | int | float] = {**numbers(state)}
    if noted := [row for row in segment_rows(state) if row.note]:
        values["troubled_segments"] = first_rows(
            ("segment", "status", "copy", "note"),
            noted,
            lambda r: (r.segment, r.status, r.copy, cell(r.note)),
        )
    if state.unread:
        lines = [f"- {part}: {why}" for part, why in sorted(state.unread.items())]
        values["not_read"] = dg.MetadataValue.md("\n".join(lines))
    return values


@dataclass(frozen=True, slots=True)
class OperationInputs:
    """The input of an operation.

    :ivar run: name of the holder, for the table's lease.
    :ivar config: the op's config.
    """

    spec: RealtimeTableSpec
    settings: Settings
    run: str
    config: JsonMapping
    log: dg.DagsterLogManager

    @property
    def table(self) -> str:
        """The table's name with `_REALTIME`."""
        return self.spec.name_with_type

    @contextmanager
    def open(self) -> Iterator[TableOperation]:
        """Yield the table. If Pinot stops answering, the client's error lists the effects so far."""
        again = "launch the same job: it looks at the table first and does what is left"
        with RealtimePinot(self.settings.pinot) as client, recording(client, again) as pinot:
            yield TableOperation(self.settings, pinot, self.table, open_deep_store(pinot), self.log.info)


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation of a job.

    :ivar act: does the operation, and returns a text about what was done.
    :ivar config: the op's config schema.
    """

    name: str
    description: str
    act: Callable[[OperationInputs], str]
    config: Mapping[str, dg.Field] = field(default_factory=dict)


def _preflight(work: OperationInputs) -> str:
    with RealtimePinot(work.settings.pinot) as pinot:
        facts = gather(pinot, work.table, work.spec.table_json)
    answers = run_rules(facts)
    for answer in answers:
        fix = f" → {answer.next_step}" if answer.next_step else ""
        work.log.info(f"{verdict(answer)}: {answer.name}: {answer.message}{fix}")
    refuse_unless_safe(facts.table, answers)
    return recap(answers)


def _repair(work: OperationInputs) -> str:
    limits = RepairLimits(steps=work.config["limit"])
    with work.open() as table:
        if not work.config["apply"]:
            remembered = table.recall(SUBJECT)
            plan = preview_repair(table.read(), remembered, limits)
            _tell(work.log, plan)
            if plan.all_well:
                return "nothing to repair"
            return (
                f"{plural(len(plan.steps), 'step')} would be done; nothing was done, because apply is not set"
            )
        with table.hold(work.run) as lease:
            plan, outcomes = table.repair(lease, limits).round()
    _tell(work.log, plan)
    if failed := [f"{one.step}: {one.result}; {one.text}" for one in outcomes if not one.helped]:
        raise dg.Failure("\n".join(failed), allow_retries=False)
    return "nothing to repair" if plan.all_well and not outcomes else f"{plural(len(outcomes), 'step')} done"


def _tell(log: dg.DagsterLogManager, plan: RepairPlan) -> None:
    for step in plan.steps:
        log.info(f"{step}: {step.why}")
    for step in plan.advice:
        log.warning(f"for a person: {step}: {step.why}; {manual(step).precondition}")
    for refusal in plan.refusals:
        log.warning(f"{refusal.subject}: {refusal.why} → {refusal.remedy}")
    for waiting in plan.waiting:
        log.info(f"{waiting.subject} waits: {waiting.why}")


def _drain(goal: Goal, work: OperationInputs) -> str:
    """Drain the table, if its spec agrees: otherwise the next `tables apply` would undo the change.

    :raises SpecDrift: the spec has another value.
    """
    if table_settings(work.spec.table_json).pauseless is not (goal is Goal.ON):
        value = "true" if goal is Goal.ON else "false"
        raise SpecDrift(
            f"{work.spec.path} does not set pauseless consumption {goal}",
            hint=f"write pauselessConsumptionEnabled: {value} into it, reload, and run the job again",
        )
    with work.open() as table, table.hold(work.run) as lease:
        change = PauselessChange(
            table.pinot,
            table.read,
            lease,
            table.tell,
            work.config["patience"],
            repair=table.repair(lease),
            preflight=before_drain(table.pinot),
        )
        last = change.run(goal)
    if last.do is not Do.DONE:
        raise dg.Failure(
            f"pauseless consumption is not {goal} yet: {last.do}, {last.why}; run the job again to continue",
            allow_retries=False,
        )
    return last.why


def _rebalance(work: OperationInputs) -> str:
    try:
        request = Request.of(**work.config["options"])
    except ValueError as error:
        raise SpecError(f"the options of the rebalance cannot be read: {error}") from None
    with work.open() as table:
        if not work.config["apply"]:
            _, judged = preview_rebalance(table.pinot, table.read, table.table, request)
            for one in judged.objections:
                work.log.warning(f"{one.name}: {one.message} → {one.next_step}")
            guard = "Pinot's rebalance would be refused" if judged.refused else "no rule refuses it"
            would = f"{plural(len(judged.moves), 'segment')} would move"
            return f"{would}; {guard}; nothing was done, because apply is not set"
        with table.hold(work.run) as lease:
            if work.config["upload_first"]:
                for _ in table.repair(lease).rounds(_UPLOAD_ROUNDS):
                    pass
            patience_s = work.config["patience"]
            report = Rebalance(table.pinot, table.read, lease, table.tell, patience_s).run(request)
    if report.end in (End.FAILED, End.UNFINISHED):
        raise dg.Failure(f"the rebalance {report.end}: {report.text}", allow_retries=False)
    return f"{report.end}: {report.text}"


BREAK: Final = "PINOT_ASSETS_DRILL_BREAK"
MEND: Final = "PINOT_ASSETS_DRILL_MEND"
LOAD_FROM_PEERS: Final = "PINOT_ASSETS_DRILL_LOAD_FROM_PEERS"


def _is_confirmed(work: OperationInputs) -> bool:
    return str(work.config["confirm"]).removesuffix("_REALTIME") == work.spec.name


def _restart(work: OperationInputs) -> str:
    named = work.config["segments"]
    with work.open() as table:
        if not _is_confirmed(work):
            restart = plan_restart(table.read(), named)
            for segment in restart.going:
                work.log.info(f"would be deleted: {segment.name}")
            for said in (*restart.refusals, *restart.warnings):
                work.log.warning(said)
            would = f"{plural(len(restart.going), 'segment')} would be deleted"
            return f"{would}; nothing was done, because confirm does not name the table"
        with table.hold(work.run) as lease:
            deleted = Restart(table.pinot, table.read, lease, table.tell).run(named)
    return f"read again from the stream: {plural(len(deleted), 'segment')} deleted"


def _drill(work: OperationInputs) -> str:
    """:raises PinotAssetsError: the config does not name the table, or the environment lacks a command."""
    if not _is_confirmed(work):
        raise PinotAssetsError(
            f"the drill on {work.table} was not started",
            why="confirm does not name the table",
            hint="repeat the table's name there, if it is a table that may break",
        )
    said = {name: os.environ.get(name, "") for name in (BREAK, MEND, LOAD_FROM_PEERS)}
    if missing := [name for name in (BREAK, MEND) if not said[name]]:
        raise PinotAssetsError(
            f"the drill on {work.table} was not started",
            why=f"the code location's environment does not set {' and '.join(missing)}",
            hint="set the commands that make the deep store unwritable and undo it",
        )
    seconds = work.config["seconds"]
    with work.open() as table, table.hold(work.run) as lease:
        broker = table.pinot.brokers_of(work.table)[0]
        findings = Drill(
            table.read,
            runs(said[BREAK]),
            runs(said[MEND]),
            lambda: table.pinot.answered_rows(broker, work.table),
            table.repair(lease),
            runs(said[LOAD_FROM_PEERS]) if said[LOAD_FROM_PEERS] else None,
            lengths=Lengths(before=seconds, outage=seconds),
            tell=table.tell,
        ).run()
    text = "\n".join(f"{one.name}: {one.text}" for one in findings)
    if any(one.passed is False for one in findings):
        raise dg.Failure(text, allow_retries=False)
    return text


_PATIENCE = dg.Field(
    float, default_value=3600.0, description="Seconds. The next run continues what is unfinished then."
)
_CONFIRM = dg.Field(str, default_value="", description="The table's name once more, to confirm.")
OPERATIONS = (
    Operation(
        "preflight",
        "Checks whether what the table spec turns on would work. Fails where a rule refuses. Reads only.",
        _preflight,
    ),
    Operation(
        "repair",
        "Repairs what can be repaired now: upload, finish, reset, re-ingest; each step is read "
        "back. Without `apply` the log only shows the plan.",
        _repair,
        {
            "apply": dg.Field(bool, default_value=False, description="Do it."),
            "limit": dg.Field(
                int, default_value=USUAL_LIMITS.steps, description="The most steps that are done."
            ),
        },
    ),
    Operation(
        "pauseless_enable",
        "Preflight, drain, turn pauseless consumption on, and watch the first commits.",
        partial(_drain, Goal.ON),
        {"patience": _PATIENCE},
    ),
    Operation(
        "pauseless_disable",
        "Drain, turn pauseless consumption off, and watch the first commits.",
        partial(_drain, Goal.OFF),
        {"patience": _PATIENCE},
    ),
    Operation(
        "rebalance",
        "Runs Pinot's rebalance, and refuses it where rows could be lost that only servers have. "
        "Without `apply` the log only shows what would move and which rules refuse it.",
        _rebalance,
        {
            "apply": dg.Field(bool, default_value=False, description="Do it."),
            "upload_first": dg.Field(
                bool, default_value=False, description="Repair first: upload what only servers have."
            ),
            "options": dg.Field(
                dg.Map(str, str),  # type: ignore[no-untyped-call]
                default_value={},
                description="Query parameters of Pinot's rebalance.",
            ),
            "patience": _PATIENCE,
        },
    ),
    Operation(
        "restart_from",
        "Deletes lost segments and all later ones of their partitions, and consumes them again in "
        "order: the last resort for dedup and partial upsert tables. Without `confirm` the log only "
        "shows what would be deleted.",
        _restart,
        {
            "segments": dg.Field([str], description="Names of lost segments, in full."),
            "confirm": _CONFIRM,
        },
    ),
    Operation(
        "drill",
        "Makes the deep store of a TEST table unwritable for a while, and shows the effect. The "
        f"commands are in {BREAK} and {MEND}.",
        _drill,
        {
            "confirm": _CONFIRM,
            "seconds": dg.Field(
                float,
                default_value=60.0,
                description="How long the table is watched, before the outage and in it.",
            ),
        },
    ),
)
"""In the order of the commands."""


def realtime_jobs(tables: TableChoice[RealtimeTableSpec]) -> tuple[dg.JobDefinition, ...]:
    """Return a job for each of `OPERATIONS`: pinot_realtime_preflight and so on."""
    return tuple(_job(tables, operation) for operation in OPERATIONS)


def _job(tables: TableChoice[RealtimeTableSpec], operation: Operation) -> dg.JobDefinition:
    def act(context: dg.OpExecutionContext, pinot: PinotResource) -> Iterator[dg.AssetObservation]:
        spec, run = tables.chosen(context), f"run {context.run.run_id}"
        claim(context, spec)
        work = OperationInputs(spec, pinot.settings(), run, context.op_config, context.log)
        context.log.info(operation.act(work))
        yield from observations(spec, view_of(spec.name, pinot.settings))

    return writing_job(f"realtime_{operation.name}", operation.description, tables, act, operation.config)
