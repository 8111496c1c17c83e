"""Jobs for operations that people start by hand: plan, rollback, resume, clear, gc, compact, rebuild.

They do the same as the commands of these names, and record in Dagster what queries see afterwards. Each is
one job of the code location; its launch names the table (`location_jobs`).
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import dagster as dg

from pinot_assets.assets.asked_jobs import COMPACT_CONFIG, REBUILD_CONFIG, act_compact, act_rebuild
from pinot_assets.assets.health import AssetEvent
from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.keys import keys_of
from pinot_assets.assets.location_jobs import TableChoice, claim, location_job, writing_job
from pinot_assets.assets.plan_page import lines_of, plan_metadata
from pinot_assets.assets.runs import RunLog, driver_of
from pinot_assets.assets.snapshot import publication_by
from pinot_assets.assets.status import status_after, status_events
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.text import plural
from pinot_assets.gc.collect import collect, lines
from pinot_assets.gc.orphans import GRACE_HOURS, garbage
from pinot_assets.pinot.versions import HOUR_MS
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.rendering import way_lines
from pinot_assets.table_spec import TableSpec

TARGET_TAG = "pinot/target"
"""Run tag with the target of the run. If a run is executed again, it inherits the tag and the target."""


@dataclass(frozen=True, slots=True)
class _JobWork:
    """The operation of a job.

    :ivar target: returns what the operation acts on; after the operation it returns something else.
    :ivar act: does the operation with the op's config, and returns a text about what was done.
    :ivar config: the op's config schema.
    """

    name: str
    description: str
    target: Callable[[Observation], str]
    act: Callable[[Driver, JsonMapping, dg.DagsterLogManager], str]
    config: Mapping[str, dg.Field] = field(default_factory=dict)


def operation_jobs(tables: TableChoice[TableSpec]) -> tuple[dg.JobDefinition, ...]:
    """Return the jobs pinot_rollback, pinot_resume, pinot_clear, pinot_gc, pinot_compact, pinot_rebuild and
    pinot_plan."""
    operations = (_ROLLBACK, _RESUME, _CLEAR, _GC, _COMPACT, _REBUILD)
    jobs = tuple(_job(tables, operation) for operation in operations)
    return (*jobs, plan_job(tables))


def _rollback(driver: Driver, config: JsonMapping, log: dg.DagsterLogManager) -> str:
    way = driver.rollback_plan(config["to"])
    shown = [f"{label}: {text}".lstrip(": ") for label, text in way_lines(way, time.time_ns() // 1_000_000)]
    for line in shown:
        log.info(line)
    if config["dry_run"]:
        return "nothing was done: dry_run is set"
    snapshot = driver.rollback(config["to"], way)
    counted = driver.count(snapshot)
    for answer in counted:
        (log.info if answer.matches else log.error)(str(answer))
    size = f"{plural(len(snapshot.ledger), 'file')}, {plural(snapshot.rows, 'row')}"
    now = f"queries see {snapshot.session} now: {size}"
    return "\n\n".join([now, *shown, *map(str, counted)])


def _resume(driver: Driver, _config: JsonMapping, _log: dg.DagsterLogManager) -> str:
    return "the hold is gone" if driver.resume() else "nothing was held back"


def _clear(driver: Driver, _config: JsonMapping, _log: dg.DagsterLogManager) -> str:
    session = driver.clear()
    return f"session {session.id} is dropped" if session else "no session was open"


def _gc(driver: Driver, config: JsonMapping, log: dg.DagsterLogManager) -> str:
    grace_ms = int(config["grace_hours"] * HOUR_MS)
    if not config["apply"]:
        return "\n\n".join(lines(garbage(driver, grace_ms), None))
    collected = collect(driver, grace_ms, lambda _done, _total: None)
    for name, why in collected.failed.items():
        log.warning(f"{name} could not be deleted: {why}")
    return "\n\n".join(lines(collected.garbage, collected))


_ROLLBACK = _JobWork(
    "rollback",
    "Takes the table back to a kept snapshot: the one before, or the one that the config names. The "
    "log shows how: by one revert, or by publishing the staged segments of the snapshot again. "
    "Until `resume`, runs do not bring back what was taken out. The job acts when it is launched; "
    "with `dry_run: true` it only shows what it would do.",
    lambda observed: observed.snapshot.session if observed.snapshot else "",
    _rollback,
    {
        "to": dg.Field(
            str,
            default_value="",
            description="Number or session of a kept snapshot (`pinot-assets snapshots` lists them). If "
            "empty: the one before the current one.",
        ),
        "dry_run": dg.Field(
            bool, default_value=False, description="Only show in the log what would be done."
        ),
    },
)
_RESUME = _JobWork(
    "resume",
    "Ends the hold of a rollback: the next trigger publishes again what was held back.",
    lambda observed: observed.pointer.hold.key if observed.pointer.hold else "",
    _resume,
)
_CLEAR = _JobWork(
    "clear",
    "Drops the unfinished session. What is published stays.",
    lambda observed: observed.session.id if observed.session else "",
    _clear,
)

_GC = _JobWork(
    "gc",
    "Deletes what nothing needs any more: old snapshots, staged tars, sessions, segments, nodes. "
    "Without `apply` it only shows what would be deleted, and why. Like rollback, resume and clear, "
    "it also reports to Dagster what was published outside of Dagster since the last look.",
    lambda observed: observed.snapshot.session if observed.snapshot else "",
    _gc,
    {
        "apply": dg.Field(bool, default_value=False, description="Take it away."),
        "grace_hours": dg.Field(
            float, default_value=float(GRACE_HOURS), description="What is younger is kept."
        ),
    },
)

_COMPACT = _JobWork(
    "compact",
    "Merges the small segments of a table with `layout.pack`, in rounds, each with a gate and a switch of "
    "its own. It publishes what changed in the source, too. The job acts when it is launched; with "
    "`dry_run: true` it only shows in the log what it would do.",
    lambda _: "",  # who asks for it again wants the rest
    act_compact,
    COMPACT_CONFIG,
)
_REBUILD = _JobWork(
    "rebuild",
    "Builds published files again that the changed table spec would build differently, in one run with a "
    "gate and a switch. It publishes what changed in the source, too. The job acts when it is launched; with "
    "`dry_run: true` it only shows in the log what it would do.",
    lambda _: "",
    act_rebuild,
    REBUILD_CONFIG,
)


def _act_once(context: dg.OpExecutionContext, operation: _JobWork, driver: Driver) -> str:
    """Act, unless an earlier run of the same request did: a second rollback would go back once more."""
    driver.take()
    target = operation.target(driver.observe())
    meant = context.run.tags.get(TARGET_TAG, target)
    if meant != target:
        return (
            f"the config was meant for {meant or 'nothing'}, and the table now has "
            f"{target or 'nothing'}: nothing is done"
        )
    context.instance.add_run_tags(context.run.run_id, {TARGET_TAG: target})
    return operation.act(driver, context.op_config or {}, context.log)


def _job(tables: TableChoice[TableSpec], operation: _JobWork) -> dg.JobDefinition:
    def act(context: dg.OpExecutionContext, push: ConsistentPushResource) -> Iterator[AssetEvent]:
        spec = tables.chosen(context)
        claim(context, spec)
        driver = driver_of(context, spec, push)
        text = _act_once(context, operation, driver)
        context.log.info(text)
        shown = publication_by(driver, push.pinot.settings())
        history = TableHistory(context.instance, spec)
        if shown is not None and history.published() != shown.data_version:
            shown = replace(shown, metadata={**shown.metadata, operation.name: dg.MetadataValue.md(text)})
            yield from shown.events(history).publications(history)
            yield shown.event(keys_of(spec).snapshot)
            yield shown.event(keys_of(spec).table)
        yield from status_events(context.instance, spec, status_after(driver))

    return writing_job(operation.name, operation.description, tables, act, operation.config)


def plan_job(tables: TableChoice[TableSpec]) -> dg.JobDefinition:
    """Return the job pinot_plan of the plan report, which only reads."""

    def plan(context: dg.OpExecutionContext, push: ConsistentPushResource) -> Iterator[dg.AssetObservation]:
        spec = tables.chosen(context)
        report = push.driver(spec, context.run.run_id, RunLog(context.log)).plan()
        for line in lines_of(report):
            context.log.info(line)
        yield dg.AssetObservation(keys_of(spec).snapshot, metadata=plan_metadata(report))

    return location_job(
        "plan",
        "Shows what a run of a table would do now: files, segments, rows, room in the staging area, "
        "and what cannot be undone. Changes nothing and takes no lease. The plan is in the run's "
        "log and on the asset `<table>/snapshot`.",
        tables,
        plan,
    )
