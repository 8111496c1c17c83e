"""Two drills on a REALTIME table, on real Kafka and Pinot: the deep store fails, then a committer dies.

The demo uses the same code as the commands: the preflight before the table is created, the drill, health, the
repair. There is always a backlog of messages, so that Pinot and not the producer limits the rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from typing import Final

from rich.console import Console
from rich.markup import escape

from demos.stack import StoreOutage, kill, kill_committer, lose_disk, own_stack
from demos.steps import StoryBroken
from pinot_assets.cli.realtime.preflight import gate
from pinot_assets.cli.realtime.table import open_work
from pinot_assets.errors import PinotAssetsError
from pinot_assets.local.stack import Stack
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.model.state import RealtimeState, SegmentStatus
from pinot_assets.realtime.operations.drill import Drill, Lengths, sample_of
from pinot_assets.realtime.operations.table_operation import TableOperation
from pinot_assets.realtime.repair.apply import Repair
from pinot_assets.settings.environment import load_settings
from pinot_assets.settings.local_stack import SERVERS, StackState
from pinot_assets.table_spec import load_tables
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

# --- the table, as a spec, and the messages that feed it --------------------------------------------

TABLE: Final = "clicks"
PARTITIONS: Final = 2
ROWS_A_SEGMENT: Final = 5_000
MESSAGES_A_SECOND: Final = 1_000
"""The servers' rate limit. With a backlog, it makes commits come at a known rate, every ten seconds."""
PRODUCED_A_SECOND: Final = 1_500
"""The producer's limit: a server that starts consumes all it finds, before its rate limit takes effect."""
GIVEN_UP_S: Final = 10
"""Seconds until Pinot gives up a dead committer, plus 6.6 s for an election. Pinot's default is 120."""

_SPEC: Final = """\
schema:
  schemaName: {table}
  dimensionFieldSpecs:
    - {{name: id, dataType: LONG}}
  dateTimeFieldSpecs:
    - {{name: at, dataType: LONG, format: "1:MILLISECONDS:EPOCH", granularity: "1:MILLISECONDS"}}

table:
  tableName: {table}
  tableType: REALTIME
  segmentsConfig:
    schemaName: {table}
    timeColumnName: at
    replication: "2"
    replicasPerPartition: "2"
    retentionTimeUnit: DAYS
    retentionTimeValue: "3"
  tenants: {{}}
  tableIndexConfig: {{loadMode: MMAP}}
  metadata: {{}}

realtime:
  stream:
    streamType: kafka
    stream.kafka.topic.name: {table}
    stream.kafka.broker.list: {kafka}
    stream.kafka.consumer.type: lowlevel
    stream.kafka.consumer.prop.auto.offset.reset: smallest
    stream.kafka.consumer.factory.class.name: org.apache.pinot.plugin.stream.kafka20.KafkaConsumerFactory
    stream.kafka.decoder.class.name: org.apache.pinot.plugin.inputformat.json.JSONMessageDecoder
    topic.consumption.rate.limit: "{rate}"
    max.poll.records: "50"
    realtime.segment.commit.timeoutSeconds: "{given_up}"
  peerSegmentDownloadScheme: http
  flushThresholdRows: {rows}
  flushThresholdTime: 24h
"""


