"""A pauseless REALTIME table of `servers`, two replicas, whose rows can be counted and added up."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

import httpx
from fakes.pauseless.servers import PauselessCluster
from fakes.realtime.kafka_table import schema, table_config
from fakes.realtime.kafka_topic import create_topic
from kazoo.client import KazooClient

from pinot_assets.core.connections import PinotConnection
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.untrusted import typed
from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.broker import Broker
from pinot_assets.pinot.client.client_pool import ClientPool
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.realtime.model.state import LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.operations.pauseless import Action, Goal, PauselessChange
from pinot_assets.realtime.preflight.judge import before_drain
from pinot_assets.realtime.read.reading import read_state
from pinot_assets.realtime.repair.apply import Repair, StepOutcome
from pinot_assets.realtime.repair.model import RepairPlan, StepKind
from pinot_assets.realtime.repair.plan import plan
from pinot_assets.session.values.state import Owner

_NUMBERS = itertools.count(1)
LATER_MS = 301_000
"""Till when Pinot takes a commit for one that may still be under way."""
_LOOKS = 20


@dataclass
class Rows:
    """The table. Message n has that number as its `id`; the partitions get them in turn.

    :ivar sent: messages so far.
    :ivar later_s: how far the clock of those who look is ahead, for what Pinot lets nobody hurry.
    """

    cluster: PauselessCluster
    name: str
    partitions: int
    sent: int = 0
    later_s: float = field(default=0.0)

    @property
    def table(self) -> str:
        return f"{self.name}_REALTIME"

    # --- rows ------------------------------------------------------------------------------------------

    def send(self, count: int) -> None:
        """Produce messages."""
        from kafka import KafkaProducer

        producer = KafkaProducer(
            bootstrap_servers=self.cluster.kafka_bootstrap, linger_ms=20, batch_size=200_000
        )
        try:
            for number in range(self.sent, self.sent + count):
                message = b'{"id": %d, "ts": %d}' % (number, time.time() * 1000)
                producer.send(self.name, message, partition=number % self.partitions)
            producer.flush()
        finally:
            producer.close()
        self.sent += count

    @property
    def produced(self) -> tuple[int, int]:
        """Messages, and the sum of their ids."""
        return self.sent, self.sent * (self.sent - 1) // 2

    def queryable(self, url: str) -> tuple[int, int]:
        """The same of the rows that a query finds there: no row is lost, none is there twice."""
        with closing(ClientPool(PinotConnection(self.cluster.controller_url))) as clients:
            try:
                ((count, total),) = (
                    Broker(url, clients).query(f'SELECT COUNT(*), SUM(id) FROM "{self.table}"').rows
                )
            except PinotError:  # it has only just begun
                return 0, 0
        return typed(count, int), int(typed(total, float))

    def until_all_found(self, seconds: float = 180) -> None:
        """Wait until every row is found once, on every server that lives."""
        self._until(
            lambda: all(self.queryable(url) == self.produced for url in self.cluster.query_urls),
            seconds,
            lambda: f"of {self.produced}: {[self.queryable(url) for url in self.cluster.query_urls]}",
        )

    # --- state -----------------------------------------------------------------------------------------

    def look(self) -> RealtimeState:
        """Its state."""
        with self.cluster.pinot() as pinot:
            return read_state(pinot, self.name, clock=lambda: time.time() + self.later_s)

    def until(self, holds: Callable[[RealtimeState], bool], seconds: float = 180) -> RealtimeState:
        """Look again and again until that holds."""
        looks: list[RealtimeState] = []

        def holds_now() -> bool:
            looks[:] = [self.look()]
            return holds(looks[0])

        self._until(holds_now, seconds, lambda: f"{state_in_words(looks[0])}\n{self.unwell(looks[0])}")
        return looks[0]

    def until_committing(self, count: int) -> RealtimeState:
        """Wait until so many segments are COMMITTING, each at the shut gate of its committer."""
        return self.until(
            lambda state: (
                len(committing(state)) == count
                and len({s for server in self.cluster.live for s in server.committing}) == count
            )
        )

    @staticmethod
    def _until(holds: Callable[[], bool], seconds: float, what: Callable[[], str]) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, f"it did not come to that; the last look: {what()}"
            time.sleep(0.5)

    def until_well(self) -> None:
        """Wait until health finds nothing wrong."""
        self.until(lambda state: not self.unwell(state))

    def until_mended(self, seconds: float = 300) -> None:
        """Wait until every row is found and health finds nothing wrong.

        Now and then Helix forgets a replica that was reset: wanted ONLINE, OFFLINE, and no message. Five
        minutes later a plan advises to start that server anew; here somebody does so a little sooner.
        """
        looks: Counter[str] = Counter()

        def mended() -> bool:
            state = self.look()
            if not self.unwell(state) and all(
                self.queryable(u) == self.produced for u in self.cluster.query_urls
            ):
                return True
            later = replace(state, read_ms=state.read_ms + LATER_MS)
            advised = {step.server for step in plan(later).advice if step.kind is StepKind.RESTART}
            for server in self.cluster.live:
                looks[server.name] = looks[server.name] + 1 if server.name in advised else 0
                if looks[server.name] > _LOOKS:
                    server.kill()
                    self.until(_has_lost(server.name))
                    self.cluster.start(server)
                    looks[server.name] = 0
            return False

        self._until(mended, seconds, lambda: f"{state_in_words(self.look())}\n{self.unwell(self.look())}")

    @staticmethod
    def unwell(state: RealtimeState) -> list[str]:
        """What health finds wrong in what could be read."""
        return [f"{one.name}: {one.message}" for one in examine_state(state) if one.known and not one.passed]

    # --- repair ----------------------------------------------------------------------------------------

    def plan(self) -> RepairPlan:
        """What a repair would do now."""
        return plan(self.look())

    def repair(self, rounds: int = 10) -> list[StepOutcome]:
        """Plan and do until nothing is left to be done now."""
        with self._working() as (_, repair):
            return [outcome for _, outcomes in repair.rounds(rounds) for outcome in outcomes]

    def turn(self, goal: Goal, heard: Callable[[str], None] = lambda _: None) -> Action:
        """Turn pauseless on or off; returns the last action.

        :param heard: is told what is done.
        """
        with self._working() as (pinot, repair):
            draining = PauselessChange(
                pinot, self.look, repair.lease, heard, 400, repair=repair, preflight=before_drain(pinot)
            )
            return draining.run(goal)

    @contextmanager
    def _working(self) -> Iterator[tuple[RealtimePinot, Repair]]:
        client = KazooClient(self.cluster.zookeeper, timeout=30)
        client.start(timeout=15)
        try:
            store = OperationsStore(client, self.cluster.cluster, self.table)
            with store.take(Owner("test", "here", 1, 0)) as lease, self.cluster.pinot() as pinot:
                yield (
                    pinot,
                    Repair(
                        pinot, self.look, lease, clock_ms=lambda: int((time.time() + self.later_s) * 1000)
                    ),
                )
        finally:
            client.stop()
            client.close()


def committing(state: RealtimeState) -> list[LlcSegment]:
    """Those that are being committed."""
    return [segment for segment in state.segments if segment.status is SegmentStatus.COMMITTING]


def state_in_words(state: RealtimeState) -> str:
    """A state, short enough for a test's message."""
    return (
        "\n".join(
            f"{segment.name} {segment.status} url={segment.url} "
            f"{[(r.server, r.ideal, r.external, r.pending) for r in segment.replicas]}"
            for segment in state.segments
            if segment.status is not SegmentStatus.DONE
            or any(r.external != r.ideal for r in segment.replicas)
        )
        + f"\n{state.unread}"
    )


