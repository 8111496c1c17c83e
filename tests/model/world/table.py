"""One table with everything around it, in memory: sources, drivers that fail, and the passing of time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from fakes.pinot.memory import BROKERS, FakePinot
from fakes.pinot.staged import EMPTY
from fakes.stores.memory import new_memory, open_memory
from fakes.zookeeper.memory import FakeZooKeeper
from kazoo.exceptions import ConnectionLoss
from model.world.builder import ModelBuilder, build
from model.world.oracle import Files
from model.world.process import Process, Trouble
from model.world.truth import Actor, Truth
from model.world.watched import watched

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import ListingFailed, PinotAssetsError, PinotError, SourceError
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import TableClients
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.outdated import RebuildRequest
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import is_ours
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec import TableSpec

CLUSTER = "pinot"
TABLE = "model"
HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000

MODES: dict[str, JsonObject] = {
    "append": {"consistentPushEnabled": "true", "ingestionMode": "append"},
    "sync": {"consistentPushEnabled": "true", "ingestionMode": "sync"},
    "swap": {"consistentPushSwapEnabled": "true"},
}

Job = Callable[[Driver], object]
"""What a driver does; what it comes to is nobody's affair, but a report is kept."""


def run(driver: Driver) -> TriggerReport:
    """The whole job, as Dagster runs it."""
    report = driver.trigger()
    if report.result in (TriggerResult.STAGED, TriggerResult.FAILED):
        _, findings = driver.audit()
        if not any(f.blocks for f in findings):
            driver.publish()
    return report


def rebuild(driver: Driver, files: str = "") -> TriggerReport:
    """As `pinot-assets rebuild`."""
    request = RebuildRequest(files)
    report = driver.trigger_planned(driver.plan(request).planned.plan_basis.hash, request)
    if report.result in (TriggerResult.STAGED, TriggerResult.FAILED):
        _, findings = driver.audit()
        if not any(f.blocks for f in findings):
            driver.publish()
    return report


def clear(driver: Driver) -> None:
    """As `pinot-assets session clear`."""
    driver.clear()


@dataclass
class Running:
    """A driver's process with its connection to ZooKeeper."""

    process: Process
    actor: Actor
    report: TriggerReport | None = None


