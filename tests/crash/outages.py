"""Servers that die, and a ZooKeeper session that expires, at each state of a session.

The driver lives through it, or gives up with an error; then the servers are started again and triggers given.
Each part of the local stack is a process of its own, which gets SIGKILL.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import httpx
from crash.gate import Fate, Point
from crash.points import Verdict
from crash.scenarios import Lane, change, start
from crash.table import WAITS, CrashTable, open_table
from fakes.waiting import until

from pinot_assets.local import processes
from pinot_assets.local.stack import Stack
from pinot_assets.settings.local_stack import StackState, load_record

STATES: Mapping[str, Point] = {
    "INIT": Point("zk delete session", 1, Fate.OUTAGE),
    "IN_PROGRESS": Point("store PUT receipt", 1, Fate.OUTAGE),
    "SWITCH, before start": Point("pinot startReplaceSegments", 1, Fate.OUTAGE),
    "SWITCH, in the push": Point("pinot upload", 2, Fate.OUTAGE),
    "SWITCH, before end": Point("pinot endReplaceSegments", 1, Fate.OUTAGE),
    "SWITCH, after end": Point("pinot rebuild routing", 1, Fate.OUTAGE),
}
EXPIRY = "the ZooKeeper session expires"
DOWN_S = 3.0
KILLED = ("controller", "server-1", "broker-1", "zookeeper")
NAMES = tuple(
    f"outage/{state}/{what}"
    for what in (*(f"{part} is killed" for part in KILLED), EXPIRY)
    for state in STATES
)


def try_outage(stack: StackState, name: str, folder: Path) -> Verdict:
    """Go through one of `NAMES`, on a stack that may be broken."""
    _, state, what = name.split("/")
    began, story = time.monotonic(), list[str]()
    problems, answers, mixed, triggers = list[str](), 0, 0, 0
    try:
        with open_table(stack, "sync", folder) as table:
            lane = Lane(table)
            start(lane)
            round_ = change(lane)
            phase = table.watch.start((round_.before, round_.after))
            outage = _Outage(table, what)
            answer = table.start(point=STATES[state], outage=outage.strike).wait()
            story.append(f"{answer.said}: {answer.text}")
            if not table.gate.struck_after:
                raise AssertionError(f"the run never came to {STATES[state]}")
            outage.repair.join()
            until(lambda: _all_answer(table), 120)
            quiet = table.until_quiet()
            story += [f"{answer.said}: {answer.text}" for answer in quiet]
            triggers = len(quiet)
            problems += [*table.troubles(round_.after), *phase.mixed]
            answers, mixed = phase.answers, len(phase.mixed)
    except Exception as error:
        problems.append(f"{type(error).__name__}: {error}")
        Stack(stack.home).up(s3=True)
    seconds = round(time.monotonic() - began, 1)
    return Verdict(name, tuple(problems), answers, mixed, triggers, seconds, tuple(story))


class _Outage:
    """Something that breaks at once and is well again some time later."""

    def __init__(self, table: CrashTable, what: str) -> None:
        self._table, self._what = table, what
        self.repair = threading.Thread(target=self._repair, daemon=True)

    def strike(self) -> None:
        """Break it."""
        if self._what == EXPIRY:
            self._table.zookeeper.refuse()
        else:
            _kill(self._table.stack, self._what.removesuffix(" is killed"))
        self.repair.start()

    def _repair(self) -> None:
        if self._what == EXPIRY:
            until(lambda: self._table.store.holder() is None, WAITS.lease + 30)
            self._table.zookeeper.admit()
        else:
            time.sleep(DOWN_S)
            Stack(self._table.stack.home).up(s3=True)


def _kill(stack: StackState, part: str) -> None:
    """SIGKILL to one process of the stack; returns when it has ended."""
    record = load_record(stack.home)
    assert record is not None
    process = processes.find(record.processes[part])
    assert process is not None
    process.kill()
    until(lambda: processes.find(record.processes[part]) is None)


def _all_answer(table: CrashTable) -> bool:
    """Whether each broker answers with all servers again."""
    with httpx.Client(timeout=5, trust_env=False) as client:
        for broker in table.stack.broker_urls:
            try:
                body = client.post(
                    f"{broker}/query/sql", json={"sql": f'SELECT COUNT(*) FROM "{table.name}"'}
                ).json()
            except httpx.HTTPError:
                return False
            if body.get("exceptions") or not body.get("resultTable"):
                return False
    return True
