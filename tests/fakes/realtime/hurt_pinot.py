"""A Pinot with one hurt REALTIME table: does what it is told with a delay, or says 200 and does nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from fakes.realtime.hurt_tables import consuming

from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.helix_nodes import Node
from pinot_assets.realtime.model.state import LlcSegment, RealtimeState, Replica, SegmentStatus


@dataclass
class Clock:
    """A time that only goes on when somebody waits."""

    ms: int

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


@dataclass
class HurtPinot:
    """What a repair asks of `RealtimePinot`; `read` is a `Reader`.

    :ivar delay_s: how long after a call its effect can be read.
    :ivar deaf: calls (method names) that are answered with 200 and do nothing.
    :ivar failing: calls that raise, by method name.
    :ivar calls: what was called, in order.
    :ivar crc: of servers' own copies.
    """

    state: RealtimeState
    clock: Clock
    delay_s: float = 3.0
    deaf: set[str] = field(default_factory=set)
    failing: dict[str, Exception] = field(default_factory=dict)
    calls: list[tuple[str, ...]] = field(default_factory=list)
    unreadable: int = 0
    crc: str = "88"
    _due: list[tuple[int, Callable[[], None]]] = field(default_factory=list)

    def read(self) -> RealtimeState:
        if self.unreadable:
            self.unreadable -= 1
            raise PinotError("the controller does not answer")
        for due, effect in tuple(self._due):
            if due <= self.clock.now_ms():
                self._due.remove((due, effect))
                effect()
        self.state = replace(self.state, read_ms=self.clock.now_ms())
        return self.state

    def segment(self, name: str) -> LlcSegment:
        return next(s for s in self.state.segments if s.name == name)

    def change(self, name: str, **fields: object) -> None:
        """Write a segment's node, or its replicas."""
        changed = replace(self.segment(name), **fields)  # type: ignore[arg-type]
        self.state = replace(
            self.state, segments=tuple(changed if s.name == name else s for s in self.state.segments)
        )

    # --- what a repair asks ---

    def run_validation(self, table: str) -> None:
        self._call("run_validation", self._next_segments)

    def run_validation_with(self, table: str, properties: Mapping[str, str]) -> None:
        assert properties == {"runSegmentLevelValidation": "true"}
        self._call("run_validation_with", self._validate_segments)

    def resume(self, table: str) -> None:
        self._call("resume", self._next_segments)

    def upload_to_deep_store(self, table: str, segments: Collection[str]) -> None:
        self._call("upload_to_deep_store", lambda: self._store(segments), *segments)

    def force_upload_to_deep_store(self, table: str, segments: Collection[str]) -> None:
        self._call("force_upload_to_deep_store", lambda: self._store(segments), *segments)

    def reset_replica(self, table: str, segment: str, server: str) -> None:
        def loaded() -> None:
            at = tuple(_loaded(r) if r.server == server else r for r in self.segment(segment).replicas)
            self.change(segment, replicas=at)

        self._call("reset_replica", loaded, segment, server)

    def server_uploads(self, admin_url: str, table: str, segment: str, seconds: float) -> str:
        self._call("server_uploads", None, admin_url, segment)
        self.clock.sleep(seconds / 10)
        return f"s3://d/t/{segment}.tmp.1"

    def server_crc(self, admin_url: str, table: str, segment: str) -> str:
        return self.crc

    def server_uploads_committed(
        self, admin_url: str, table: str, segment: str, seconds: float
    ) -> Mapping[str, str]:
        self._call("server_uploads_committed", None, admin_url, segment)
        return {
            "segment.realtime.status": "DONE",
            "segment.realtime.endOffset": str(self.segment(segment).end_offset),
            "segment.download.url": f"s3://d/t/{segment}.tmp.1",
        }

    def reingest(self, admin_url: str, segment: str) -> str:
        self._call("reingest", lambda: self._store([segment]), admin_url, segment)
        return "job"

    def segment_node(self, table: str, segment: str) -> Node:
        one = self.segment(segment)
        fields = {
            "segment.realtime.status": str(one.status),
            "segment.realtime.endOffset": str(one.end_offset),
        }
        if one.crc is not None:
            fields["segment.crc"] = one.crc
        if one.url is not None:
            fields["segment.download.url"] = one.url
        return Node(segment, fields, {}, {}, version=one.modified_ms or 0)

    def write_segment(self, table: str, node: Node) -> None:
        if node.version != self.segment(node.id).modified_ms:
            raise PinotError("written since")
        self._call("write_segment", None, node.id)
        status = SegmentStatus(node.simple["segment.realtime.status"])
        crc = node.simple.get("segment.crc")
        self.change(node.id, status=status, url=node.simple["segment.download.url"], crc=crc)

    def delete_upload(self, name: str) -> None:
        def swept() -> None:
            left = tuple(upload for upload in self.state.tmp_uploads if upload.name != name)
            self.state = replace(self.state, tmp_uploads=left)

        self._call("delete_upload", swept, name)

    # --- effects --------------------------------------------------------------------------------------

    def _call(self, name: str, effect: Callable[[], None] | None, *args: str) -> None:
        self.calls.append((name, *args))
        if name in self.failing:
            raise self.failing[name]
        if effect is not None and name not in self.deaf:
            self._due.append((self.clock.now_ms() + int(self.delay_s * 1000), effect))

    def _store(self, segments: Collection[str]) -> None:
        for name in segments:
            at = tuple(_loaded(r) for r in self.segment(name).replicas)
            self.change(name, status=SegmentStatus.DONE, url=f"s3://d/t/{name}", replicas=at)

    def _validate_segments(self) -> None:
        self._store([s.name for s in self.state.segments if s.url is None or not s.url if s.end_offset])
        self.state = replace(self.state, committing_listed=frozenset())

    def _next_segments(self) -> None:
        for last in self.state.latest().values():
            if (
                not any(r.ideal == "CONSUMING" for r in last.replicas)
                or last.status is not SegmentStatus.IN_PROGRESS
            ):
                following = consuming(last.partition, last.sequence + 1)
                self.state = replace(self.state, segments=(*self.state.segments, following))


def _loaded(replica: Replica) -> Replica:
    return replace(replica, external=replica.ideal)
