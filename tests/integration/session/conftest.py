"""A world for the session machine: real ZooKeeper, real files, a Pinot in memory, a builder that obeys.

Time moves only when something sleeps, and a driver can die at any call.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from fakes.builder import BuildsHere
from fakes.pinot.memory import BROKERS, FakePinot
from fakes.pinot.queries import Queries
from fakes.waiting import until
from fakes.zookeeper.memory import FakeClient, FakeZooKeeper
from fakes.zookeeper.server import zookeeper_server
from kazoo.client import KazooClient

from pinot_assets.audit.checks import Finding
from pinot_assets.core.connections import Waits
from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.untrusted import typed
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.ingest.contract.builder import ignore_rows
from pinot_assets.ingest.task import build_file
from pinot_assets.pinot import HttpPinotClient, PinotClient, PinotConnection
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import Pointer, Session
from pinot_assets.settings.local_stack import StackState
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure, Output, Receipt
from pinot_assets.source import ObjectStore, open_store
from pinot_assets.table_spec import TableSpec, load_tables
from pinot_assets.zookeeper import close_client, connect

CLUSTER = "pinot"
HOUR_MS = 3_600_000


T = TypeVar("T")


class Died(BaseException):
    """The driver's process ends here."""


def die() -> None:
    raise Died


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`host:port` of a ZooKeeper like the local stack's, without Pinot."""
    with zookeeper_server(tmp_path_factory.mktemp("zookeeper")) as address:
        client = connect(address)
        client.ensure_path(f"/{CLUSTER}/PROPERTYSTORE")  # a controller makes it when it first starts
        close_client(client)
        yield address


def watched(pinot: PinotClient, look: Callable[[], None]) -> PinotClient:
    """Passes every call on to a Pinot and tells after each what queries see now."""
    return cast(PinotClient, _Watched(pinot, look))


class _Watched:
    """It has the methods of `PinotClient` by passing on whatever it is asked for."""

    def __init__(self, pinot: PinotClient, look: Callable[[], None]) -> None:
        self._pinot = pinot
        self._look = look

    def __getattr__(self, name: str) -> Callable[..., object]:
        method: Callable[..., object] = getattr(self._pinot, name)

        def call(*args: object, **options: object) -> object:
            try:
                return method(*args, **options)
            finally:
                self._look()

        return call


class Watching(Staging):
    """Knows what a segment holds that was renamed."""

    def __init__(self, store: ObjectStore, rows: dict[str, tuple[str, ...]]) -> None:
        super().__init__(store)
        self._rows = rows

    def put_renamed(self, output: Output, name: str) -> Output:
        self._rows[name] = self._rows[output.segment]
        return super().put_renamed(output, name)


class ScriptedBuilder(BuildsHere):
    """Builds in this process, one file after the other, and fails where it is told to.

    :ivar failing: base names of files that cannot be built.
    :ivar orders: for each call, the base names of the files that were to be built.
    :ivar rows: segment name → the values that it holds.
    """

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.orders: list[list[str]] = []
        self.rows: dict[str, tuple[str, ...]] = {}
        self.die_after: int | None = None

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        self.orders.append([base_name(t.file.uri) for t in tasks])
        for done, task in enumerate(tasks):
            if self.die_after == done:
                self.die_after = None
                raise Died
            on_done(self._build(build_spec, task))

    def _build(self, build_spec: BuildSpec, task: FileTask) -> Receipt | Failure:
        name = base_name(task.file.uri)
        if name in self.failing:
            return Failure(
                task.file.uri, task.ordinal, build_spec.attempt, "UNREADABLE", "as the test wants it"
            )
        receipt = build_file(build_spec, task)
        if isinstance(receipt, Receipt):
            values = tuple(_path_of(task.file.uri).read_text().split()[1:])
            start = 0
            for output in receipt.outputs:
                self.rows[output.segment] = values[start : start + output.rows]
                start += output.rows
        return receipt


def base_name(uri: str) -> str:
    return unquote(uri.rsplit("/", 1)[-1])