@contextmanager
def rows_table(
    cluster: PauselessCluster, *, pauseless: bool = True, partitions: int = 2, **stream: str
) -> Iterator[Rows]:
    """A new table, dropped in the end.

    :param stream: more settings of its stream.
    """
    rows = Rows(cluster, f"rows{next(_NUMBERS)}", partitions)
    create_topic(cluster.kafka_bootstrap, rows.name, partitions)
    config = _config(cluster, rows.name, pauseless, stream)
    with httpx.Client(base_url=cluster.controller_url, timeout=60, trust_env=False) as controller:
        controller.post("/schemas", json=schema(rows.name)).raise_for_status()
        made = controller.post("/tables", json=config)
        assert made.status_code == 200, made.text
        rows.until(lambda state: sum(bool(s.in_state("CONSUMING")) for s in state.segments) == partitions)
        yield rows
        controller.delete(f"/tables/{rows.name}", params={"type": "realtime"}).raise_for_status()


def _has_lost(server: str) -> Callable[[RealtimeState], bool]:
    return lambda state: not state.servers[server].alive


def _config(cluster: PauselessCluster, name: str, pauseless: bool, stream: dict[str, str]) -> JsonObject:
    config = table_config(name, cluster.kafka_bootstrap)
    ingestion = config["ingestionConfig"]["streamIngestionConfig"]
    ingestion["pauselessConsumptionEnabled"] = pauseless
    ingestion["streamConfigMaps"][0] |= {**cluster.stream, **stream}
    return config
