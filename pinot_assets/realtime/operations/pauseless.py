"""Turns pauseless consumption on or off, so that no commit begins in one protocol and ends in the other.

Pinot chooses the controller's half of a commit at its first message, the server's when consumption of the
segment begins. After a plain change of the config, each running segment would commit half and half, and what
is COMMITTING would stay so. So the drain first pauses, which commits everything in the old protocol, and
finishes what is unfinished. Then it changes the config, resumes, and watches the first commits. Where Pinot
refuses to pause (partial upsert, consistency mode RESTRICTED), it changes the config while nothing
is COMMITTING, watches natural commits, and finishes what is left COMMITTING afterwards.

`next_action` is pure: the next action follows from a state and the memory, so a drain may be interrupted
anywhere. Source: docs/design/realtime.md#s3, #s5, #s8, #point-8 and #s18. `PauselessChange` does the actions
on a real table.
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
from pinot_assets.core.waiting import Deadline
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
"""The subject of the drain's memory in ZooKeeper (`realtime.lease`)."""
_WHAT: Final = "what a drain remembers"

OUR_PAUSE: Final = "pauseless goes"
"""Prefix of the comment of a pause of ours; every release with pauseless stores the comment."""

LONGEST_PAUSE_MS: Final = 900_000
"""How long a table may be paused before it is resumed unchanged: 300 s until a failed commit may be repaired,
then the repair, and as much again."""

FORCE_AGAIN_MS: Final = 120_000
FORCINGS: Final = 3
"""A forced commit may miss a server that does not consume yet. Each one leaves a small segment behind."""


class Goal(StrEnum):
    """Whether pauseless consumption is to be on or off."""

    ON = "on"
    OFF = "off"


