"""Turning pauseless on or off on a real table: `pauseless_plan` says what comes next, this does it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.untrusted import reading
from pinot_assets.errors import (
    PinotError,
    PinotUnreachable,
    PreflightRefused,
    SessionError,
    SwitchStateUnknown,
)
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.operations.pauseless_plan import (
    LONGEST_PAUSE_MS,
    OUR_PAUSE,
    SUBJECT,
    Action,
    Do,
    DrainMemory,
    Goal,
    next_action,
)
from pinot_assets.realtime.operations.table_change import TableChange
from pinot_assets.realtime.repair.apply import Repair

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
        memory, told = self.recalled(goal), ""
        while True:
            state = self._look(memory, until)
            action = next_action(state, memory)
            if action.why != told:
                self.tell(f"{action.do}: {action.why}")
                told = action.why
            # Remembered before it is done: who comes next must know that it may have been.
            if action.remember != memory and action.do is not Do.PREFLIGHT:
                self._remember(action.remember)
            memory = self._try(action, state, goal, until)
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

    def _try(self, action: Action, state: RealtimeState, goal: Goal, until: float) -> DrainMemory:
        try:
            return self._do(action, state, goal)
        except (PinotUnreachable, SwitchStateUnknown) as error:
            self._bear(error, action.remember, until)
            return action.remember

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
                self._check(state, goal)
                self._remember(action.remember)
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
        config = self._config(table, goal)
        try:
            self.pinot.update_realtime_config(config)
        except (PinotUnreachable, SwitchStateUnknown):
            raise
        except PinotError as error:
            why = f"the config was not changed: {error.why or error.what}"
            memory = replace(action.remember, flipped_ms=None, marks=(), backs_out=why)
            self._remember(memory)
            return memory
        return action.remember

    def _check(self, state: RealtimeState, goal: Goal) -> None:
        against = self.preflight(state, goal)
        if against:
            raise PreflightRefused(
                f"pauseless of {state.table} was not turned {goal}",
                why="; ".join(against),
                hint="`pinot-assets realtime preflight` has the fix of each",
            )

    def _config(self, table: str, goal: Goal) -> JsonMapping:
        found = self.pinot.table_config(table)
        if found is None:
            raise PinotError(f"{table} has no config any more")
        return flipped(found, goal)

    def _remember(self, memory: DrainMemory) -> None:
        self.lease.remember(SUBJECT, memory.to_text())


def flipped(config: JsonMapping, goal: Goal) -> JsonObject:
    """The table config with pauseless on or off, and nothing else changed.

    A stream at its former place moves along: Pinot refuses a table that has it there beside this setting.
    """
    changed: JsonObject = copy.deepcopy(dict(config))
    streams = changed.setdefault("ingestionConfig", {}).setdefault("streamIngestionConfig", {})
    streams["pauselessConsumptionEnabled"] = goal is Goal.ON
    former = (changed.get("tableIndexConfig") or {}).pop("streamConfigs", None)
    if former:
        streams.setdefault("streamConfigMaps", [former])
    return changed
