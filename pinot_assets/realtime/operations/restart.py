"""Deletes a lost segment and all later ones of its partition, so that Pinot reads them again in order.

The last resort for dedup and partial upsert tables, of which Pinot itself reads no segment again
(docs/design/realtime.md#reingest): rows that are read in order give the same result. It also deletes segments
that are intact. So it is never part of a repair; a person must name the segments. `plan_restart` decides from
a state, `Restart` does it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pinot_assets.core.stored_format import Open, plain, structured
from pinot_assets.core.text import plural
from pinot_assets.core.untrusted import fields_of_json, reading
from pinot_assets.core.waiting import Deadline, poll_until
from pinot_assets.errors import PinotError, SessionError, SwitchStateUnknown
from pinot_assets.realtime.model.state import Copy, LlcSegment, RealtimeState
from pinot_assets.realtime.operations.pauseless import may_pause
from pinot_assets.realtime.operations.table_operation import TableChange
from pinot_assets.realtime.repair.facts import deletes_from_sequence, lost_from_stream, not_known

SUBJECT: Final = "restart"
"""The subject of the restart's memory in ZooKeeper (`realtime.lease`)."""
_WHAT: Final = "what a restart remembers"


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """What a restart would delete, and whether it may.

    :ivar going: all segments to delete, by partition and sequence.
    :ivar refusals: why it must not be done.
    :ivar warnings: rows that are lost in any case.
    """

    going: tuple[LlcSegment, ...]
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark(Open):
    """The segments of one partition that a restart deletes.

    The new segments in their place have the same sequences, so the time of creation tells them apart.

    :ivar first: sequence of the first segment to delete.
    :ivar newest_ms: time of creation of the newest one.
    """

    partition: int
    first: int
    newest_ms: int


@dataclass(frozen=True, slots=True)
class RestartMemory(Open):
    """What a later run needs to know after an interruption.

    :ivar marks: what Pinot was asked to delete; empty until it was asked.
    :ivar paused: whether the restart paused the table.
    :ivar deleted: whether all of it is deleted; then only consumption has to start again.
    """

    marks: tuple[Mark, ...] = ()
    paused: bool = False
    deleted: bool = False

    def to_text(self) -> str:
        """Return it as JSON."""
        return json.dumps(plain(self))

    @classmethod
    def from_text(cls, text: str) -> RestartMemory:
        """Return the memory that `to_text` wrote; an empty one for an empty text.

        :raises ValueError: the text is something else.
        """
        if not text:
            return cls()
        try:
            fields = fields_of_json(text)
            if lacking := {"marks", "paused", "deleted"} - fields.keys():
                raise ValueError(f"it lacks {min(lacking)}")
            return structured(cls, fields, _WHAT)
        except ValueError as error:
            raise ValueError(f"not {_WHAT}: {error}") from error


def plan_restart(state: RealtimeState, named: Sequence[str]) -> RestartPlan:
    """Return the plan to delete these segments and all later ones of their partitions.

    :param named: one or more segments; in each partition the oldest of them counts.
    """
    missing = [n for n in named if n not in state.by_name or not state.by_name[n].in_ideal_state]
    refusals, warnings = list(_refusals(state, missing)), []
    there = [state.by_name[name] for name in named if name not in missing]
    oldest = {s.partition: s for s in sorted(there, key=lambda s: s.sequence, reverse=True)}
    going = tuple(
        s for s in state.segments if s.partition in oldest and s.sequence >= oldest[s.partition].sequence
    )
    for partition, first in sorted(oldest.items()):
        # The stream must still have the rows that a server or the deep store has; of lost rows it only warns.
        whole = [s for s in going if s.copy is Copy.DEEP_STORE or state.live_copies(s)]
        held = next((s for s in whole if s.partition == partition), None)
        if held is not None and (gone := lost_from_stream(state, held, held.start_offset)) is not None:
            refusals.append(f"{held.name} is intact and could not be consumed again: {gone}")
        elif (gone := lost_from_stream(state, first, first.start_offset)) is not None:
            warnings.append(f"{first.name}: {gone}")
    return RestartPlan(going, tuple(refusals), tuple(warnings))


def _refusals(state: RealtimeState, missing: Sequence[str]) -> Iterator[str]:
    if (unknown := not_known(state)) is not None:
        yield f"the table could not be read completely: {unknown}"
    if missing:
        yield f"the table has no segment {', '.join(missing)}"
    if not deletes_from_sequence(state.cluster.version):
        yield f"Pinot {state.cluster.version} has no deleteSegmentsFromSequenceNum"
    if not state.settings.pauseless:
        yield "the table is not pauseless, so nothing of it is lost in this way"
    if not may_pause(state) and not state.pause.whole:
        yield (
            "the table may not be paused while pinot.server.consuming.segment.consistency.mode is "
            "RESTRICTED; set it to PROTECTED first"
        )


def marks_of(going: Sequence[LlcSegment]) -> tuple[Mark, ...]:
    """Return, by partition, how to distinguish these segments from those that replace them."""
    marks: dict[int, Mark] = {}
    for one in going:
        mark = marks.get(one.partition, Mark(one.partition, one.sequence, one.created_ms))
        marks[one.partition] = Mark(
            one.partition, min(mark.first, one.sequence), max(mark.newest_ms, one.created_ms)
        )
    return tuple(mark for _, mark in sorted(marks.items()))


def left_of(state: RealtimeState, marks: Sequence[Mark]) -> tuple[LlcSegment, ...]:
    """Return the segments to delete that still exist; never one that was created later."""
    by_partition = {mark.partition: mark for mark in marks}
    return tuple(
        one
        for one in state.segments
        if (mark := by_partition.get(one.partition)) is not None
        and one.sequence >= mark.first
        and one.created_ms <= mark.newest_ms
    )


