"""A Pinot whose REALTIME table consumes, pauses and commits, blocking or pauseless as its config says."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fakes.changed import changed
from fakes.realtime.hurt_pinot import Clock
from fakes.realtime.hurt_tables import consuming, replicas, table

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotError, SwitchStateUnknown
from pinot_assets.realtime.model.state import (
    NOT_PAUSED,
    LlcSegment,
    Pause,
    PauseReason,
    RealtimeState,
    SegmentStatus,
)

LOADED = replicas(a="ONLINE", b="ONLINE")


@dataclass
class CommittingPinot:
    """What `pauseless` and a repair (uploads only) ask of `RealtimePinot`; `read` is a `Reader`.

    :ivar store_up: whether the deep store takes uploads.
    :ivar upload_s: how long a pauseless commit goes on.
    :ivar loses: the next answers to these calls are lost, though they are done.
    :ivar deaf_force: so many forced commits reach nobody.
    """

    clock: Clock
    config: JsonObject
    partitions: int = 2
    state: RealtimeState = field(default_factory=table)
    store_up: bool = True
    upload_s: float = 2.0
    forced_commits: bool = True
    loses: list[str] = field(default_factory=list)
    deaf_force: int = 0
    calls: list[str] = field(default_factory=list)
    pauseless_at_start: dict[str, bool] = field(default_factory=dict)
    mixed: list[str] = field(default_factory=list)
    _due: list[tuple[int, Callable[[], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for partition in range(self.partitions):
            self._start(partition, 0)

    @property
    def pauseless(self) -> bool:
        return bool(self.config["ingestionConfig"]["streamIngestionConfig"]["pauselessConsumptionEnabled"])

    def read(self) -> RealtimeState:
        for due, effect in sorted(self._due, key=lambda one: one[0]):
            if due <= self.clock.now_ms():
                self._due.remove((due, effect))
                effect()
        settings = replace(self.state.settings, pauseless=self.pauseless)
        self.state = replace(self.state, read_ms=self.clock.now_ms(), settings=settings)
        return self.state

    # --- what pauseless asks ---

    def table_config(self, name: str) -> JsonObject:
        return copy.deepcopy(self.config)

    def update_realtime_config(self, config: JsonMapping) -> None:
        self.config = dict(config)
        self._called("flip")

    def pause(self, name: str, comment: str = "") -> None:
        if not self.forced_commits:
            raise PinotError("Force commit disabled")
        self.state = replace(self.state, pause=Pause(PauseReason.ADMINISTRATIVE, comment))
        self.commit_all()
        self._called("pause")

    def resume(self, name: str) -> None:
        self.state = replace(self.state, pause=NOT_PAUSED)
        for partition, newest in self.state.latest().items():
            if newest.status is not SegmentStatus.IN_PROGRESS:
                self._start(partition, newest.sequence + 1)
        self._called("resume")

    def force_commit(self, name: str) -> str | None:
        if not self.forced_commits:
            raise PinotError("Force commit disabled")
        if self.deaf_force:
            self.deaf_force -= 1
        else:
            self.commit_all()
        self._called("force_commit")
        return "job"

    # --- what a repair asks ---

    def upload_to_deep_store(self, name: str, segments: list[str]) -> None:
        if self.store_up:
            for one in segments:
                self._end(one)

    force_upload_to_deep_store = upload_to_deep_store

    # --- commits -------------------------------------------------------------------------------------

    def commit_all(self) -> None:
        """Every consuming segment reaches its end now."""
        for newest in self.state.latest().values():
            if newest.status is SegmentStatus.IN_PROGRESS:
                self._commit(newest)

    def _commit(self, one: LlcSegment) -> None:
        if self.pauseless_at_start[one.name] is not self.pauseless:
            self.mixed.append(one.name)
        end = str(int(one.start_offset or 0) + 100)
        if self.pauseless:
            self._change(one.name, status=SegmentStatus.COMMITTING, end_offset=end, replicas=LOADED)
            self._due.append((self.clock.now_ms() + int(self.upload_s * 1000), lambda: self._end(one.name)))
        else:
            url = f"s3://d/t/{one.name}" if self.store_up else ""
            self._change(one.name, status=SegmentStatus.DONE, end_offset=end, url=url, replicas=LOADED)
        if not self.state.pause.whole:
            self._start(one.partition, one.sequence + 1)

    def _end(self, name: str) -> None:
        self._change(name, status=SegmentStatus.DONE, url=f"s3://d/t/{name}" if self.store_up else "")

    def _start(self, partition: int, sequence: int) -> None:
        made = consuming(partition, sequence)
        self.pauseless_at_start[made.name] = self.pauseless
        now = self.clock.now_ms()
        made = replace(made, created_ms=now, made_ms=now, modified_ms=now)
        self.state = replace(self.state, segments=(*self.state.segments, made))

    def _change(self, name: str, **fields: object) -> None:
        fields["modified_ms"] = self.clock.now_ms()
        segments = (changed(one, fields) if one.name == name else one for one in self.state.segments)
        self.state = replace(self.state, segments=tuple(segments))

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if name in self.loses:
            self.loses.remove(name)
            raise SwitchStateUnknown(f"{name} was sent and no answer came")
