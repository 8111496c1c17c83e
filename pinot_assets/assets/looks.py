"""One look at a table of either kind, and what Dagster gets to know of it.

Runs of the job pinot_health and the sensor pinot_tables look in the same way. A look reads Pinot,
ZooKeeper, source and staging area, takes no lease and writes nothing there; Dagster gets its evaluations.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import dagster as dg

from pinot_assets.assets.health import AssetEvent, evaluations, health_checks, with_lasting
from pinot_assets.assets.location_jobs import TableChoice, location_job
from pinot_assets.assets.realtime import observations
from pinot_assets.assets.snapshot import Publication, data_version_of, publication
from pinot_assets.assets.status import gate_of_session, status_events
from pinot_assets.core.check_result import CheckResult, unknown
from pinot_assets.errors import PinotAssetsError
from pinot_assets.health import CHECKS, summary
from pinot_assets.health.all_checks import look_at
from pinot_assets.health.status_look import STATUS, status_from
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.realtime.health.all_checks import RealtimeView, blind, view_of
from pinot_assets.resources import PinotResource
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.detect.table_status import StatusReport, unknown_status
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import AnyTableSpec, RealtimeTableSpec, TableSpec


@dataclass(frozen=True, slots=True)
class OfflineView:
    """What one look found of an OFFLINE table.

    :ivar observation: None if ZooKeeper or the staging area could not be read.
    :ivar shown: what is published, if Dagster does not know of it; None if it does, or nothing is published.
    """

    answers: tuple[CheckResult, ...]
    status: StatusReport
    observation: Observation | None = None
    shown: Publication | None = None


def look_at_offline(spec: TableSpec, settings: Callable[[], Settings]) -> OfflineView:
    """Look at an OFFLINE table. Never raises for what cannot be reached."""
    answers, (status, seen) = look_at(spec, settings, lambda probe: (status_from(probe), _observed(probe)))
    return OfflineView(answers, status, seen)


def look_and_compare(spec: TableSpec, settings: Callable[[], Settings], known: str | None) -> OfflineView:
    """As `look_at_offline`, and with what is published if Dagster does not show that yet.

    :param known: data version of what Dagster shows as published, None if it shows nothing.
    """
    view = look_at_offline(spec, settings)
    seen = view.observation
    if seen is None or seen.snapshot is None or data_version_of(seen.snapshot) == known:
        return view
    try:
        where = settings()
        with open_session_store(spec, where) as store, HttpPinotClient(where.pinot) as pinot:
            shown = publication(spec, seen, store, open_staging(spec), pinot, where)
    except PinotAssetsError:  # shown at a later look
        shown = None
    return replace(view, shown=shown)


def _observed(probe: TableProbe) -> Observation | None:
    try:
        return probe.observation()
    except Exception:
        return None  # the checks that need it say why


def blind_offline(spec: TableSpec, why: str, next_step: str) -> OfflineView:
    """Return the result of a look that could not be made."""
    answers = tuple(unknown(check.name, why, next_step) for check in CHECKS)
    return OfflineView(answers, unknown_status(spec.name, why, next_step))


AnyView = OfflineView | RealtimeView


def view_text(view: AnyView) -> str:
    """Return one line: the status of an OFFLINE table, and which checks failed."""
    said = summary(view.answers)
    return f"{view.status.sentence}; {said}" if isinstance(view, OfflineView) else said


def blind_view(spec: AnyTableSpec, why: str, next_step: str) -> AnyView:
    """Return the result of a look at a table of either kind that could not be made."""
    return (
        blind(why, next_step) if isinstance(spec, RealtimeTableSpec) else blind_offline(spec, why, next_step)
    )


def recorded(instance: dg.DagsterInstance, spec: AnyTableSpec, view: AnyView) -> Iterator[AssetEvent]:
    """Yield what Dagster records of a look: evaluations of the checks, and for a REALTIME table numbers."""
    if isinstance(spec, RealtimeTableSpec):
        assert isinstance(view, RealtimeView)
        yield from observations(spec, view)
        yield from evaluations(instance, spec, view.answers)
        return
    assert isinstance(view, OfflineView)
    yield from status_events(instance, spec, view.status)
    yield from evaluations(instance, spec, with_lasting(instance, spec, view.answers))
    if view.observation is not None:
        gate = gate_of_session(instance, spec, view.observation)
        yield from () if gate is None else (gate,)


def table_health(spec: TableSpec) -> dg.AssetChecksDefinition:
    """Return the status and the health checks of one OFFLINE table."""

    def look_once(instance: dg.DagsterInstance, pinot: PinotResource) -> Iterator[AssetEvent]:
        return recorded(instance, spec, look_at_offline(spec, pinot.settings))

    what = f"Checks the health of {spec.name}. Reads only, and takes no lease."
    return health_checks(spec, (STATUS, *CHECKS), what, look_once)


def health_job(tables: TableChoice[AnyTableSpec]) -> dg.JobDefinition:
    """Return the job pinot_health, with which a person looks at one table once."""

    def look_once(context: dg.OpExecutionContext, pinot: PinotResource) -> Iterator[AssetEvent]:
        spec = tables.chosen(context)
        view = (
            look_at_offline(spec, pinot.settings)
            if isinstance(spec, TableSpec)
            else view_of(spec.name, pinot.settings)
        )
        context.log.info(view_text(view))
        yield from recorded(context.instance, spec, view)

    what = "Reads the health of a table once: its status and each of its checks. Changes nothing."
    return location_job("health", what, tables, look_once)