class Do(StrEnum):
    """The kinds of action."""

    PREFLIGHT = "preflight"
    REPAIR = "repair"
    """Finish commits, upload what only servers have, start idle partitions."""
    PAUSE = "pause"
    FLIP = "change the config"
    RESUME = "resume"
    FORCE_COMMIT = "force a commit"
    WAIT = "wait"
    BACK_OUT = "back out"
    """Resume without having changed the config."""
    GAVE_UP = "gave up"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class DrainMemory(Open):
    """What a later run needs to know after an interruption.

    :ivar cleared: whether the preflight has passed.
    :ivar paused_ms: when the drain paused the table; None if it did not, or if somebody else paused it.
    :ivar flipped_ms: when the drain changed the config.
    :ivar marks: newest segment of each partition at that time: later ones commit in the new protocol.
    :ivar forced_ms: when the drain last forced the commits that it watches, `forcings` times so far.
    :ivar backs_out: the reason why it now only resumes the table; empty if it does not back out.
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
        """Return it as JSON."""
        return json.dumps(plain(self))

    @classmethod
    def from_text(cls, text: str, goal: Goal) -> DrainMemory:
        """Return the memory for that goal; of an unfinished change to the other goal only its pause.

        :raises ValueError: the text is something else.
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

    :ivar remember: the memory to write before the action is done.
    """

    do: Do
    why: str
    remember: DrainMemory


def may_pause(state: RealtimeState) -> bool:
    """Return whether Pinot allows to pause the table and force commits (`validateForceCommitAllowed`)."""
    inconsistent = state.settings.upsert == "PARTIAL" or state.settings.drops_out_of_order
    return not (inconsistent and state.cluster.consistency_mode == "RESTRICTED")


def next_action(state: RealtimeState, memory: DrainMemory) -> Action:
    """Return the one thing to do now. After it, call this again with a new state."""
    if (unknown := not_known(state)) is not None:
        return Action(Do.WAIT, f"the table could not be read completely: {unknown}", memory)
    if state.pause.whole and not state.pause.comment.startswith(OUR_PAUSE):
        memory = replace(memory, paused_ms=None)
    if state.settings.pauseless is (memory.goal is Goal.ON):
        return _after(state, memory)
    return _before(state, memory)


def _before(state: RealtimeState, memory: DrainMemory) -> Action:
    """Return the next action while the config is still the old one."""
    if memory.backs_out:
        ours = state.pause.whole and memory.paused_ms is not None
        return Action(Do.BACK_OUT if ours else Do.GAVE_UP, memory.backs_out, memory)
    if not memory.cleared:
        return Action(
            Do.PREFLIGHT, "the table and its cluster must pass the preflight", replace(memory, cleared=True)
        )
    left = _unfinished(state, memory.goal)
    consumed = [s for s in state.segments if any(r.ideal == "CONSUMING" for r in s.replicas)]
    paused_ms = memory.paused_ms
    if paused_ms is not None and state.pause.whole and state.read_ms - paused_ms > LONGEST_PAUSE_MS:
        why = f"paused for {LONGEST_PAUSE_MS // 60000} min, and not finished: {left or 'commits'}"
        return Action(Do.BACK_OUT, why, replace(memory, backs_out=why))
    if left is not None:
        return Action(Do.REPAIR, left, memory)
    if may_pause(state) and not state.pause.whole:
        why = "what is consumed now is committed in the old way"
        return Action(Do.PAUSE, why, replace(memory, paused_ms=state.read_ms))
    if committing := [s for s in state.segments if s.status is SegmentStatus.COMMITTING]:
        return Action(Do.WAIT, f"{plural_are(len(committing), 'segment')} being committed", memory)
    if state.pause.whole and consumed:
        return Action(Do.WAIT, f"{plural_are(len(consumed), 'segment')} still being committed", memory)
    marks = tuple(sorted((p, segment.sequence) for p, segment in state.latest().items()))
    why = f"nothing is unfinished; pauseless is turned {memory.goal}"
    return Action(Do.FLIP, why, replace(memory, flipped_ms=state.read_ms, marks=marks))


def _after(state: RealtimeState, memory: DrainMemory) -> Action:
    """Return the next action once the config is the new one: resume, and see that commits succeed."""
    if state.pause.whole and memory.paused_ms is not None:
        return Action(Do.RESUME, f"the config has pauseless {memory.goal}", memory)
    memory = replace(memory, paused_ms=None)
    committing = [s for s in state.segments if s.status is SegmentStatus.COMMITTING]
    if memory.goal is Goal.OFF and committing:
        return Action(Do.REPAIR, f"{plural_are(len(committing), 'segment')} COMMITTING", memory)
    if memory.flipped_ms is None:
        return Action(Do.DONE, f"pauseless was {memory.goal} already", memory)
    if state.pause.whole:
        return Action(Do.DONE, "somebody else paused the table: no commit was seen yet", memory)
    if idle := sorted(p for p, segment in _running(state) if not segment.in_state("CONSUMING")):
        return Action(Do.REPAIR, f"partitions {_listed(idle)} are not consumed yet", memory)
    if not (unseen := unproven(state, memory)):
        return Action(Do.DONE, "every partition has committed in the new way", memory)
    why = f"no commit in the new way was seen yet of partitions {_listed(unseen)}"
    again = memory.forced_ms is None or state.read_ms - memory.forced_ms > FORCE_AGAIN_MS
    if may_pause(state) and again and memory.forcings < FORCINGS:
        forced = replace(memory, forced_ms=state.read_ms, forcings=memory.forcings + 1)
        return Action(Do.FORCE_COMMIT, why, forced)
    return Action(Do.WAIT, why, memory)


def _running(state: RealtimeState) -> list[tuple[int, LlcSegment]]:
    """Return the newest segment of each partition that should be consumed."""
    return [(p, newest) for p, newest in sorted(state.latest().items()) if not state.pause.has_stream_of(p)]


def _unfinished(state: RealtimeState, goal: Goal) -> str | None:
    """Return what must end before the change, None for nothing: commits under way, once the table is paused;
    stuck commits, at any time; for the goal OFF also what only servers have, as Pinot would not upload it."""
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
    """Return the partitions of which no commit in the new protocol was seen.

    A blocking commit writes the segment's node for the last time before it creates the next segment, a
    pauseless one after that. Only the newest pair shows it: a commit overwrites the time of creation.
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
"""Returns the reasons why the table must not be changed so; none when it may."""

