"""The check `status` of a table's asset, and the gate of a session that something outside Dagster drove.

Every run of the table evaluates its status when it ends, and the sensor pinot_tables does in between. So
each page of the table says in one sentence what it is, why, and what to do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

import dagster as dg

from pinot_assets.assets.health import check_evaluation
from pinot_assets.assets.history import checked_materialization, newest_evaluation
from pinot_assets.assets.keys import GATE, keys_of
from pinot_assets.assets.metadata import Metadata, of_checks, of_session, served
from pinot_assets.assets.waiting import waiting_events
from pinot_assets.core.text import plural
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.detect.table_status import NO_CHANGES, StatusReport, facts_of, table_status
from pinot_assets.session.driver import Driver
from pinot_assets.session.values.outdated import need_of_listing
from pinot_assets.session.values.state import Session
from pinot_assets.table_spec import TableSpec

DOCS_VARIABLE = "PINOT_ASSETS_DOCS_URL"

StatusEvent = dg.AssetCheckEvaluation | dg.AssetObservation


def status_events(
    instance: dg.DagsterInstance, spec: TableSpec, status: StatusReport
) -> Iterator[StatusEvent]:
    """Yield the status as an evaluation of the check `status`, and as what the asset `waiting` has of it."""
    target = checked_materialization(instance, keys_of(spec).table)
    yield check_evaluation(spec, status.check_result(), of_status(status, os.environ), target)
    yield from waiting_events(instance, spec, status)


def of_status(status: StatusReport, environ: Mapping[str, str]) -> Metadata:
    """Return the parts of a status; the section that says what to do is a link where the docs are served."""
    values: dict[str, dg.MetadataValue | str | int | float] = {"state": status.state.value}
    if status.since_ms:
        values["since"] = dg.MetadataValue.timestamp(status.since_ms / 1000)
    if status.command:
        values["command"] = status.command
    if status.runbook:
        base = environ.get(DOCS_VARIABLE, "").strip().rstrip("/")
        values["what_to_do"] = (
            dg.MetadataValue.url(f"{base}/operations.html#{status.runbook}")
            if base
            else f"docs/operations.md#{status.runbook}"
        )
    return values


def status_after(driver: Driver) -> StatusReport:
    """Return the status at the end of a run, which has just compared the source: no change waits by then."""
    newest = driver.clients.store.newest_session()
    seen = driver.observe()
    need = need_of_listing(driver.spec, seen.snapshot, seen.hold, (), ())
    facts = facts_of(driver.spec, seen, newest, NO_CHANGES, need)
    return table_status(facts, time.time_ns() // 1_000_000)


def gate_of_session(
    instance: dg.DagsterInstance, spec: TableSpec, seen: Observation
) -> dg.AssetCheckEvaluation | None:
    """Return the gate's evaluation that a session's stored audit amounts to; None if Dagster has it already,
    or the session was not audited.

    The command line and other instances of Dagster store it in ZooKeeper; only this shows it here.
    """
    session = seen.session
    if session is None or seen.holder is not None or not (seen.failures or session.audit):
        return None
    if _ask_if_told(instance, spec, session):
        return None
    said, passed = session.last_error, False
    if seen.failures:
        first = seen.failures[0]
        said = f"{plural(len(seen.failures), 'file')} failed, first {first.uri}: {first.code}: {first.reason}"
    elif session.audit is not None:
        said, passed = session.audit.summary, session.audit.passed
    if not passed:
        said = f"{said}. Nothing is switched: {served(seen.snapshot)}"
    segments = keys_of(spec).segments
    return dg.AssetCheckEvaluation(
        asset_key=segments,
        check_name=GATE,
        passed=passed,
        severity=dg.AssetCheckSeverity.ERROR,
        description=said,
        metadata={
            **of_session(session),
            **(of_checks(session.audit.checks) if session.audit else {}),
            **of_gate(session),
        },
        target_materialization_data=checked_materialization(instance, segments),
        blocking=True,
    )


def of_gate(session: Session) -> Metadata:
    """Return the metadata by which an evaluation of the gate names the session and attempt that it judged."""
    return {"session": session.id, "attempt": session.attempt}


def _ask_if_told(instance: dg.DagsterInstance, spec: TableSpec, session: Session) -> bool:
    newest = newest_evaluation(instance, dg.AssetCheckKey(keys_of(spec).segments, GATE))
    if newest is None:
        return False
    told = newest.evaluation.metadata
    return all(name in told and told[name].value == value for name, value in of_gate(session).items())
