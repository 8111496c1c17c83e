"""A REALTIME table of the local stack that reads a topic of two partitions."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

import httpx
from fakes.pinot.releases import Dialect, dialect_of
from fakes.realtime.kafka_topic import create_topic
from fakes.realtime.operator_client import OperatorClient

from demos.stack import StoreOutage
from pinot_assets.core.connections import PinotConnection
from pinot_assets.core.json_object import JsonObject
from pinot_assets.realtime.lease import hold_table
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.read.reading import open_deep_store, read_state
from pinot_assets.realtime.repair.apply import Repair, StepOutcome
from pinot_assets.settings.environment import Settings
from pinot_assets.settings.local_stack import StackState


@dataclass
class Clicks:
    """The table.

    :ivar sent: messages so far.
    """

    stack: StackState
    name: str
    pinot: OperatorClient
    sent: int = field(default=0)

    @property
    def table(self) -> str:
        return f"{self.name}_REALTIME"

    @property
    def dialect(self) -> Dialect:
        """Of its Pinot."""
        return dialect_of(self.stack.pinot_version.partition("-")[0])

    def send(self, count: int) -> None:
        """Produce messages, evenly over the partitions."""
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=self.stack.kafka_bootstrap)
        try:
            for number in range(self.sent, self.sent + count):
                message = b'{"id": %d, "ts": %d}' % (number, time.time() * 1000)
                producer.send(self.name, message, partition=number % 2)
            producer.flush()
        finally:
            producer.close()
        self.sent += count

    @contextmanager
    def store_away(self) -> Iterator[None]:
        """The deep store can be neither written nor read."""
        outage = StoreOutage(self.stack)
        outage.begin()
        try:
            yield
        finally:
            outage.end()

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Two hundred messages a second, until the end."""
        over = Event()

        def flow() -> None:
            while not over.wait(0.5):
                self.send(100)

        thread = Thread(target=flow, name="producer")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def look(self, later_s: float = 0) -> RealtimeState:
        """Its state, as it would look some seconds later if nothing changed until then."""
        store = open_deep_store(self.pinot)
        return read_state(self.pinot, self.name, deep_store=store, clock=lambda: time.time() + later_s)

    def repair(self, haste: int = 1) -> list[StepOutcome]:
        """Mend what can be mended now, until nothing of that is left.

        :param haste: so many times as fast is the clock that ends the wait for what does not come.
        """
        start = time.time()
        settings = Settings(self.pinot.connection, self.stack.zookeeper, self.stack.cluster)
        with hold_table(settings, self.table, "a test") as lease:
            repair = Repair(
                self.pinot,
                self.look,
                lease,
                clock_ms=lambda: int((start + (time.time() - start) * haste) * 1000),
            )
            return [outcome for _, outcomes in repair.rounds(20) for outcome in outcomes]

    def until(self, holds: Callable[[RealtimeState], bool], seconds: float = 60) -> RealtimeState:
        """Look again and again until that holds."""
        end = time.monotonic() + seconds
        while not holds(state := self.look()):
            assert time.monotonic() < end, f"it did not come to that; the last look: {state}"
            time.sleep(0.5)
        return state


@contextmanager
def clicks_table(stack: StackState) -> Iterator[Clicks]:
    """A new one, with its topic; dropped in the end."""
    name = f"clicks{uuid.uuid4().hex[:8]}"
    create_topic(str(stack.kafka_bootstrap), name, partitions=2)
    with httpx.Client(base_url=stack.controller_url, timeout=30, trust_env=False) as controller:
        controller.post("/schemas", json=schema(name)).raise_for_status()
        made = controller.post("/tables", json=table_config(name, stack.kafka_bootstrap))
        assert made.status_code == 200, made.text
        with OperatorClient(PinotConnection(stack.controller_url)) as pinot:
            yield Clicks(stack, name, pinot)
        controller.delete(f"/tables/{name}", params={"type": "realtime"}).raise_for_status()


def schema(name: str) -> JsonObject:
    """Of the table: a number and a time."""
    time_column = {
        "name": "ts",
        "dataType": "LONG",
        "format": "1:MILLISECONDS:EPOCH",
        "granularity": "1:MILLISECONDS",
    }
    number = {"name": "id", "dataType": "LONG"}
    return {"schemaName": name, "dimensionFieldSpecs": [number], "dateTimeFieldSpecs": [time_column]}


def table_config(name: str, kafka: str | None) -> JsonObject:
    """Of a table with two replicas and a peer scheme; 500 rows make a segment.

    A committer that dies is given up after 17 seconds: Pinot's default is 127.
    """
    stream = {
        "streamType": "kafka",
        "stream.kafka.topic.name": name,
        "stream.kafka.broker.list": kafka,
        "stream.kafka.consumer.type": "lowlevel",
        "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
        "stream.kafka.consumer.factory.class.name": (
            "org.apache.pinot.plugin.stream.kafka20.KafkaConsumerFactory"
        ),
        "stream.kafka.decoder.class.name": "org.apache.pinot.plugin.inputformat.json.JSONMessageDecoder",
        "realtime.segment.flush.threshold.rows": "1000",
        "realtime.segment.flush.threshold.time": "24h",
        "realtime.segment.commit.timeoutSeconds": "10",
    }
    return {
        "tableName": name,
        "tableType": "REALTIME",
        "segmentsConfig": {
            "schemaName": name,
            "timeColumnName": "ts",
            "replication": "2",
            "replicasPerPartition": "2",
            "peerSegmentDownloadScheme": "http",
        },
        "tenants": {},
        "tableIndexConfig": {"loadMode": "MMAP"},
        "ingestionConfig": {"streamIngestionConfig": {"streamConfigMaps": [stream]}},
        "metadata": {},
    }