def write_spec(folder: Path, kafka: str) -> None:
    """Write the table's spec into the directory of specs."""
    text = _SPEC.format(
        table=TABLE,
        kafka=kafka,
        rate=MESSAGES_A_SECOND,
        given_up=GIVEN_UP_S,
        rows=ROWS_A_SEGMENT * PARTITIONS,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{TABLE}.yaml").write_text(text)


def create_topic(kafka: str) -> None:
    """Create the topic that the table consumes."""
    from kafka.admin import KafkaAdminClient, NewTopic

    admin = KafkaAdminClient(bootstrap_servers=kafka)
    try:
        admin.create_topics([NewTopic(TABLE, num_partitions=PARTITIONS, replication_factor=1)])
    finally:
        admin.close()


@dataclass
class Producer:
    """Fill the topic up to a target number of messages, in a separate thread.

    :ivar target: how many messages there should be in all partitions together.
    :ivar produced: messages that Kafka has acknowledged.
    :ivar failure: the error that stopped the producer.
    """

    kafka: str
    target: int = 0
    produced: int = 0
    failure: Exception | None = None

    def have_waiting(self, backlog: int, consumed: int) -> None:
        """Raise the target, so that at least `backlog` messages wait beyond the consumed ones."""
        self.target = max(self.target, consumed + backlog)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Produce while the block runs, and then until the target is reached."""
        over = Event()
        thread = Thread(target=self._run, args=[over], name="producer")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _run(self, over: Event) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=self.kafka, acks="all", linger_ms=20)
        try:
            while not over.is_set() or self.produced < self.target:
                until = min(self.target, self.produced + PRODUCED_A_SECOND // 10)
                sent = [
                    producer.send(
                        TABLE,
                        b'{"id": %d, "at": %d}' % (number, time.time() * 1000),
                        partition=number % PARTITIONS,
                    )
                    for number in range(self.produced, until)
                ]
                for future in sent:
                    future.get(60)
                self.produced = until
                time.sleep(0.1)
        except Exception as error:
            self.failure = error
        finally:
            producer.close()


# --- the drills -----------------------------------------------------------------------------------

BACKLOG: Final = 10_000
"""Waiting messages: more than Pinot consumes between two looks."""
LENGTHS: Final = Lengths(before=45, outage=45, downloads=10, longest=180)
PATIENCE_S: Final = 180.0
PAUSE_S: Final = 1.0
ROUNDS: Final = 20
VICTIM: Final = 1
"""Index of the server that loses its disk, from 0."""


@dataclass(frozen=True, slots=True)
class DrillSummary:
    """The result of the demo, for the last line.

    :ivar queryable: rows that queries find, at the broker that finds the fewest.
    :ivar ratio: messages per second in the outage, divided by those before it.
    :ivar missing: committed segments without a copy in the deep store, after the repair.
    """

    produced: int
    queryable: int
    ratio: float
    missing: int

    @property
    def well(self) -> bool:
        """Whether the demo shows what it promises."""
        return self.produced == self.queryable and self.ratio >= LENGTHS.ratio and self.missing == 0

    def __str__(self) -> str:
        return (
            f"produced {self.produced}, queryable {self.queryable}, ingest rate during outage / before: "
            f"{self.ratio:.2f}, missing deep-store copies after repair: {self.missing}"
        )


def tell(home: Path, console: Console) -> bool:
    """Run the demo from a clean start, and remove everything at the end.

    :param home: folder for the stack and the spec; removed before and after.
    :returns: whether no row was lost, ingestion kept its rate, and every segment is in the deep store.
    :raises PinotAssetsError: a step did not do what it promises.
    """
    with own_stack(home, console, realtime=True) as (stack, state):
        assert state.kafka_bootstrap is not None
        create_topic(state.kafka_bootstrap)
        console.print("[bold](a) a table with two replicas and a peer scheme[/]")
        write_spec(home / "tables", state.kafka_bootstrap)
        with HttpPinotClient(load_settings().pinot) as pinot:
            plan = plan_apply(load_tables(home / "tables").realtime[TABLE], pinot)
            gate(plan)  # as `pinot-assets tables apply` does it
            apply_plan(plan, pinot)
        producer = Producer(state.kafka_bootstrap)
        with open_work(TABLE) as work, producer.running():
            outcome = DrillStory(console, stack, state, work, producer).tell()
    console.print(str(outcome), highlight=False)
    return outcome.well


class DrillStory:
    """The drills on one table and one stack."""

    def __init__(
        self, console: Console, stack: Stack, state: StackState, work: TableOperation, producer: Producer
    ) -> None:
        self._console = console
        self._stack = stack
        self._state = state
        self._work = work
        self._producer = producer
        self._keeps_waiting = True

    def tell(self) -> DrillSummary:
        """Run all drills in order, and return the result."""
        self._producer.have_waiting(BACKLOG, 0)
        self._until(
            "each partition has committed a segment",
            lambda s: min(sample_of(s).commits.values(), default=0) > 0,
        )
        ratio = self._outage_drill()
        self._kill_drill()
        self._console.print("[bold](d) the producer stops; what waits is consumed, what is missing stored[/]")
        self._keeps_waiting = False
        self._until("every broker finds every row", self._is_consumed)
        with self._repair() as repair:
            for _ in repair.rounds(ROUNDS):
                pass
        # Only now, after the last commit: during commits some replica is always in transition.
        end = self._until(
            "every replica is as it should be",
            lambda s: all(r.ideal == r.external for segment in s.segments for r in segment.replicas),
        )
        answers = examine_state(end)
        for answer in answers:
            if not answer.passed:
                self._console.print(f"   [red]✗[/] {answer.name}: {answer.message}", highlight=False)
        self._say(f"health: {sum(answer.passed for answer in answers)} of {len(answers)} checks pass")
        return DrillSummary(
            self._producer.produced, min(end.queryable.values()), ratio, sample_of(end).only_servers
        )

    # --- the deep store goes -----------------------------------------------------------------------

    def _outage_drill(self) -> float:
        """Run the outage drill and return the ratio of rates; only the end of the demo judges it."""
        self._console.print("[bold](b) outage drill: the deep store goes while a backlog waits[/]")
        outage, address = StoreOutage(self._state), self._state.server_admin_urls[VICTIM]
        victim = next(one.name for one in self._look().servers.values() if one.admin_url == address)
        broker = self._work.pinot.brokers_of(self._work.table)[0]
        lost: set[str] = set()
        with self._repair() as repair, ThreadPoolExecutor(1, "restart") as others:

            def load_from_peers() -> None:
                lost.update(self._loaded_by(victim))
                kill(self._stack, self._state, SERVERS[VICTIM])
                lose_disk(self._state, SERVERS[VICTIM])
                self._say(f"{SERVERS[VICTIM]} was killed and has lost its disk; it starts, the store is away")
                others.submit(self._stack.up)

            findings = Drill(
                self._look,
                outage.begin,
                outage.end,
                lambda: self._work.pinot.answered_rows(broker, self._work.table),
                repair,
                load_from_peers,
                # Without its disk and the deep store, the server can only have them from its peers.
                lambda: len(lost & self._loaded_by(victim)),
                LENGTHS,
                self._say,
            ).run()
        for finding in findings:
            mark = {True: "[green]✓[/]", False: "[red]✗[/]", None: "·"}[finding.passed]
            self._console.print(f"   {mark} {finding.name}: {finding.text}", highlight=False)
        by_name = {finding.name: finding for finding in findings}
        ratio = by_name.pop("ingestion").value
        wrong = [one.text for one in by_name.values() if one.passed is False]
        if wrong or ratio is None:
            raise StoryBroken("the outage drill did not hold", why="; ".join(wrong) or "nothing was measured")
        return ratio

    def _loaded_by(self, server: str) -> set[str]:
        view = self._work.pinot.external_view(self._work.table)
        return {name for name, states in view.items() if states.get(server) == "ONLINE"}

    # --- a committer dies --------------------------------------------------------------------------

    def _kill_drill(self) -> None:
        self._console.print("[bold](c) kill drill: a server dies while it commits[/]")
        self._until("all replicas serve again", _all_serve)
        self._until(  # no server is segments behind the other
            "all replicas consume the same segments",
            lambda s: all(r.external == r.ideal for one in s.latest().values() for r in one.replicas),
        )
        with self._looking():
            server, segment = kill_committer(self._stack, self._work.pinot, self._work.table, PATIENCE_S)
        self._say(f"{server} was killed while it committed {segment}")
        self._say(f"health fails: {', '.join(_failing(self._look()))}")
        self._until(
            f"the other server has committed {segment}",
            lambda s: (segment, SegmentStatus.DONE) in [(one.name, one.status) for one in s.segments],
        )
        self._stack.up()
        self._until("it is back, all replicas serve", _all_serve)

    # --- looking -----------------------------------------------------------------------------------

    def _look(self) -> RealtimeState:
        """Return the table's state, and keep the backlog full."""
        state = self._work.read()
        if self._keeps_waiting:
            self._producer.have_waiting(BACKLOG, sample_of(state).consumed)
        return state

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Look at the table repeatedly while the block runs, so that the backlog never gets empty."""
        over = Event()

        def look() -> None:
            while not over.wait(PAUSE_S):
                with suppress(PinotAssetsError):  # a server may be dying just now
                    self._look()

        with ThreadPoolExecutor(1, "looking") as thread:
            thread.submit(look)
            try:
                yield
            finally:
                over.set()

    def _until(self, what: str, holds: Callable[[RealtimeState], bool]) -> RealtimeState:
        began = time.monotonic()
        while not holds(state := self._look()):
            if self._producer.failure is not None:
                raise StoryBroken("the producer stopped", why=repr(self._producer.failure))
            if time.monotonic() - began > PATIENCE_S:
                raise StoryBroken(
                    f"after {PATIENCE_S:.0f} s it still was not so that {what}",
                    why=f"health fails: {', '.join(_failing(state))}",
                )
            time.sleep(PAUSE_S)
        self._say(f"{what} ({time.monotonic() - began:.0f} s)")
        return state

    def _is_consumed(self, state: RealtimeState) -> bool:
        all_sent = self._producer.produced == self._producer.target
        return all_sent and set(state.queryable.values()) == {self._producer.produced}

    @contextmanager
    def _repair(self) -> Iterator[Repair]:
        """Yield the repair that `realtime repair --apply` uses, under the table's lease."""
        with self._work.hold("pinot-assets realtime demo") as lease:
            yield replace(self._work.repair(lease), read=self._look, tell=self._say)

    def _say(self, line: str) -> None:
        self._console.print(f"   {escape(line)}", style="dim", highlight=False)


def _all_serve(state: RealtimeState) -> bool:
    """Whether the health checks of servers, replicas and error segments pass."""
    return not {"servers", "replicas", "error_segments"} & set(_failing(state))


def _failing(state: RealtimeState) -> list[str]:
    return [answer.name for answer in examine_state(state) if not answer.passed]
