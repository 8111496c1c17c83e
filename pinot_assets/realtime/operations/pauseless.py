"""Turning pauseless consumption on or off without a commit that begins in one protocol and ends in the other.

Pinot chooses the controller's half of a commit when its first message comes, the server's half when the
segment begins to be consumed. So a plain change of the config lets every running segment commit half and
half, and leaves what is COMMITTING to nobody. Here consumption is paused first, which commits everything in
the old way; what is unfinished is finished; then the config is changed, consumption goes on, and the first
commits are watched. Where pausing is refused (partial upsert while the consistency mode is RESTRICTED),
natural commits are watched instead, and what is left COMMITTING is finished afterwards.

`next_action` is pure: the next action follows from a state and what is remembered, so it may be
interrupted anywhere. Source: docs/design/realtime.md#s3, #s5, #s8, #point-8 and #s18. `PauselessChange`
does it on a real table.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from pinot_assets.core.check_result import some
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.stored_format import Open, plain, structured
from pinot_assets.core.text import plural, plural_are
from pinot_assets.core.untrusted import fields_of_json, reading
from pinot_assets.errors import (
    PinotError,
    PinotUnreachable,
    PreflightRefused,
    SessionError,
    SwitchStateUnknown,
)
from pinot_assets.realtime.model.state import LlcSegment, RealtimeState, SegmentStatus
from pinot_assets.realtime.operations.table_operation import TableChange
from pinot_assets.realtime.repair.apply import Repair
from pinot_assets.realtime.repair.facts import not_known, young

SUBJECT: Final = "drain"
"""Under which its memory is kept (`realtime.lease`)."""
_WHAT: Final = "what a drain remembers"

OUR_PAUSE: Final = "pauseless goes"
"""How the comment of a pause begins that is ours; every release that is pauseless keeps it."""

LONGEST_PAUSE_MS: Final = 900_000
"""How long a table may stand still before it is set going again as it was: 300 s until a commit that went
wrong may be repaired, the repair, and as much again."""

FORCE_AGAIN_MS: Final = 120_000
FORCINGS: Final = 3
"""A forced commit may miss a server that has not begun to consume. Each leaves a small segment behind."""


class Goal(StrEnum):
    """What pauseless consumption shall be."""

    ON = "on"
    OFF = "off"


class Do(StrEnum):
    """What comes next."""

    PREFLIGHT = "preflight"
    REPAIR = "repair"
    """Finish commits, upload what only servers have, set partitions going."""
    PAUSE = "pause"
    FLIP = "change the config"
    RESUME = "resume"
    FORCE_COMMIT = "force a commit"
    WAIT = "wait"
    BACK_OUT = "back out"
    """Resume without having changed anything."""
    GAVE_UP = "gave up"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class DrainMemory(Open):
    """What outlives an interruption.

    :ivar cleared: the preflight has passed.
    :ivar paused_ms: when this paused the table; None while it has not, or somebody else had.
    :ivar flipped_ms: when this changed the config.
    :ivar marks: by partition, the newest segment when the config was changed: later ones commit the new way.
    :ivar forced_ms: when this last forced the commits that are watched, `forcings` times so far.
    :ivar backs_out: for this reason it only sets the table going again.
    """

    goal: Goal
    cleared: bool = False
    paused_ms: int | None = None
    flipped_ms: int | None = None
    marks: tuple[tuple[int, int], ...] = ()
    forced_ms: int | None = None
    forcings: int = 0
    backs_out: str = ""

    def to_text(self) -> str:
        """As JSON."""
        return json.dumps(plain(self))

    @classmethod
    def from_text(cls, text: str, goal: Goal) -> DrainMemory:
        """What is remembered towards that goal; an unfinished way to the other one only leaves its pause.

        :raises ValueError: it is something else.
        """
        if not text:
            return cls(goal)
        try:
            memory = structured(cls, fields_of_json(text), _WHAT)
        except ValueError as error:
            raise ValueError(f"not {_WHAT}: {error}") from error
        return memory if memory.goal is goal else cls(goal, paused_ms=memory.paused_ms)


@dataclass(frozen=True, slots=True)
class Action:
    """What to do next, and why.

    :ivar remember: what to remember before it is done.
    """

    do: Do
    why: str
    remember: DrainMemory


def may_pause(state: RealtimeState) -> bool:
    """Whether Pinot lets the table be paused and commits be forced (`validateForceCommitAllowed`)."""
    inconsistent = state.settings.upsert == "PARTIAL" or state.settings.drops_out_of_order
    return not (inconsistent and state.cluster.consistency_mode == "RESTRICTED")


def next_action(state: RealtimeState, memory: DrainMemory) -> Action:
    """The one thing to do now; asked again with a new state after it."""
    if (unknown := not_known(state)) is not None:
        return Action(Do.WAIT, f"the table could not be read as a whole: {unknown}", memory)
    if state.pause.whole and not state.pause.comment.startswith(OUR_PAUSE):
        memory = replace(memory, paused_ms=None)
    if state.settings.pauseless is (memory.goal is Goal.ON):
        return _after(state, memory)
    return _before(state, memory)


def _before(state: RealtimeState, memory: DrainMemory) -> Action:
    """The config is still the old one."""
    if memory.backs_out:
        ours = state.pause.whole and memory.paused_ms is not None
        return Action(Do.BACK_OUT if ours else Do.GAVE_UP, memory.backs_out, memory)
    if not memory.cleared:
        return Action(Do.PREFLIGHT, "the table and its cluster must fit", replace(memory, cleared=True))
    left = _unfinished(state, memory.goal)
    consumed = [s for s in state.segments if any(r.ideal == "CONSUMING" for r in s.replicas)]
    paused_ms = memory.paused_ms
    if paused_ms is not None and state.pause.whole and state.read_ms - paused_ms > LONGEST_PAUSE_MS:
        why = f"paused for {LONGEST_PAUSE_MS // 60_000} min, and not over: {left or 'commits'}"
        return Action(Do.BACK_OUT, why, replace(memory, backs_out=why))
    if left is not None:
        return Action(Do.REPAIR, left, memory)
    if may_pause(state) and not state.pause.whole:
        why = "what is consumed now is committed the old way"
        return Action(Do.PAUSE, why, replace(memory, paused_ms=state.read_ms))
    if committing := [s for s in state.segments if s.status is SegmentStatus.COMMITTING]:
        return Action(Do.WAIT, f"{plural_are(len(committing), 'segment')} being committed", memory)
    if state.pause.whole and consumed:
        return Action(Do.WAIT, f"{plural_are(len(consumed), 'segment')} still being committed", memory)
    marks = tuple(sorted((p, segment.sequence) for p, segment in state.latest().items()))
    why = f"nothing is left unfinished; pauseless goes {memory.goal}"
    return Action(Do.FLIP, why, replace(memory, flipped_ms=state.read_ms, marks=marks))


def _after(state: RealtimeState, memory: DrainMemory) -> Action:
    """The config is the new one: go on, and see that commits are."""
    if state.pause.whole and memory.paused_ms is not None:
        return Action(Do.RESUME, f"the config has pauseless {memory.goal}", memory)
    memory = replace(memory, paused_ms=None)
    committing = [s for s in state.segments if s.status is SegmentStatus.COMMITTING]
    if memory.goal is Goal.OFF and committing:
        return Action(Do.REPAIR, f"{plural_are(len(committing), 'segment')} COMMITTING", memory)
    if memory.flipped_ms is None:
        return Action(Do.DONE, f"pauseless was {memory.goal} already", memory)
    if state.pause.whole:
        return Action(Do.DONE, "the table was paused by somebody else: no commit was seen yet", memory)
    if idle := sorted(p for p, segment in _running(state) if not segment.in_state("CONSUMING")):
        return Action(Do.REPAIR, f"partitions {_listed(idle)} are not consumed yet", memory)
    if not (unseen := unproven(state, memory)):
        return Action(Do.DONE, "every partition has committed the new way", memory)
    why = f"no commit the new way was seen yet of partitions {_listed(unseen)}"
    again = memory.forced_ms is None or state.read_ms - memory.forced_ms > FORCE_AGAIN_MS
    if may_pause(state) and again and memory.forcings < FORCINGS:
        forced = replace(memory, forced_ms=state.read_ms, forcings=memory.forcings + 1)
        return Action(Do.FORCE_COMMIT, why, forced)
    return Action(Do.WAIT, why, memory)


def _running(state: RealtimeState) -> list[tuple[int, LlcSegment]]:
    """The newest segment of each partition that is meant to be consumed."""
    return [(p, newest) for p, newest in sorted(state.latest().items()) if not state.pause.has_stream_of(p)]


def _unfinished(state: RealtimeState, goal: Goal) -> str | None:
    """What must be over before the change: commits under way, once the table stands still; those that are
    stuck, at any time; and where pauseless goes off, what only servers have, which nobody uploads then."""
    committing = [
        s
        for s in state.segments
        if s.status is SegmentStatus.COMMITTING and (state.pause.whole or young(state, s) is None)
    ]
    if committing:
        return f"{plural(len(committing), 'segment')} in COMMITTING"
    only_servers = [s for s in state.segments if s.stored and s.past_the_store]
    if goal is Goal.OFF and only_servers:
        return f"{plural(len(only_servers), 'segment')} without a download URL"
    return None


def unproven(state: RealtimeState, memory: DrainMemory) -> list[int]:
    """Partitions of which no commit the new way was seen.

    A blocking commit writes the segment's node for the last time before it makes the next segment, a
    pauseless one after. Only the newest pair shows that: a commit writes its own time over the creation's.
    """
    marks = dict(memory.marks)
    by_place = {(s.partition, s.sequence): s for s in state.segments}
    partitions = []
    for partition, newest in _running(state):
        last = by_place.get((partition, newest.sequence - 1))
        if last is None or last.sequence <= marks.get(partition, -1) or not _went(last, newest, memory.goal):
            partitions.append(partition)
    return partitions


def _went(last: LlcSegment, newest: LlcSegment, goal: Goal) -> bool:
    return (
        last.completed
        and last.modified_ms is not None
        and newest.made_ms is not None
        and (last.modified_ms <= newest.made_ms) is (goal is Goal.OFF)
    )


def _listed(partitions: list[int]) -> str:
    return some([*map(str, partitions)], 10)


Preflight = Callable[[RealtimeState, Goal], Sequence[str]]
"""Why the table must not be changed so; empty when it may."""

PAUSE_S = 3.0
REPAIR_MS = 30_000
"""How long effects of a repair are waited for at a time while the table is paused."""
GRACE_S = 120.0
"""What setting a table going again may take, once its pause has been too long."""


@dataclass(frozen=True, slots=True)
class PauselessChange(TableChange):
    """Turns pauseless on or off.

    :ivar repair: of the same table, under the same lease.
    :ivar patience_s: how long it goes on; what is unfinished then is gone on with by the next run.
    """

    repair: Repair = field(kw_only=True)
    preflight: Preflight = field(kw_only=True)

    def run(self, goal: Goal) -> Action:
        """Go on until it is done, has backed out, or patience is over; returns the last action.

        :raises PreflightRefused: a rule of the preflight does.
        :raises PinotError: Pinot refuses. Run it again: it goes on from there.
        :raises LeaseLost: another run took the table over.
        """
        until = self.clock() + self.patience_s
        memory, last_why = self.recalled(goal), ""
        while True:
            state = self._look(memory, until)
            action = next_action(state, memory)
            if action.why != last_why:
                self.tell(f"{action.do}: {action.why}")
                last_why = action.why
            # Remembered before it is done: who comes next must know that it may have been.
            if action.remember != memory and action.do is not Do.PREFLIGHT:
                self.lease.remember(SUBJECT, action.remember.to_text())
            try:
                memory = self._do(action, state, goal)
            except (PinotUnreachable, SwitchStateUnknown) as error:
                self._bear(error, action.remember, until)
                memory = action.remember
            if action.do in (Do.DONE, Do.GAVE_UP):
                self.lease.remember(SUBJECT, "")
                return action
            if self._is_over(memory, until):
                return action

    def _is_over(self, memory: DrainMemory, until: float) -> bool:
        """Whether patience is; a table that this has paused is first set going again."""
        grace_s = 0 if memory.paused_ms is None else LONGEST_PAUSE_MS / 1000 + GRACE_S
        return self.clock() >= until + grace_s

    def _look(self, memory: DrainMemory, until: float) -> RealtimeState:
        while True:
            try:
                return self.read()
            except PinotError as error:
                self._bear(error, memory, until)

    def _bear(self, error: PinotError, memory: DrainMemory, until: float) -> None:
        """A call that may have happened is looked up, in any case; for a Pinot that does not answer, a table
        is not left paused.

        :raises PinotError: that error, where neither is so.
        """
        is_unknown = isinstance(error, SwitchStateUnknown)
        if not is_unknown and (memory.paused_ms is None or self._is_over(memory, until)):
            raise error
        self.tell(f"{error.what}; {'looking whether it happened' if is_unknown else 'trying again'}")
        self.sleep(PAUSE_S)

    def recalled(self, goal: Goal) -> DrainMemory:
        """What is remembered of an earlier run; its preflight only where its pause is not over.

        :raises SessionError: it cannot be read.
        """
        text = self.lease.recall(SUBJECT)
        with reading(f"what the change of {self.lease.table} remembers", SessionError):
            memory = DrainMemory.from_text(text, goal)
        return replace(memory, cleared=memory.paused_ms is not None)

    def _do(self, action: Action, state: RealtimeState, goal: Goal) -> DrainMemory:
        table = state.table
        self.lease.assert_held()
        match action.do:
            case Do.PREFLIGHT:
                if against := self.preflight(state, goal):
                    raise PreflightRefused(
                        f"pauseless of {table} was not turned {goal}",
                        why="; ".join(against),
                        hint="`pinot-assets realtime preflight` has the fix of each",
                    )
                self.lease.remember(SUBJECT, action.remember.to_text())
            case Do.PAUSE:
                self.pinot.pause(table, f"{OUR_PAUSE} {goal}")
            case Do.FLIP:
                return self._flip(action, table, goal)
            case Do.RESUME | Do.BACK_OUT:
                self.pinot.resume(table)
            case Do.FORCE_COMMIT:
                self.pinot.force_commit(table)
            case Do.REPAIR:
                longest_ms = REPAIR_MS if state.pause.whole else self.repair.longest_ms
                replace(self.repair, longest_ms=longest_ms).round()
                self.sleep(PAUSE_S)
            case Do.WAIT:
                self.sleep(PAUSE_S)
            case Do.DONE | Do.GAVE_UP:
                pass
        return action.remember

    def _flip(self, action: Action, table: str, goal: Goal) -> DrainMemory:
        if (config := self.pinot.table_config(table)) is None:
            raise PinotError(f"{table} has no config any more")
        try:
            self.pinot.update_realtime_config(flipped(config, goal))
        except (PinotUnreachable, SwitchStateUnknown):
            raise
        except PinotError as error:
            why = f"the config was not changed: {error.why or error.what}"
            memory = replace(action.remember, flipped_ms=None, marks=(), backs_out=why)
            self.lease.remember(SUBJECT, memory.to_text())
            return memory
        return action.remember


def flipped(config: JsonMapping, goal: Goal) -> JsonObject:
    """The table config with pauseless on or off, and nothing else changed.

    A stream at its former place moves along: Pinot refuses a table that has it there beside this setting.
    """
    changed: JsonObject = copy.deepcopy(dict(config))
    streams = changed.setdefault("ingestionConfig", {}).setdefault("streamIngestionConfig", {})
    streams["pauselessConsumptionEnabled"] = goal is Goal.ON
    if former := (changed.get("tableIndexConfig") or {}).pop("streamConfigs", None):
        streams.setdefault("streamConfigMaps", [former])
    return changed
