"""The table of the realtime demo, as a spec, and the messages that feed it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final

TABLE: Final = "clicks"
PARTITIONS: Final = 2
ROWS_A_SEGMENT: Final = 5_000
MESSAGES_A_SECOND: Final = 1_000
"""All that the servers take, of any backlog: so commits come at a known pace, every ten seconds."""
PRODUCED_A_SECOND: Final = 1_500
"""At most: a server that starts takes all that it finds, its rate limit comes later."""
GIVEN_UP_S: Final = 10
"""When a committer that died is given up, beside the 6.6 s of an election. Pinot's default is 120."""

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
    """The topic that the table reads."""
    from kafka.admin import KafkaAdminClient, NewTopic

    admin = KafkaAdminClient(bootstrap_servers=kafka)
    try:
        admin.create_topics([NewTopic(TABLE, num_partitions=PARTITIONS, replication_factor=1)])
    finally:
        admin.close()


@dataclass
class Producer:
    """Fills the topic, in a thread of its own, up to what is wanted and no further.

    :ivar wanted: messages that there shall be, all partitions.
    :ivar produced: messages that Kafka has acknowledged.
    :ivar failure: why it went no further.
    """

    kafka: str
    wanted: int = 0
    produced: int = 0
    failure: Exception | None = None

    def have_waiting(self, backlog: int, consumed: int) -> None:
        """See to it that so many messages wait beyond those that were consumed."""
        self.wanted = max(self.wanted, consumed + backlog)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Produce until the end; what is wanted by then is produced still."""
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
            while not over.is_set() or self.produced < self.wanted:
                until = min(self.wanted, self.produced + PRODUCED_A_SECOND // 10)
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