@dataclass
class ModelTable:
    """See the module docstring.

    :param spec_of: a table spec from the keys of its ingestion block.
    :ivar running: processes that stand still, and dead ones whose ZooKeeper session lives on.
    :ivar late: calls to Pinot that have not arrived yet.
    :ivar orphans: tasks of executors whose driver has died.
    :ivar story: what happened, for people.
    """

    spec_of: Callable[[JsonObject], TableSpec]
    mode: str
    options: JsonObject = field(default_factory=lambda: {"consistentPushMaxRetries": 3})
    now_ms: int = START_MS
    running: list[Running] = field(default_factory=list)
    late: list[tuple[str, Callable[[], object]]] = field(default_factory=list)
    orphans: list[tuple[BuildSpec, FileTask]] = field(default_factory=list)
    story: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.zookeeper, self.pinot = FakeZooKeeper(), FakePinot()
        self.zookeeper.client().ensure_path(f"/{CLUSTER}/PROPERTYSTORE")
        self.source, self.staging = new_memory(), new_memory()
        self.pinot.put_schema(self.spec.schema_json)
        self.pinot.create_table(self.spec.table_json)
        self._runs, self._foreign = itertools.count(1), itertools.count(1)
        self._set_clock()
        self.truth = Truth(TABLE, self.zookeeper, self.pinot)

    @property
    def spec(self) -> TableSpec:
        """As it is now."""
        return self.spec_of({**MODES[self.mode], **self.options})

    @property
    def files(self) -> Files:
        """The source now."""
        return {info.key: self.source.read(info.key) for info in self.source.list()}

    # --- time ------------------------------------------------------------------------------------

    def later(self, seconds: float) -> None:
        """Time passes, here and in Pinot; who does nothing for longer loses its ZooKeeper session."""
        self._sleep(seconds)
        if seconds > 30:
            self.expire()
        if seconds > 60:
            self.heal_brokers()

    def expire(self) -> None:
        """The ZooKeeper sessions of all that stand still or are dead end."""
        for each in self.running:
            self.zookeeper.expire(each.actor.client)
        self.running = [r for r in self.running if r.process.stopped]

    def heal_brokers(self) -> None:
        """Every broker gets its messages again, and has got the last ones."""
        self.pinot._deaf.clear()
        for broker in BROKERS:
            self.pinot.rebuild_routing(broker, TABLE)
        self.truth.look()

    def _sleep(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)
        self._set_clock()

    def _set_clock(self) -> None:
        self.pinot._clock = itertools.count(self.now_ms)

    # --- drivers ---------------------------------------------------------------------------------

    def start(self, job: Job, troubles: Sequence[Trouble] = ()) -> Running:
        """Start a driver, and let it run until it is through, dies or stands still."""
        name = f"run-{next(self._runs)}"
        actor = Actor(self.zookeeper.client(), self.mode, int(self.options["consistentPushMaxRetries"]))
        spec = self.spec

        def body(process: Process) -> None:
            with Driver(spec, self._clients(process, actor), name) as driver:
                came_to = job(driver)
                started.report = came_to if isinstance(came_to, TriggerReport) else None

        started = Running(Process(name, body, tuple(troubles)), actor)
        self.running.append(started)
        self.story.append(
            f"{name} starts to {job.__name__} ({', '.join(map(str, troubles)) or 'no trouble'})"
        )
        self.go_on(started)
        return started

    def go_on(self, running: Running) -> None:
        """Give a process its turn."""
        process = running.process
        process.go_on()
        end = "stands still" if process.stopped else "died" if process.dead else "is through"
        result = f": {running.report.result}" if isinstance(running.report, TriggerReport) else ""
        self.story.append(f"{process.name} {end}{result} {process.error or ''}\n      {process.effects}")
        if process.error is not None and not isinstance(process.error, PinotAssetsError):
            raise process.error
        if isinstance(process.error, ListingFailed):
            self.truth.listing_failed(running.actor)
        if process.done and not process.dead:
            self.zookeeper.expire(running.actor.client)
            self.running.remove(running)

    def kill(self, running: Running) -> None:
        """A process that stands still dies; its ZooKeeper session lives on for a while."""
        running.process.kill()
        self.story.append(f"{running.process.name} is killed")

    @property
    def stopped(self) -> list[Running]:
        """Processes that stand still."""
        return [r for r in self.running if r.process.stopped]

    def _clients(self, process: Process, actor: Actor) -> TableClients:
        truth, client = self.truth, actor.client
        client.around = lambda what: process.effect(_short(what), ConnectionLoss)
        client.on_read = process.alive
        client.on_write = lambda write: truth.stored(actor, write)
        source, staging = open_memory(self.source.uri), open_memory(self.staging.uri)
        source.on_list = lambda: self._list(process, actor)
        staging.around = lambda what: process.effect(what, lambda: SourceError("the store does not answer"))
        return TableClients(
            store=SessionStore(client, CLUSTER, f"{TABLE}_OFFLINE"),
            pinot=watched(
                self.pinot,
                process,
                truth.look,
                lambda name, args: truth.writes(actor, name, args),
                lambda name, arrive: self.late.append((f"{name} of {process.name}", arrive)),
            ),
            source=source,
            staging=Staging(staging),
            builder=ModelBuilder(process, source, truth.built, self._orphaned, truth.ordered),
            now_ms=lambda: self.now_ms,
            sleep=self._sleep,
        )

    def _list(self, process: Process, actor: Actor) -> None:
        with process.effect("list", lambda: ListingFailed("the listing broke off")):
            self.truth.listed(actor, self.files)

    def _orphaned(self, build_spec: BuildSpec, tasks: Sequence[FileTask]) -> None:
        self.orphans += [(build_spec, task) for task in tasks]

    # --- somebody else at work, and Pinot itself ---------------------------------------------------

    def push_foreign(self) -> None:
        """Somebody pushes a segment beside us."""
        name = f"foreign{next(self._foreign)}"
        output = Output(name, 1, 1, "", 1, "", "")
        self.pinot.push(TABLE, [output], staged=EMPTY)
        self.story.append(f"{name} is pushed")
        self.truth.look()

    def start_foreign(self, ours: int | None) -> None:
        """Somebody opens an entry: over a segment of ours, or over theirs.

        :param ours: which of our visible segments; None for all of theirs.
        """
        visible = sorted(self.pinot.visible_segments(TABLE))
        mine = [s for s in visible if is_ours(TABLE, s)]
        theirs = [s for s in visible if not is_ours(TABLE, s)]
        names_from = theirs if ours is None or not mine else [mine[ours % len(mine)]]
        with suppress(PinotError):
            entry = self.pinot.start_replace_segments(TABLE, names_from, [f"merged{next(self._foreign)}"])
            self.truth.foreign_entry(entry)
            self.story.append(f"somebody starts to replace {names_from}")

    def merge_foreign(self) -> None:
        """Somebody merges a segment of ours into one of theirs, as a merge or rollup task does."""
        ours = min(s for s in self.pinot.visible_segments(TABLE) if is_ours(TABLE, s))
        merged = Output(f"merged{next(self._foreign)}", 1, 1, "", 1, "", "")
        entry = self.pinot.start_replace_segments(TABLE, [ours], [merged.segment])
        self.pinot.push(TABLE, [merged], staged=EMPTY)
        self.pinot.end_replace_segments(TABLE, entry)
        self.truth.foreign_entry(entry)
        self.story.append(f"somebody replaces {ours} by {merged.segment}")

    def give_up_foreign(self) -> None:
        """Who opened entries reverts them."""
        for entry in self.truth.forget_foreign():
            self.pinot.force_revert_replace_segments(TABLE, entry)
            self.story.append("somebody's entry is reverted")
        self.truth.look()

    def clean_up(self) -> None:
        """One pass of Pinot's retention."""
        self.pinot.run_retention(TABLE)
        self.truth.reaped()
        self.story.append("Pinot's retention runs")
        self.truth.look()

    # --- what goes on without its driver ---------------------------------------------------------

    def deliver(self) -> None:
        """The oldest call that is under way arrives."""
        what, arrive = self.late.pop(0)
        self.truth.delivering = True
        try:
            arrive()
            self.story.append(f"late {what} arrives")
        except PinotAssetsError as error:
            self.story.append(f"late {what} arrives and is refused: {error}")
        finally:
            self.truth.delivering = False

    def finish_orphan(self) -> None:
        """An executor whose driver has died finishes its task."""
        order, task = self.orphans.pop(0)
        build(order, task, self.source, self.truth.built)
        self.story.append(f"an orphaned executor builds {task.file.uri} of {order.session}, {order.attempt}")


def _short(what: str) -> str:
    """`set cp1` for a transaction's steps with their long paths, less the checks."""
    steps = (step.split() for step in what.split(", "))
    return "zk " + ", ".join(f"{how} {path.rpartition('/')[2]}" for how, path in steps if how != "check")
