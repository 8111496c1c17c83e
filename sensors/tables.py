"""The sensor of all tables, which only reads: it shows in Dagster how each table is.

At each tick it asks ZooKeeper which tables changed since it last looked: one question for the pointer and one
for the lease of each. Changed tables and those whose `healthIntervalSec` has passed are looked at by turns,
within a time budget. A look that is slow continues beside the others, and is recorded when it ends. What the
command line or another Dagster published is recorded as well. No run starts here, so the sensor is on by
default.

What was looked at when is kept in the code server's memory: a restart begins a new round.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg
from dagster._grpc.utils import default_sensor_grpc_timeout

from pinot_assets.assets.health import AssetEvent
from pinot_assets.assets.history import TICK_S, Budget, TableHistory
from pinot_assets.assets.keys import keys_of, table_key
from pinot_assets.assets.looks import AnyView, OfflineView, blind_view, look_and_compare, recorded, view_text
from pinot_assets.assets.overview import KEY, overview_events
from pinot_assets.assets.runs import runs_under_way
from pinot_assets.assets.snapshot import Publication, gate_again
from pinot_assets.core.background import BackgroundCalls
from pinot_assets.core.check_result import some
from pinot_assets.core.text import plural
from pinot_assets.core.waiting import Late, Patience
from pinot_assets.errors import PinotAssetsError
from pinot_assets.realtime.health.all_checks import view_of
from pinot_assets.resources import PinotResource
from pinot_assets.scheduling.rounds import due
from pinot_assets.session.detect.table_status import TableCondition
from pinot_assets.session.stores.clients import open_session_store, open_session_stores
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.settings.environment import Settings
from pinot_assets.table_spec import AnyTableSpec, LeftOut, TableSpec, label_of

INTERVAL_S = 30
LOOKS_S = 20.0
"""Seconds of a tick in which looks begin; the rest is for those that run and for writing events."""
MOST_LOOKS = 50
"""The most tables that one tick looks at. Dagster's daemon stores a dozen events for each, one after the
other, and no other sensor ticks meanwhile."""
MOST_SLOW = 8
"""The most looks that run at a time. Quick ones run one after the other."""
QUICK_S = 2.0
"""Seconds for which a tick waits for one look before it begins the next one beside it."""
LOOK_S = default_sensor_grpc_timeout() - TICK_S - 5
"""Seconds after which a look counts as not ending. If a server is silent, clients give up after a minute."""
LATE_HINT = (
    "is it up, and does the network allow requests? If a look takes longer, set "
    "DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS for code server and daemon (docs/scale.md)"
)


def tables_sensor(specs: Sequence[AnyTableSpec], left_out: Sequence[LeftOut] = ()) -> dg.SensorDefinition:
    """Return the sensor pinot_tables of these tables.

    :param left_out: tables whose spec cannot be used; the overview lists them, too.
    """
    rounds = _Rounds({label_of(spec): spec for spec in specs})

    @dg.sensor(
        name="pinot_tables",
        asset_selection=dg.AssetSelection.assets(KEY, *map(table_key, specs)),
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Looks at each table when it has changed, and every `healthIntervalSec`. Shows its "
        "status, its health checks, and what was published outside Dagster. Reads only; starts "
        "nothing.",
    )
    def sensor(context: dg.SensorEvaluationContext, pinot: PinotResource) -> dg.SensorResult:
        tick = _TablesTick(context.instance, pinot.settings, context.cursor or "")
        message = tick.message(rounds.look(tick))
        context.log.info(message)
        if tick.events:
            tick.events += overview_events(context.instance, specs, tick.events, left_out)
        return dg.SensorResult(skip_reason=dg.SkipReason(message), cursor=tick.last, asset_events=tick.events)

    return sensor


@dataclass(slots=True)
class _TablesTick:
    """One tick, while it runs.

    :ivar last: the table that was looked at last.
    :ivar said: what each look found, by table.
    """

    instance: dg.DagsterInstance
    settings: Callable[[], Settings]
    last: str
    events: list[AssetEvent] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    writing: Budget = field(default_factory=lambda: Budget(TICK_S))

    def message(self, waiting: int) -> str:
        """Return one line: tables that are not well first.

        :param waiting: number of tables that were due.
        """
        left = f"; {plural(waiting - len(self.said), 'table')} later" if waiting > len(self.said) else ""
        if not self.said:
            return f"no table has changed, and no look is due{left}"
        unwell = [text for text in self.said.values() if text]
        details = f"; {some(unwell, 5, '; ')}" if unwell else ""
        return f"looked at {plural(len(self.said), 'table')}, {len(unwell)} not well{details}{left}"


class _Rounds:
    """The looks at all tables, from tick to tick.

    :ivar looked_s: when each table was looked at last, in seconds of a clock that is never set.
    :ivar marks: what ZooKeeper said of each table then.
    """

    def __init__(self, specs: Mapping[str, AnyTableSpec]) -> None:
        self.specs = specs
        self.intervals = {name: float(spec.dagster.health_interval_sec) for name, spec in specs.items()}
        self.looked_s: dict[str, float] = {}
        self.marks: dict[str, str] = {}
        self._calls: BackgroundCalls[AnyView] = BackgroundCalls(MOST_SLOW)
        self._patience = Patience()

    def look(self, tick: _TablesTick) -> int:
        """Look at the tables that are due, as many as there is time for; return how many are due."""
        budget, marks = Budget(LOOKS_S), self._marks_now(tick.settings)
        changed = {
            name
            for name, mark in marks.items()
            if name in self.looked_s and mark != self.marks.get(name, mark)
        }
        waiting = due(self.intervals, self.looked_s, changed, time.monotonic(), tick.last)
        for name in waiting[:MOST_LOOKS]:
            if budget.is_spent:
                break
            if self._calls.start(name, self._look_at(name, tick), QUICK_S):
                self.looked_s[name], tick.last = time.monotonic(), name
                self.marks |= {name: marks[name]} if name in marks else {}
            self._record(tick)
        self._record(tick)
        return len(waiting)

    def _marks_now(self, settings: Callable[[], Settings]) -> dict[str, str]:
        """Return a text by OFFLINE table that differs when a run, a person or a rollback changed the table.

        :returns: nothing if ZooKeeper does not answer; the looks say so.
        """

        def read() -> dict[str, str]:
            offline = [spec for spec in self.specs.values() if isinstance(spec, TableSpec)]
            with open_session_stores(offline, settings()) as stores:
                return {name: _mark(store) for name, store in stores.items()}

        try:
            return self._patience.wait_for(read, LOOKS_S / 2)
        except (Late, PinotAssetsError):
            return {}

    def _look_at(self, name: str, tick: _TablesTick) -> Callable[[], AnyView]:
        spec = self.specs[name]
        if not isinstance(spec, TableSpec):
            return lambda: view_of(spec.name, tick.settings)
        known = TableHistory(tick.instance, spec).published()
        return lambda: look_and_compare(spec, tick.settings, known)

    def _record(self, tick: _TablesTick) -> None:
        """Take the looks that have ended, and those that last too long, into the tick."""
        for name in self._calls.give_up(LOOK_S):
            why = f"the look at {name} does not end (not within {LOOK_S:.0f} s)"
            self._tell(tick, name, blind_view(self.specs[name], why, LATE_HINT))
        for name, view in self._calls.collect().items():
            if isinstance(view, Exception):
                fault = "this is a fault of the look itself: please report it"
                view = blind_view(self.specs[name], repr(view), fault)
            self._tell(tick, name, view)

    def _tell(self, tick: _TablesTick, name: str, view: AnyView) -> None:
        spec = self.specs[name]
        tick.said[name] = "" if _is_well(view) else f"{name}: {view_text(view)}"
        shown = view.shown if isinstance(view, OfflineView) else None
        if isinstance(spec, TableSpec) and shown is not None and not _show_published(tick, spec, shown):
            self.marks[name] = ""  # the next tick continues with it
        tick.events += recorded(tick.instance, spec, view)


def _is_well(view: AnyView) -> bool:
    passed = all(answer.passed for answer in view.answers)
    return passed and (not isinstance(view, OfflineView) or view.status.state is TableCondition.UP_TO_DATE)


def _mark(store: SessionStore) -> str:
    pointer = store.pointer()
    snapshot, hold = pointer.current_snapshot, pointer.hold
    parts = (pointer.epoch, pointer.active_session, snapshot and snapshot.sha256, hold and hold.sha256)
    return f"{parts} {'held' if store.holder() else 'free'}"


def _show_published(tick: _TablesTick, spec: TableSpec, shown: Publication) -> bool:
    """Record in Dagster a snapshot that the command line or another Dagster instance published.

    :returns: whether all of it is recorded, or a run of the table will do that.
    """
    if runs_under_way(tick.instance, spec):
        return True
    history = TableHistory(tick.instance, spec, tick.writing)
    if not history.report(shown.events(history).publications(history)):
        return False
    # A run may have started meanwhile. It will record a newer snapshot, and this one is out of date.
    if runs_under_way(tick.instance, spec) or not _ask_if_current(tick, spec, shown):
        return True
    tick.instance.report_runless_asset_event(gate_again(tick.instance, shown, 0))
    # The table's own event comes last: it marks that all other events are stored.
    for key in (keys_of(spec).snapshot, keys_of(spec).table):
        history.store(shown.event(key))
    return True


def _ask_if_current(tick: _TablesTick, spec: TableSpec, shown: Publication) -> bool:
    """Whether no newer snapshot was published since the look."""
    try:
        with open_session_store(spec, tick.settings()) as store:
            now = store.pointer().current_snapshot
    except PinotAssetsError:
        return False
    return now is not None and now.key == shown.ref.key