def goes_on(state: RealtimeState, partition: int) -> bool:
    """Return whether the partition is consumed again."""
    newest = state.latest().get(partition)
    return newest is not None and any(replica.ideal == "CONSUMING" for replica in newest.replicas)


POLL_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class Restart(TableChange):
    """Deletes lost segments with all later ones, and lets Pinot read them again.

    :ivar patience_s: how long it waits for each effect.
    """

    patience_s: float = 600.0

    def run(self, named: Sequence[str]) -> tuple[str, ...]:
        """Pause the table, delete, resume; return the segments that this run deleted.

        :param named: segments; ignored once Pinot was asked to delete, as an interrupted restart continues.
        :raises PinotError: it is refused, or an effect is not there in time. Run it again: it continues.
        :raises LeaseLost: another run took the lease of the table.
        """
        memory = recalled_restart(self.lease.recall(SUBJECT), self.lease.table)
        if not memory.marks:
            self._judge(named, memory)
            memory = self._pause(memory)
            memory = replace(memory, marks=self._judge(named, memory))
        deleted: tuple[str, ...] = ()
        if not memory.deleted:
            deleted = self._delete(memory)
            memory = replace(memory, deleted=True)
            self.lease.remember(SUBJECT, memory.to_text())
        self._go_on(memory)
        self.lease.remember(SUBJECT, "")
        return deleted

    def _judge(self, named: Sequence[str], memory: RestartMemory) -> tuple[Mark, ...]:
        """Return what is to be deleted, by the state of the table now."""
        planned = plan_restart(self._known(), named)
        if planned.refusals or not planned.going:
            raise PinotError(
                f"nothing of {self.lease.table} is deleted",
                why="; ".join(planned.refusals) or "nothing is named",
                hint="it is paused: run it again, or resume the table" if memory.paused else None,
            )
        return marks_of(planned.going)

    def _pause(self, memory: RestartMemory) -> RestartMemory:
        if not self._known().pause.whole:
            memory = replace(memory, paused=True)
            self.lease.remember(SUBJECT, memory.to_text())
            self._send(
                lambda: self.pinot.pause(self.lease.table, "the segments are deleted and consumed again")
            )
        self._until(lambda state: state.pause.whole, "the table is not paused")
        self._until(
            lambda state: not any(r.ideal == "CONSUMING" for s in state.segments for r in s.replicas),
            "segments are still being consumed",
        )
        return memory

    def _delete(self, memory: RestartMemory) -> tuple[str, ...]:
        """Delete the marked segments that are left, but only if Pinot's preview names exactly these."""
        left = left_of(self._known(), memory.marks)
        if names := {segment.name for segment in left}:
            firsts = {segment.partition: segment.name for segment in reversed(left)}
            answer = self.pinot.preview_delete_from(self.lease.table, tuple(firsts.values()))
            partitions = (answer.get("partitions") or {}).values()
            meant = {name for one in partitions for name in one.get("segmentsToDelete") or ()}
            if meant != names:
                raise PinotError(
                    f"nothing of {self.lease.table} is deleted",
                    why=f"Pinot would delete other segments: {', '.join(sorted(meant ^ names)[:5])}",
                    hint="look at the table, then try again; it is paused",
                )
            self.tell(f"deleting {plural(len(names), 'segment')}")
            self.lease.remember(SUBJECT, memory.to_text())
            self._send(lambda: self.pinot.delete_from(self.lease.table, tuple(firsts.values())))
        self._until(lambda state: not left_of(state, memory.marks), "segments are still there")
        return tuple(sorted(names))

    def _go_on(self, memory: RestartMemory) -> None:
        if not memory.paused:
            self.tell("the table was paused before; resume it when you are ready")
            return
        if self._known().pause.whole:
            self._send(lambda: self.pinot.resume(self.lease.table))
        for partition in (mark.partition for mark in memory.marks):
            self._until(partial(goes_on, partition=partition), f"partition {partition} is not consumed yet")

    def _send(self, call: Callable[[], None]) -> None:
        self.lease.assert_held()
        try:
            call()
        except SwitchStateUnknown as error:
            self.tell(f"{error.what}; looking whether it happened")

    def _until(self, holds: Callable[[RealtimeState], bool], otherwise: str) -> RealtimeState:
        """Wait for a state that was read as a whole and for which `holds` is true; return it."""

        def look() -> RealtimeState | str:
            try:
                state = self.read()
                if (missing := not_known(state)) is not None:
                    return f"the table could not be read completely: {missing}"
                return state if holds(state) else otherwise
            except PinotError as error:
                return f"the table could not be read: {error.what}"

        deadline = Deadline(self.clock, self.patience_s)
        state = poll_until(deadline, POLL_S, look, lambda looked: not isinstance(looked, str))
        if isinstance(state, str):
            raise PinotError(
                f"the restart of {self.lease.table} has not ended",
                why=f"{state} after {self.patience_s:.0f} s",
                hint="run it again: it continues from there",
            )
        return state

    def _known(self) -> RealtimeState:
        """Return the state of the table now, read as a whole."""
        return self._until(lambda _: True, "it was not read")


def recalled_restart(text: str, table: str) -> RestartMemory:
    """Return the memory of an interrupted restart of that table.

    :raises SessionError: the text cannot be read.
    """
    with reading(f"what the restart of {table} remembers", SessionError):
        return RestartMemory.from_text(text)