def _path_of(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


@dataclass
class SessionWorld:
    """One table and everything around it."""

    table: str
    folder: Path
    zookeeper: str | FakeZooKeeper
    options: JsonObject
    pinot: PinotClient
    _shown: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    slept: list[float] = field(default_factory=list)
    on_sleep: Callable[[], None] = lambda: None
    notes: list[str] = field(default_factory=list)
    waits: Waits = field(default_factory=Waits)
    audit_block: list[JsonObject] = field(default_factory=list)
    _runs: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        for name in ("source", "staging", "tables"):
            (self.folder / name).mkdir()
        self.builder = ScriptedBuilder()
        self.pinot.put_schema(self.read_spec().schema_json)
        self.pinot.create_table(self.read_spec().table_json)
        self._look()

    die = staticmethod(die)

    def later(self, hours: float) -> None:
        """Time passes, here and in Pinot."""
        self.now_ms += int(hours * HOUR_MS)
        self.fake._clock = itertools.count(self.now_ms)

    @property
    def fake(self) -> FakePinot:
        """The Pinot, where it is in memory."""
        assert isinstance(self.pinot, FakePinot)
        return self.pinot

    # --- the source ------------------------------------------------------------------------------

    @property
    def source(self) -> Path:
        return self.folder / "source"

    def write(self, *names: str, **versions: str) -> None:
        """Files with one row each, their own name, or `F1="F1.1 F1.1b"`: these rows."""
        for name, values in {**{n: n for n in names}, **versions}.items():
            (self.source / name).parent.mkdir(exist_ok=True)
            (self.source / name).write_text("\n".join(["v", *values.split()]) + "\n")

    def remove(self, *names: str) -> None:
        for name in names:
            (self.source / name).unlink()

    # --- the spec --------------------------------------------------------------------------------

    def read_spec(self) -> TableSpec:
        """Written anew and read back each time, as the code location does."""
        path = self.folder / "tables" / "world.yaml"
        document = _document(self.table, self.folder, self.options)
        audit = {"audit": self.audit_block} if self.audit_block else {}
        path.write_text(yaml.safe_dump(document | audit))
        return load_tables(path.parent)[self.table]

    # --- drivers ---------------------------------------------------------------------------------

    def client(self) -> FakeClient | KazooClient:
        """A started client of its ZooKeeper; close it with `session.zookeeper.close_client`."""
        if isinstance(self.zookeeper, FakeZooKeeper):
            return self.zookeeper.client()
        return connect(self.zookeeper)

    @contextmanager
    def store(self) -> Iterator[SessionStore]:
        client = self.client()
        try:
            yield SessionStore(client, CLUSTER, f"{self.table}_OFFLINE", self.waits)
        finally:
            close_client(client)

    @contextmanager
    def driver(self, pinot: PinotClient | None = None, asked_by: str = "") -> Iterator[Driver]:
        """A driver; one that dies keeps its name on the pointer and loses its lease with its connection."""
        with self.store() as store:
            clients = TableClients(
                store=store,
                pinot=watched(pinot or self.pinot, self._look),
                source=open_store(str(self.source), {}, UNLIMITED),
                staging=self.staging,
                builder=self.builder,
                now_ms=lambda: self.now_ms,
                sleep=self._sleep,
            )
            driver = Driver(self.read_spec(), clients, f"run-{next(self._runs)}", asked_by=asked_by)
            try:
                yield driver
            except BaseException:
                if (watchdog := vars(driver).get("_watchdog")) is not None:
                    watchdog.stop()  # its process would have ended
                raise
            driver.release()

    @property
    def staging(self) -> Staging:
        return Watching(
            open_store(f"{self.folder}/staging/{self.table}_OFFLINE", {}, UNLIMITED), self.builder.rows
        )

    def trigger(self) -> TriggerReport:
        """The first step alone: build, stage."""
        with self.driver() as driver:
            report = driver.trigger()
            driver.release()
            return self._noted(report)

    def run(self) -> TriggerReport:
        """The whole job, as Dagster runs it: the gate stops it, and what is raised goes on."""
        with self.driver() as driver:
            try:
                report = self._noted(driver.trigger())
                if report.result in (TriggerResult.STAGED, TriggerResult.FAILED):
                    _, findings = driver.audit()
                    if not any(f.blocks for f in findings):
                        driver.publish()
            except Exception:
                driver.release()
                raise
            return report

    def dies(self) -> None:
        """The whole job, which must die on its way."""
        with pytest.raises(Died):
            self.run()

    def publish(self) -> Snapshot:
        with self.driver() as driver:
            return _released(driver, driver.publish)

    def audit(self) -> tuple[Session, tuple[Finding, ...]]:
        with self.driver() as driver:
            return _released(driver, driver.audit)

    def rollback(self) -> Snapshot:
        with self.driver() as driver:
            return _released(driver, driver.rollback)

    def resume(self) -> bool:
        with self.driver() as driver:
            return _released(driver, driver.resume)

    def clear(self) -> Session | None:
        with self.driver() as driver:
            return _released(driver, driver.clear)

    def _noted(self, report: TriggerReport) -> TriggerReport:
        self.notes += report.notes
        return report

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_ms += int(seconds * 1000)
        self.on_sleep()

    # --- what is there ---------------------------------------------------------------------------

    @property
    def visible(self) -> list[str]:
        """The values that queries see, by the lineage."""
        names = self.pinot.visible_segments(self.table)
        return sorted(v for name in names for v in self.builder.rows.get(name, (name,)))

    @property
    def built(self) -> list[str]:
        """Base names of the files of the last build."""
        return self.builder.orders[-1]

    @property
    def builds(self) -> int:
        return len(self.builder.orders)

    def read_pointer(self) -> Pointer:
        with self.store() as store:
            return store.pointer()

    def read_session(self) -> Session | None:
        """The open session."""
        with self.store() as store:
            return store.active_session(store.pointer())

    def read_sessions(self) -> list[Session]:
        with self.store() as store:
            return store.sessions()

    def read_snapshot(self) -> Snapshot:
        ref = self.read_pointer().current_snapshot
        assert ref is not None
        return self.staging.snapshot(ref)

    def read_ledger(self) -> dict[str, tuple[str, ...]]:
        """What the newest snapshot says: base name → values."""
        return {
            base_name(uri): tuple(v for o in file.outputs for v in self.builder.rows[o.segment])
            for uri, file in self.read_snapshot().ledger.items()
        }

    def assert_settled(self) -> None:
        """Nothing is half way: no session, no open entry, Pinot holds the ledger's segments visibly (I15)."""
        assert self.read_pointer().active_session == ""
        assert [e for e in self.pinot.lineage(self.table) if e.state.value == "IN_PROGRESS"] == []
        assert self.pinot.visible_segments(self.table) == set(self.read_snapshot().segments)

    @property
    def shown(self) -> list[tuple[str, ...]]:
        """The sets of values that queries have seen, one after the other; the same at every broker."""
        histories = list(self._shown.values())
        assert all(history == histories[0] for history in histories), self._shown
        return histories[0]

    def watch_anew(self) -> None:
        """Forget what was seen so far."""
        self._shown.clear()
        self._look()

    def _look(self) -> None:
        table = self.fake._tables.get(self.table)
        if table is None:
            return  # deleted: queries get no answer
        shown = {broker: table.routing.get(broker, ()) for broker in BROKERS}
        for where, names in {"lineage": table.visible, **shown}.items():
            values = tuple(sorted(v for name in names for v in self.builder.rows.get(name, (name,))))
            history = self._shown.setdefault(where, [values])
            if history[-1] != values:
                history.append(values)


def _released(driver: Driver, step: Callable[[], T]) -> T:
    try:
        return step()
    finally:
        with suppress(Died):
            driver.release()


def _document(table: str, folder: Path, options: JsonObject) -> JsonObject:
    return {
        "schema": {"schemaName": table, "dimensionFieldSpecs": [{"name": "v", "dataType": "STRING"}]},
        "table": {
            "tableName": table,
            "tableType": "OFFLINE",
            "segmentsConfig": {"replication": "2"},
            "tenants": {},
            "tableIndexConfig": {"loadMode": "MMAP"},
            "ingestionConfig": {
                "batchIngestionConfig": {
                    "segmentIngestionType": "REFRESH",
                    "segmentIngestionFrequency": "DAILY",
                }
            },
            "metadata": {},
        },
        "fileIngestion": {
            "inputDirURI": f"file://{folder}/source",
            "inputFormat": "csv",
            "output.segment.dir.uri": f"file://{folder}/staging",
            "consistentPushMaxRetries": 3,
            **options,
        },
    }


MODES: dict[str, JsonObject] = {
    "append": {"consistentPushEnabled": True},
    "sync": {"consistentPushEnabled": True, "ingestionMode": "sync"},
    "swap": {"consistentPushSwapEnabled": True},
}
_tables = itertools.count()


def _make_in(zookeeper: str | FakeZooKeeper, folder: Path) -> Callable[..., SessionWorld]:
    def make(mode: str, pinot: dict[str, str] | None = None, **options: object) -> SessionWorld:
        fake = FakePinot(**(pinot or {}))
        return SessionWorld(f"world{next(_tables)}", folder, zookeeper, {**MODES[mode], **options}, fake)

    return make


@pytest.fixture
def make_world(tmp_path: Path) -> Callable[..., SessionWorld]:
    """Makes a world: `make_world("sync", consistentPushMaxRetries=0)`.

    Its ZooKeeper is in memory; `tests/contract/test_zookeeper.py` holds that to a real one.
    """
    zookeeper = FakeZooKeeper()
    zookeeper.client().ensure_path(f"/{CLUSTER}/PROPERTYSTORE")
    return _make_in(zookeeper, tmp_path)


@pytest.fixture
def make_addressed_world(zookeeper: str, tmp_path: Path) -> Callable[..., SessionWorld]:
    """The same with a real ZooKeeper, for what opens one by its address."""
    return _make_in(zookeeper, tmp_path)


class RealWorld(SessionWorld):
    """The same on a running Pinot, in real time; what was seen is what its brokers answered."""

    _queries: Queries[tuple[str, ...]] | None = None

    def later(self, hours: float) -> None:
        """Nothing here depends on the hour."""

    def _look(self) -> None:
        """Threads look, from `watch_anew` on."""

    def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        super()._sleep(seconds)

    @property
    def brokers(self) -> Sequence[str]:
        return self.pinot.brokers(self.table)

    def shown_by(self, broker: str) -> list[str]:
        """The values that a query sees, each as often as it is there."""
        sql = f'SELECT v, COUNT(*) FROM "{self.table}" GROUP BY v LIMIT 1000'
        rows = cast(HttpPinotClient, self.pinot).broker(broker).query(sql).rows
        return sorted(str(value) for value, count in rows for _ in range(typed(count, int)))

    @property
    def shown(self) -> list[tuple[str, ...]]:
        """What queries at the brokers have answered since `watch_anew`; none may have failed."""
        assert self._queries is not None, "nobody has watched"
        self._shown = self._queries.answers()
        assert self._queries.failed == []
        return super().shown

    def watch_anew(self) -> None:
        self.watch_no_more()
        self._queries = Queries(self.brokers, lambda broker: tuple(self.shown_by(broker))).__enter__()

    def watch_no_more(self) -> None:
        """End the threads that ask."""
        if self._queries is not None:
            self._queries.__exit__(None, None, None)


@pytest.fixture
def make_real_world(stack: StackState, tmp_path: Path) -> Iterator[Callable[[str], RealWorld]]:
    """Makes a world on the local stack: `make_real_world("sync")`."""
    with HttpPinotClient(PinotConnection(stack.controller_url)) as pinot, ExitStack() as after:

        def make(mode: str) -> RealWorld:
            table = f"world_{time.time_ns()}"
            world = RealWorld(table, tmp_path, stack.zookeeper, {**MODES[mode]}, pinot)
            world.waits = Waits(first_entry=0.1)  # there is one controller, and nobody it could lose to
            after.callback(pinot.delete_schema, table)
            after.callback(pinot.delete_table, table)
            after.callback(world.watch_no_more)
            until(lambda: len(world.brokers) == 2)
            return world

        yield make


@pytest.fixture
def real_world(make_real_world: Callable[[str], RealWorld]) -> RealWorld:
    """A world in sync mode on the local stack."""
    return make_real_world("sync")


@dataclass
class SessionScene:
    """The beginning that the scenes have in common (docs/guides/consistent-push.md#how-all-scenes-begin).

    :ivar mode: append, sync or swap.
    :ivar before: what queries see until a session is published.
    """

    world: SessionWorld
    mode: str
    before: list[str]

    def after(self, *values: str) -> list[str]:
        """What queries see once these and P1 are published."""
        return sorted(("P1", *values))


@pytest.fixture(params=list(MODES))
def scene(request: pytest.FixtureRequest, make_world: Callable[..., SessionWorld]) -> SessionScene:
    return _at_noon(make_world(request.param), request.param)


@pytest.fixture
def at_noon() -> Callable[[SessionWorld, str], SessionScene]:
    """Brings a new world to where the scenes begin."""
    return _at_noon


def _at_noon(world: SessionWorld, mode: str) -> SessionScene:
    """F1 and F2 are built, F3 to F5 have failed."""
    match mode:
        case "append":
            world.write("P1")
        case "sync":
            world.write("P1", "Q", F1="F1old")
        case _:
            world.write("A1", "A2", "A3")
    world.run()
    before = world.visible
    match mode:
        case "sync":
            world.remove("Q")
        case "swap":
            world.remove("A1", "A2", "A3")
            world.write("P1")
    world.write("F1", "F2", "F3", "F4", "F5")
    world.builder.failing = {"F3", "F4", "F5"}
    world.watch_anew()
    world.run()
    world.later(4)
    return SessionScene(world, mode, before)
