"""Turning pauseless on or off on a real table: `drain` says what comes next, this does it."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinot_assets.errors import PinotError, SessionError, SwitchStateUnknown
from pinot_assets.realtime.drain import SUBJECT, Action, Do, DrainMemory, Goal, next_action
from pinot_assets.realtime.lease import OperationsLease
from pinot_assets.realtime.port import DrainDoor, Reader, Tell
from pinot_assets.realtime.repair.apply import Repair
from pinot_assets.realtime.state import RealtimeState

Preflight = Callable[[RealtimeState, Goal], Sequence[str]]
"""Why the table must not be changed so; empty when it may."""

PAUSE_S = 3.0


@dataclass(frozen=True, slots=True)
class Draining:
    """What the change works with.

    :ivar repair: of the same table, under the same lease.
    :ivar patience_s: how long it goes on; what is unfinished then is gone on with by the next run.
    """

    door: DrainDoor
    read: Reader
    lease: OperationsLease
    repair: Repair
    preflight: Preflight
    tell: Tell = lambda _: None
    patience_s: float = 3600.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self, goal: Goal) -> Action:
        """Go on until it is done, has backed out, or patience is over; returns the last action.

        :raises PinotError: the preflight refuses, or Pinot does. Run it again: it goes on from there.
        :raises LeaseLost: another run took the table over.
        """
        until = self.clock() + self.patience_s
        memory, told = self.recalled(goal), ""
        while True:
            state = self.read()
            action = next_action(state, memory)
            if action.why != told:
                self.tell(f"{action.do}: {action.why}")
                told = action.why
            # Remembered before it is done: who comes next must know that it may have been.
            if action.remember != memory and action.do is not Do.PREFLIGHT:
                self._remember(action.remember)
            memory = self._do(action, state, goal)
            if action.do in (Do.DONE, Do.GAVE_UP):
                self.lease.remember(SUBJECT, "")
                return action
            if self.clock() >= until:
                return action

    def recalled(self, goal: Goal) -> DrainMemory:
        """What is remembered of an earlier run.

        :raises SessionError: it cannot be read.
        """
        try:
            return DrainMemory.from_text(self.lease.recall(SUBJECT), goal)
        except ValueError as error:
            raise SessionError(
                f"what the change of {self.lease.table} remembers cannot be read", why=str(error)
            ) from error

    def _do(self, action: Action, state: RealtimeState, goal: Goal) -> DrainMemory:
        table = state.table
        self.lease.assert_held()
        try:
            match action.do:
                case Do.PREFLIGHT:
                    self._check(state, goal)
                    self._remember(action.remember)
                case Do.PAUSE:
                    self.door.pause(table, f"pauseless goes {goal}")
                case Do.FLIP:
                    self.door.update_realtime_config(self._config(table, goal))
                case Do.RESUME | Do.BACK_OUT:
                    self.door.resume(table)
                case Do.FORCE_COMMIT:
                    self.door.force_commit(table)
                case Do.REPAIR:
                    self.repair.round()
                    self.sleep(PAUSE_S)
                case Do.WAIT:
                    self.sleep(PAUSE_S)
                case Do.DONE | Do.GAVE_UP:
                    pass
        except SwitchStateUnknown as error:
            self.tell(f"{action.do}: {error.what}; looking whether it happened")
            self.sleep(PAUSE_S)
        return action.remember

    def _check(self, state: RealtimeState, goal: Goal) -> None:
        against = self.preflight(state, goal)
        if against:
            raise PinotError(
                f"pauseless of {state.table} was not turned {goal}",
                why="; ".join(against),
                hint="`pinot-assets realtime preflight` has the fix of each",
            )

    def _config(self, table: str, goal: Goal) -> Mapping[str, Any]:
        found = self.door.table_config(table)
        if found is None:
            raise PinotError(f"{table} has no config any more")
        return flipped(found, goal)

    def _remember(self, memory: DrainMemory) -> None:
        self.lease.remember(SUBJECT, memory.to_text())


def flipped(config: Mapping[str, Any], goal: Goal) -> dict[str, Any]:
    """The table config with pauseless on or off, and nothing else changed.

    A stream at its former place moves along: Pinot refuses a table that has it there beside this setting.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(config))
    streams = changed.setdefault("ingestionConfig", {}).setdefault("streamIngestionConfig", {})
    streams["pauselessConsumptionEnabled"] = goal is Goal.ON
    former = (changed.get("tableIndexConfig") or {}).pop("streamConfigs", None)
    if former:
        streams.setdefault("streamConfigMaps", [former])
    return changed