PAUSE_S = 3.0
REPAIR_MS = 30_000
"""Milliseconds that one round of repair waits for its effects while the table is paused."""
GRACE_S = 120.0
"""Seconds that resuming the table may take, once its pause has been too long."""


@dataclass(frozen=True, slots=True)
class PauselessChange(TableChange):
    """Turns pauseless on or off.

    :ivar repair: of the same table, under the same lease.
    :ivar patience_s: after how long it stops; the next run continues what is unfinished then.
    """

    repair: Repair = field(kw_only=True)
    preflight: Preflight = field(kw_only=True)

    def run(self, goal: Goal) -> Action:
        """Act until the change is done, has backed out, or patience is over; return the last action.

        :raises PreflightRefused: a rule of the preflight refuses the change.
        :raises PinotError: Pinot refuses a call. Run it again: it continues from there.
        :raises LeaseLost: another run took the lease of the table.
        """
        deadline = Deadline(self.clock, self.patience_s)
        memory, last_why = self.recalled(goal), ""
        while True:
            state = self._look(memory, deadline)
            action = next_action(state, memory)
            if action.why != last_why:
                self.tell(f"{action.do}: {action.why}")
                last_why = action.why
            # Remembered before it is done: the next run must know that it may have been done.
            if action.remember != memory and action.do is not Do.PREFLIGHT:
                self.lease.remember(SUBJECT, action.remember.to_text())
            try:
                memory = self._do(action, state, goal)
            except (PinotUnreachable, SwitchStateUnknown) as error:
                self._bear(error, action.remember, deadline)
                memory = action.remember
            if action.do in (Do.DONE, Do.GAVE_UP):
                self.lease.remember(SUBJECT, "")
                return action
            if self._is_over(memory, deadline):
                return action

    def _is_over(self, memory: DrainMemory, deadline: Deadline) -> bool:
        """Return whether patience is over; a table that the drain has paused is first resumed."""
        grace_s = 0 if memory.paused_ms is None else LONGEST_PAUSE_MS / 1000 + GRACE_S
        return deadline.waited >= self.patience_s + grace_s

    def _look(self, memory: DrainMemory, deadline: Deadline) -> RealtimeState:
        while True:
            try:
                return self.read()
            except PinotError as error:
                self._bear(error, memory, deadline)

    def _bear(self, error: PinotError, memory: DrainMemory, deadline: Deadline) -> None:
        """Bear the error: always if the call may have happened, as the next look shows whether it did. While
        the drain has paused the table, also bear a Pinot that does not answer: the pause must end.

        :raises PinotError: that error, in every other case.
        """
        is_unknown = isinstance(error, SwitchStateUnknown)
        if not is_unknown and (memory.paused_ms is None or self._is_over(memory, deadline)):
            raise error
        self.tell(f"{error.what}; {'looking whether it happened' if is_unknown else 'trying again'}")
        self.clock.sleep(PAUSE_S)

    def recalled(self, goal: Goal) -> DrainMemory:
        """Return the memory of an earlier run; its passed preflight counts only while its pause lasts.

        :raises SessionError: the memory cannot be read.
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
                        hint="`pinot-assets realtime preflight` shows what to do for each",
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
                self.clock.sleep(PAUSE_S)
            case Do.WAIT:
                self.clock.sleep(PAUSE_S)
            case Do.DONE | Do.GAVE_UP:
                pass
        return action.remember

    def _flip(self, action: Action, table: str, goal: Goal) -> DrainMemory:
        if (config := self.pinot.table_config(table)) is None:
            raise PinotError(f"the config of {table} was deleted meanwhile")
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
    """Return the table config with pauseless on or off, and nothing else changed.

    A stream config at its former place is moved: Pinot refuses this setting in a table that has it there.
    """
    changed: JsonObject = copy.deepcopy(dict(config))
    streams = changed.setdefault("ingestionConfig", {}).setdefault("streamIngestionConfig", {})
    streams["pauselessConsumptionEnabled"] = goal is Goal.ON
    if former := (changed.get("tableIndexConfig") or {}).pop("streamConfigs", None):
        streams.setdefault("streamConfigMaps", [former])
    return changed
