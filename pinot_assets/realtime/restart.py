"""Deleting a lost segment with all later ones of its partition, to read them again in order.

The last resort for dedup and partial upsert tables, of which Pinot reads nothing again by itself (spec
section 7): rows that are read in order give the same result. It deletes what is whole, too, so it is never
part of a repair; somebody asks for it by name. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

from pinot_assets.realtime.drain import may_pause
from pinot_assets.realtime.repair.facts import lost_from_stream, not_known
from pinot_assets.realtime.repair.means import deletes_from_sequence
from pinot_assets.realtime.state import Copy, RealtimeState, Segment

SUBJECT: Final = "restart"
"""Under which its memory is kept (`realtime.lease`)."""


@dataclass(frozen=True, slots=True)
class Restart:
    """What would be deleted, and whether it may.

    :ivar oldest: by partition, the first segment that goes.
    :ivar names: all that go, in order.
    :ivar refusals: why it must not be done.
    :ivar warnings: what is lost all the same.
    """

    oldest: tuple[Segment, ...]
    names: tuple[str, ...]
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RestartMemory:
    """What outlives an interruption.

    :ivar oldest: partition, and sequence of the first segment that goes.
    :ivar paused: whether this paused the table.
    :ivar deleted: everything is gone; from here on only consumption has to go on.
    """

    oldest: tuple[tuple[int, int], ...]
    paused: bool = False
    deleted: bool = False

    def to_text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> RestartMemory | None:
        """Inverse of `to_text`; None where nothing was begun.

        :raises ValueError: it is something else.
        """
        if not text:
            return None
        try:
            fields = json.loads(text)
            oldest = tuple((int(partition), int(sequence)) for partition, sequence in fields["oldest"])
            return cls(oldest, bool(fields["paused"]), bool(fields["deleted"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not what a restart remembers: {error!r}") from error


@dataclass(frozen=True, slots=True)
class _Gathered:
    refusals: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def restart_from(state: RealtimeState, named: Sequence[str]) -> Restart:
    """What goes when these segments and all later ones of their partitions go.

    :param named: one or more segments; of each partition the oldest counts.
    """
    said = _Gathered()
    unknown = not_known(state)
    if unknown is not None:
        said.refusals.append(f"the table could not be read as a whole: {unknown}")
    by_name = {segment.name: segment for segment in state.segments}
    missing = [name for name in named if name not in by_name or not by_name[name].in_ideal_state]
    if missing:
        said.refusals.append(f"the table has no segment {', '.join(missing)}")
    _may(state, said)
    oldest: dict[int, Segment] = {}
    for segment in (by_name[name] for name in named if name not in missing):
        first = oldest.get(segment.partition)
        if first is None or segment.sequence < first.sequence:
            oldest[segment.partition] = segment
    marks = tuple((partition, first.sequence) for partition, first in sorted(oldest.items()))
    going = going_of(state, marks)
    for partition, first in sorted(oldest.items()):
        _stream(state, first, [s for s in going if s.partition == partition], said)
    return Restart(
        tuple(first for _, first in sorted(oldest.items())),
        tuple(segment.name for segment in going),
        tuple(said.refusals),
        tuple(said.warnings),
    )


def going_of(state: RealtimeState, oldest: Sequence[tuple[int, int]]) -> tuple[Segment, ...]:
    """Segments of these partitions from those sequences on."""
    first = dict(oldest)
    return tuple(
        sorted(
            (s for s in state.segments if s.partition in first and s.sequence >= first[s.partition]),
            key=lambda s: (s.partition, s.sequence),
        )
    )


def goes_on(state: RealtimeState, partition: int) -> bool:
    """Whether the partition is consumed again."""
    newest = state.latest().get(partition)
    return newest is not None and any(replica.ideal == "CONSUMING" for replica in newest.replicas)


def _may(state: RealtimeState, said: _Gathered) -> None:
    if not deletes_from_sequence(state.cluster.version):
        said.refusals.append(f"Pinot {state.cluster.version} has no deleteSegmentsFromSequenceNum")
    if not state.settings.pauseless:
        said.refusals.append("the table is not pauseless, so nothing of it is lost in this way")
    if not may_pause(state) and not state.pause.whole:
        said.refusals.append(
            "the table may not be paused while pinot.server.consuming.segment.consistency.mode is "
            "RESTRICTED; set it to PROTECTED first"
        )


def _stream(state: RealtimeState, first: Segment, going: Sequence[Segment], said: _Gathered) -> None:
    """Rows that some server or the deep store has must be in the stream; what is lost already is told."""
    held = next((s for s in going if s.copy is Copy.DEEP_STORE or state.live_copies(s)), None)
    if held is not None:
        gone = lost_from_stream(state, held, held.start_offset)
        if gone is not None:
            said.refusals.append(f"{held.name} is whole and could not be read again: {gone}")
            return
    gone = lost_from_stream(state, first, first.start_offset)
    if gone is not None:
        said.warnings.append(f"{first.name}: {gone}")
