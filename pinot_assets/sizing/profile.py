"""What a commit costs: sizes and times, either measured or computed from the text of the messages.

Measured, and where:

- `MEASURED`: one segment of 1,250,000 rows and 13 dictionary columns (`benchmarks/samples.py`, `events`), as
  `pinot_assets.segment` writes it, which is byte for byte what Pinot 1.5.1 writes; CPU of Pinot 1.5.1's own
  builder with its tar.gz from docs/benchmarks.md (`bench-build`, warm).
- `ZOOKEEPER_MS`: on a 1.5.1 controller the next segment was IN_PROGRESS 100 to 250 ms after the committing
  one was written: three writes.

Computed: every message of the protocol as it is sent, from its path, its parameters and the usual headers;
the ideal state and the external view from their JSON in ZooKeeper.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class MeasuredCommit:
    """Size and build time of a segment that was built and measured.

    :ivar segment_bytes: its directory, which Pinot compares with `flush.threshold.segment.size`.
    :ivar tar_bytes: its tar.gz, which is uploaded.
    :ivar metadata_bytes: `metadata.properties` and `creation.meta`, which commitEnd carries.
    :ivar build_s: seconds to build and compress it, on one core.
    """

    rows: int
    segment_bytes: int
    tar_bytes: int
    metadata_bytes: int
    build_s: float

    def scaled(self, bytes_per_row: float) -> MeasuredCommit:
        """Return the build for another size of a row; sizes and time grow in proportion."""
        factor = bytes_per_row * self.rows / self.segment_bytes
        return replace(
            self,
            segment_bytes=round(self.segment_bytes * factor),
            tar_bytes=round(self.tar_bytes * factor),
            build_s=self.build_s * factor,
        )

    def built_at(self, rows_per_s: float) -> MeasuredCommit:
        """Return the same segment, built at another rate."""
        return replace(self, build_s=self.rows / rows_per_s)


MEASURED: Final = MeasuredCommit(
    rows=1_250_000, segment_bytes=100_643_307, tar_bytes=56_264_674, metadata_bytes=7_477, build_s=36.0
)
ZOOKEEPER_MS: Final = 80

CONSUMED: Final = "segmentConsumed"
COMMIT_START: Final = "segmentCommitStart"
COMMIT_END: Final = "segmentCommitEndWithMetadata"
"""Messages of the protocol (docs/design/realtime.md#s1)."""

_SEGMENT: Final = "orders__17__1234__20260101T0000Z"
_SERVER: Final = "Server_pinot-server-17.pinot.svc.cluster.local_8098"
_CONTROLLER: Final = "pinot-controller-1.pinot.svc.cluster.local:9000"
_ANSWER: Final = json.dumps(
    {
        "status": "COMMIT",
        "streamPartitionMsgOffset": "1234567890",
        "buildTimeSec": 126,
        "isSplitCommitType": True,
        "controllerVipUrl": f"http://{_CONTROLLER}",
    }
)
_ANSWER_HEAD: Final = (
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nAccess-Control-Allow-Origin: *\r\n"
    "Content-Length: 172\r\n\r\n"
)
_PACKETS: Final = 6 * 66
"""TCP and IP headers of a short exchange on an open connection."""


_NODE_FIELDS: Final = (
    *("segment.crc", "segment.creation.time", "segment.download.url", "segment.end.time"),
    *("segment.flush.threshold.size", "segment.index.version", "segment.realtime.endOffset"),
    *("segment.realtime.numReplicas", "segment.realtime.startOffset", "segment.realtime.status"),
    *("segment.size.in.bytes", "segment.start.time", "segment.time.unit", "segment.total.docs"),
)


def message_bytes(message: str) -> int:
    """Return the bytes of one of these messages and its answer, without a body."""
    values = {
        "instance": _SERVER,
        "name": _SEGMENT,
        "streamPartitionMsgOffset": "1234567890",
        "reason": "rowLimit",
        "rowCount": "1250000",
        "memoryUsedBytes": "123456789",
    }
    if message in (COMMIT_START, COMMIT_END):
        values |= {"buildTimeMillis": "36000", "segmentSizeBytes": "100643307", "waitTimeMillis": "0"}
    if message == COMMIT_END:
        values |= {"location": f"s3://pinot/segments/orders/{_SEGMENT}.tmp.0b7c1f6e-9f0e-4c37-8f3a-0d5a"}
    query = "&".join(f"{key}={value}" for key, value in values.items())
    head = (
        f"GET /{message}?{query} HTTP/1.1\r\nHost: {_CONTROLLER}\r\nConnection: Keep-Alive\r\n"
        "User-Agent: Apache-HttpClient/5.3 (Java/17)\r\nAccept-Encoding: gzip, x-gzip, deflate\r\n\r\n"
    )
    return len(head) + len(_ANSWER_HEAD) + len(_ANSWER) + _PACKETS


def placement_bytes(segments: int, replication: int) -> int:
    """Return the bytes of an ideal state or external view of so many segments, as JSON in ZooKeeper."""
    states = {_SERVER[:-1] + str(nth): "CONSUMING" for nth in range(replication)}
    return 600 + segments * len(json.dumps({_SEGMENT: states}, indent=2))


def node_bytes() -> int:
    """Return the bytes of one segment's node."""
    return _record_bytes(dict.fromkeys(_NODE_FIELDS, "1234567890123"))


def _record_bytes(simple: dict[str, str]) -> int:
    return len(json.dumps({"id": _SEGMENT, "simpleFields": simple, "mapFields": {}}, indent=2))


_MESSAGE_FIELDS: Final = (
    *("CREATE_TIMESTAMP", "ClusterEventName", "EXECUTE_START_TIMESTAMP", "FROM_STATE", "MSG_ID"),
    *("MSG_STATE", "MSG_TYPE", "PARTITION_NAME", "READ_TIMESTAMP", "RESOURCE_NAME", "SRC_NAME"),
    *("SRC_SESSION_ID", "STATE_MODEL_DEF", "STATE_MODEL_FACTORY_NAME", "TGT_NAME", "TGT_SESSION_ID"),
    *("TO_STATE",),
)
_CURRENT_FIELDS: Final = ("CURRENT_STATE", "END_TIME", "INFO", "PREVIOUS_STATE", "START_TIME", "TRIGGERED_BY")


def transition_bytes(segments_of_server: int) -> int:
    """Return the bytes of one state transition of one replica: Helix writes the message, reads it back, and
    at the end reads the server's current state of the whole table.
    """
    message = _record_bytes(dict.fromkeys(_MESSAGE_FIELDS, _SERVER[:36]))
    one = len(json.dumps({_SEGMENT: dict.fromkeys(_CURRENT_FIELDS, "1234567890123")}, indent=2))
    return 2 * message + 600 + segments_of_server * one


LISTED_BYTES: Final = 430
"""One file in the answer to S3's ListObjectsV2: key, time, ETag, size, class and their tags, in bytes."""

CHECKED_S: Final = 300
VALIDATED_S: Final = 3_600
RETAINED_S: Final = 21_600
"""Default periods, in seconds: SegmentStatusChecker, RealtimeSegmentValidationManager, RetentionManager."""


def tasks_bytes_per_s(segments: int, replication: int) -> float:
    """Return what the periodic tasks read of one table per second, on any way: nodes, and both placements."""
    nodes, placements = segments * node_bytes(), 2 * placement_bytes(segments, replication)
    return (nodes + placements) * (1 / CHECKED_S + 1 / VALIDATED_S) + nodes / RETAINED_S
