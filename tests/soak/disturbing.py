"""Kills and troubles: each waits for its moment, then strikes; servers are started again after a while."""

from __future__ import annotations

import random
import re
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import psutil
from fakes.spoiler import Spoiler
from soak.events import OLD_POINTER, SERVERS, Event, Kind
from soak.table import SoakTable
from soak.watched import Watched

from pinot_assets.errors import LocalStackError
from pinot_assets.local import processes
from pinot_assets.local.stack import Stack
from pinot_assets.settings.local_stack import load_record

RUN_WITHIN_S: Final = 60.0
"""How long a kill waits for a run to be under way; after that it strikes without one."""
FULL_BYTES: Final = 2048
"""The largest file that a process can write on a full disk."""


@dataclass
class Disturbing:
    """See the module.

    :ivar kills: how many of each victim.
    :ivar troubles: how many of each kind.
    """

    table: SoakTable
    watched: Watched
    store: Spoiler
    chance: random.Random
    tell: Callable[[str], None]
    kills: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    _pending: list[tuple[Event, float]] = field(default_factory=list)
    _repair: threading.Thread | None = None
    _over_s: dict[str, float] = field(default_factory=dict)
    _pointers: list[tuple[bytes, bytes]] = field(default_factory=list)
    _looked_s: float = 0.0

    def add(self, event: Event) -> None:
        """It is due."""
        self._pending.append((event, time.monotonic()))

    @property
    def is_over(self) -> bool:
        """Whether nothing waits, and all that was disturbed is well again."""
        return not self._pending and self.undisturbed

    @property
    def undisturbed(self) -> bool:
        """Whether all servers are up, and no trouble is on."""
        return (self._repair is None or not self._repair.is_alive()) and not self._over_s

    def tick(self) -> None:
        """Strike where the moment has come, end what has lasted long enough."""
        now_s = time.monotonic()
        if now_s - self._looked_s > 5:
            self._looked_s = now_s
            self._remember_pointer()
        for what in [what for what, end_s in self._over_s.items() if end_s <= now_s]:
            self._end(what)
        if "full disk" in self._over_s:
            self._limit(FULL_BYTES)  # processes that were started since, too
        for event, since_s in [*self._pending]:
            in_run = self.watched.runs_s >= event.into_run_s
            waited = not event.needs_run and now_s - since_s > RUN_WITHIN_S
            if (in_run or waited) and self._strike(event):
                self._pending.remove((event, since_s))

    def _strike(self, event: Event) -> bool:
        """Whether there was something to strike."""
        if event.kind is Kind.TROUBLE:
            return self._trouble(event)
        if event.what in SERVERS:
            return self._kill_server(event)
        victim = self._victim(event.what)
        if victim is None:
            return False
        during = f"{self.watched.runs_s:.1f} s into a run" if self.watched.runs_s >= 0 else "between two runs"
        if event.what != "watch":
            try:
                (self.watched.kill_jvm if event.what == "jvm" else psutil.Process.kill)(victim)
            except psutil.NoSuchProcess:
                return False
        self._killed(event.what, f"process {victim.pid}, {during}")
        if event.what == "watch":
            self.watched.kill()
        return True

    def _victim(self, what: str) -> psutil.Process | None:
        if what == "watch":
            return self.watched.process
        jvm = self.watched.jvm
        if what == "jvm" or jvm is None:
            return jvm
        try:
            workers = [worker for daemon in jvm.children() for worker in daemon.children()]
        except psutil.NoSuchProcess:
            return None
        return self.chance.choice(workers) if workers else None

    # --- servers -----------------------------------------------------------------------------------

    def _kill_server(self, event: Event) -> bool:
        if self._repair is not None and self._repair.is_alive():
            return False  # one at a time
        part = event.what
        record = load_record(self.table.stack.home)
        assert record is not None
        process = processes.find(record.processes[part])
        if process is None:
            return False
        process.kill()
        self._killed(part, f"process {process.pid}, for {event.lasts_s:.0f} s")
        self._repair = threading.Thread(target=self._start_again, args=(part, event.lasts_s), daemon=True)
        self._repair.start()
        return True

    def _start_again(self, part: str, after_s: float) -> None:
        time.sleep(after_s)
        for _ in range(5):
            try:
                Stack(self.table.stack.home).up(s3=True)
                self.tell(f"{part} is back")
                return
            except LocalStackError as error:
                self.tell(f"{part} does not start, tried again: {str(error)[:500]}")

    def _killed(self, what: str, words: str) -> None:
        self.kills[what] += 1
        self.tell(f"kill {self.kills.total()}: {what} ({words})")

    # --- troubles ----------------------------------------------------------------------------------

    def _trouble(self, event: Event) -> bool:
        if event.what == OLD_POINTER:
            return self._put_back_pointer()
        if event.what in self._over_s:
            return False
        self._over_s[event.what] = time.monotonic() + event.lasts_s
        self.troubles[event.what] += 1
        self.tell(f"trouble: {event.what} for {event.lasts_s:.0f} s")
        self._say()
        return True

    def _end(self, what: str) -> None:
        del self._over_s[what]
        self.tell(f"trouble over: {what}")
        self._say()
        if what == "full disk":
            self._limit(resource.RLIM_INFINITY)

    def _say(self) -> None:
        """A store that is full takes nothing and gives all; one that is away does neither."""
        away, full = "503" in self._over_s, "507" in self._over_s

        def fault(method: str, path: str) -> str | None:
            if away:
                return "say 503"
            return "say 507" if full and method in ("PUT", "POST") else None

        self.store.spoil = fault

    def _limit(self, most_bytes: int) -> None:
        for process in self.watched.family:
            try:
                _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
                process.rlimit(
                    psutil.RLIMIT_FSIZE, (most_bytes if hard == -1 else min(most_bytes, hard), hard)
                )
            except psutil.Error:
                continue

    # --- the pointer -------------------------------------------------------------------------------

    @property
    def published(self) -> int:
        """How many snapshots were seen to be published so far; one that a pointer was put back to is none."""
        return len({snapshot for snapshot, _ in self._pointers})

    def _remember_pointer(self) -> None:
        """Keep a copy each time that something was published."""
        data = self.table.pointer()
        published = re.search(rb"snapshots/[0-9]+-[0-9a-f]{64}", data)
        if published and (not self._pointers or self._pointers[-1][0] != published[0]):
            self._pointers.append((published[0], data))

    def _put_back_pointer(self) -> bool:
        """As after a backup of ZooKeeper: with the watch stopped, a copy from before the last switches."""
        if len(self._pointers) < 3 or not self.undisturbed:
            return False
        self.watched.stop()
        _, data = self._pointers[-self.chance.randint(2, min(4, len(self._pointers)))]
        self.table.zookeeper.retry(self.table.zookeeper.set, self.table.sessions.path, data)
        self.troubles[OLD_POINTER] += 1
        snapshot = re.search(rb"snapshots/([0-9]+)", data)
        assert snapshot is not None
        self.tell(f"trouble: the pointer is put back to snapshot {int(snapshot[1])}")
        self.watched.start()
        return True
