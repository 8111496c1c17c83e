"""Jobs for what people do to a table now and then: rollback, resume, clear.

They do what the commands of the same names do, and tell Dagster what queries see afterwards.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Callable, Iterator

import dagster as dg

from pinot_assets.assets.driving import driver_of
from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.keys import TABLE_TAG, pool_of
from pinot_assets.assets.picture import Event
from pinot_assets.assets.published import publication
from pinot_assets.resources import ConsistentPushResource
from pinot_assets.session.driver import Driver
from pinot_assets.spec import TableSpec


def operations(spec: TableSpec) -> tuple[dg.JobDefinition, ...]:
    """`<table>_rollback`, `<table>_resume`, `<table>_clear`."""
    return (
        _job(
            spec,
            "rollback",
            "Back to the snapshot before, by one revert. What was taken back stays out until `resume`.",
            _rollback,
        ),
        _job(spec, "resume", "Let in again what a rollback holds back; the next trigger takes it.", _resume),
        _job(spec, "clear", "Drop the unfinished session; what is published stays.", _clear),
    )


def _rollback(driver: Driver) -> str:
    snapshot = driver.rollback()
    return f"queries see {snapshot.session} now: {len(snapshot.ledger)} files, {snapshot.rows} rows"


def _resume(driver: Driver) -> str:
    return "the hold is gone" if driver.resume() else "nothing was held back"


def _clear(driver: Driver) -> str:
    session = driver.clear()
    return f"session {session.id} is dropped" if session else "no session was open"


def _job(spec: TableSpec, name: str, description: str, act: Callable[[Driver], str]) -> dg.JobDefinition:
    @dg.op(name=f"{spec.asset_name}_{name}_op", out={}, pool=pool_of(spec), description=description)
    def operation(context: dg.OpExecutionContext, push: ConsistentPushResource) -> Iterator[Event]:
        driver = driver_of(context, spec, push)
        context.log.info(act(driver))
        edges = driver.edges
        shown = publication(
            spec, driver.observe(), edges.store, edges.staging, edges.pinot, push.pinot.settings()
        )
        history = TableHistory(context.instance, spec)
        if shown is not None and history.published() != shown.data_version:
            yield from shown.partitions(history)
            yield shown.switch()
            yield shown.table()

    @dg.job(
        name=f"{spec.asset_name}_{name}",
        tags={TABLE_TAG: spec.name},
        executor_def=dg.in_process_executor,
        description=description,
    )
    def job() -> None:
        operation()

    return job
