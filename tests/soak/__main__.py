"""`make soak`: files change and processes die while queries run; at the end the table equals its files."""

from __future__ import annotations

import logging
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated

import psutil
import typer
from fakes.spoiler import spoiler
from soak import leaks
from soak.answers import Asking, mixed
from soak.disturbing import Disturbing
from soak.events import VICTIMS, Event, Kind, events, least
from soak.table import TABLE, SoakTable
from soak.watched import Watched
from soak.world import FORMATS, SoakWorld, Write

from pinot_assets.errors import PinotAssetsError
from pinot_assets.local.stack import Stack

HOME = Path(".pinot-assets/soak")
FIRST_FILES = 12
SETTLES_WITHIN_S = 25 * 60.0
"""Trouble that passes is tried again after up to 15 minutes."""
LAST_CHANGES, MOST_CHANGES = 5, 15
"""Changes after all is calm, each published before the next: what grows with each of them leaks. While
handles seem to grow there are more: a leak goes on, an accident does not."""
WARM_S = 240.0
"""Until then the number of a watch's connections grows: each is kept for the next use for 90 s."""
CALM_S = 5.0


class Soak:
    """One soak, from its first file to its last comparison."""

    def __init__(self, table: SoakTable, world: SoakWorld, watched: Watched, disturbing: Disturbing) -> None:
        self.table, self.world, self.watched, self.disturbing = table, world, watched, disturbing
        self.changes = 0
        self.problems: list[str] = []
        self._writes: list[tuple[float, Write]] = []
        self._owed_until = 0

    def begin(self) -> None:
        """A table with files that were published undisturbed."""
        code, said = self.table.call("tables", "apply", TABLE, "--yes", "--tables", "tables")
        if code:
            raise RuntimeError(f"the table cannot be made: {said}")
        for _ in range(FIRST_FILES):
            for write in self.world.change("new")[1]:
                if not self.table.write(write):
                    raise RuntimeError("the store does not take the first files")
        self.watched.start()

    def go_through(self, plan: list[Event]) -> None:
        """All events; kills and troubles that found no moment keep it going with more changes."""
        start_s, todo = time.monotonic(), [*plan]
        last_s = start_s + todo[-1].at_s
        while todo or not self.disturbing.is_over or self._writes:
            now_s = time.monotonic()
            while todo and todo[0].at_s <= now_s - start_s:
                event = todo.pop(0)
                if event.kind is Kind.CHANGE:
                    self.change(event.what)
                else:
                    self.disturbing.add(event)
            if not todo and not self.disturbing.is_over and now_s > last_s + 30:
                if now_s > start_s + plan[-1].at_s + SETTLES_WITHIN_S:
                    self.problems.append("some kills found no moment")
                    return
                last_s = now_s
                self.change("rewrite")
            self.tick()

    def tick(self) -> None:
        """What goes on all the while."""
        self.disturbing.tick()
        emptied, published = self.world.emptied is not None, self.disturbing.published
        if emptied:  # the first snapshot after it was restored shows that no gate is shut for it any more
            self._owed_until = published + 1
        self.watched.look_after(
            repaired=self.disturbing.undisturbed and not emptied, owed=published < self._owed_until
        )
        while self._writes and self._writes[0][0] <= time.monotonic():
            if not self.table.write(self._writes[0][1]):
                break  # the store is down: in their order, once it is back
            self._writes.pop(0)
        time.sleep(0.05)

    def change(self, what: str) -> None:
        """One change; its second write comes two seconds later, so that no listing meets both half done."""
        words, writes = self.world.change(what)
        self.changes += 1
        tell(f"change {self.changes}: {words}")
        self._writes += [(time.monotonic() + 2 * place, write) for place, write in enumerate(writes)]

    def settle(self) -> bool:
        """Wait until the table shows its files and nothing is open; whether it does."""
        end_s = time.monotonic() + SETTLES_WITHIN_S
        while not (self.watched.is_calm and not self._writes and self._is_published()):
            if time.monotonic() > end_s:
                self.problems.append(f"the table does not settle: {self.watched.message[:500]}")
                return False
            self.tick()
        return True

    def _is_published(self) -> bool:
        try:
            is_open = self.table.sessions.pointer().active_session
        except PinotAssetsError:
            return False
        return not is_open and self.table.shows(self.world.answer)

    def last_changes(self) -> list[int]:
        """Handles of the watch after each of the last changes."""
        samples: list[int] = []
        while (process := self.watched.process) and time.time() - process.create_time() < WARM_S:
            self.tick()
        while len(samples) < LAST_CHANGES or (len(samples) < MOST_CHANGES and any(leaks.of_handles(samples))):
            self.change("rewrite")
            process = self.watched.process
            if not self.settle() or process is None or process != self.watched.process:
                self.problems.append("the last changes were not those of one watch in peace")
                break
            samples.append(self._handles(process))
        return samples

    def _handles(self, process: psutil.Process) -> int:
        """The fewest that it has in a while: a look opens some, and closes them."""
        end_s, looks = time.monotonic() + CALM_S, [leaks.handles(process)]
        while time.monotonic() < end_s:
            self.tick()
            looks.append(leaks.handles(process))
        fewest = min(looks, key=Counter.total)
        tell(f"published; handles of the watch: {fewest.total()} {dict(fewest)}")
        return fewest.total()


def main(
    minutes: Annotated[float, typer.Option(min=1, help="How long files change and processes die.")] = 20,
    seed: Annotated[int | None, typer.Option(help="Of an earlier soak, to go through it again.")] = None,
    home: Annotated[Path, typer.Option(help="Where the stack and the logs are kept.")] = HOME,
) -> None:
    """Change files, kill processes and break stores while brokers are asked; compare all rows at the end.

    The product runs as users run it, with its default settings: `pinot-assets watch` on a local stack.
    """
    seed = random.randrange(10**6) if seed is None else seed
    home = home.resolve()
    stack = Stack(home / "stack")
    stack.purge()
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # it tells of every connection that is cut
    chance = random.Random(seed)
    world = SoakWorld(chance.choice(sorted(FORMATS)), chance)
    _tell.log = (home / "events.log").open("a")
    tell(f"soak of {minutes:g} minutes, seed {seed}, {world.format} files; logs in {home}")
    good = False
    try:
        good = run(stack, home, world, seed, minutes)
    finally:
        (stack.purge if good else stack.down)()
    sys.exit(not good)


def run(stack: Stack, home: Path, world: SoakWorld, seed: int, minutes: float) -> bool:
    """All of it; whether all is well."""
    state = stack.up(s3=True)
    assert state.s3_endpoint is not None
    with ExitStack() as during:
        store = during.enter_context(spoiler(int(state.s3_endpoint.rpartition(":")[2])))
        table = SoakTable(state, home, store.endpoint, world.format)
        table.prepare()
        during.callback(table.zookeeper.stop)
        watched = Watched(table, tell)
        disturbing = Disturbing(table, watched, store, random.Random(seed + 1), tell)
        soak = Soak(table, world, watched, disturbing)
        during.callback(watched.stop)
        with Asking(state.broker_urls, TABLE) as asking:
            soak.begin()
            soak.settle()
            tell("the first files are published")
            soak.go_through(events(seed, minutes))
            tell("all events are through; the table settles")
            leftovers: list[str] = []
            if soak.settle():
                disturbances = disturbing.kills.total() + disturbing.troubles.total()
                leftovers += leaks.of_deaths(leaks.strays_of(table), disturbances)
                before = {info.key for info in table.staging.store.list()}
                leftovers += leaks.of_handles(soak.last_changes())
                leftovers += leaks.of_calm(before, leaks.strays_of(table))
            leftovers += leaks.of_running(table, {process.pid for process in watched.family})
            watched.stop()
            differences = table.differences(world)
        leftovers += leaks.of_ended(table)
    return judged(soak, asking, differences, leftovers, minutes)


def judged(soak: Soak, asking: Asking, differences: list[str], leftovers: list[str], minutes: float) -> bool:
    """Say how it went; the last line sums it up."""
    published, kills = soak.table.published(soak.world.known), soak.disturbing.kills
    bad = 0
    for url, heard in asking.answers.items():
        for times, since in mixed(heard, published):
            bad += times
            tell(f"MIXED: {times} answers of {url} since {since}")
        tell(f"{url}: {heard.count} answers, {heard.errors.total()} errors: {heard.errors.most_common(3)}")
    needed = least(minutes)
    if soak.changes < needed.changes or kills.total() < needed.kills:
        soak.problems.append(f"fewer than {needed.changes} changes or {needed.kills} kills")
    soak.problems += [f"{v} was killed {kills[v]} times" for v in VICTIMS if kills[v] < needed.of_each]
    for line in (*soak.problems, *soak.watched.problems):
        tell(f"PROBLEM: {line}")
    for line in differences:
        tell(f"DIFFERENCE: {line}")
    for line in leftovers:
        tell(f"LEAK: {line}")
    tell(f"killed: {dict(kills)}; troubles: {dict(soak.disturbing.troubles)}; {len(published)} snapshots")
    tell(f"runs by hand, after a file was emptied: {soak.watched.runs_by_hand}")
    answers = sum(heard.count for heard in asking.answers.values())
    equal = "no" if differences else "yes"
    leaked = f"{len(leftovers)} (see above)" if leftovers else "none"
    _tell(
        f"soak: {soak.changes} changes, {kills.total()} kills, mixed answers: {bad} of {answers}, "
        f"rows equal: {equal}, leaks: {leaked}"
    )
    return not (bad or differences or leftovers or soak.problems or soak.watched.problems or not answers)


class _Telling:
    """To standard output, and to the log of events."""

    log = sys.stderr

    def __call__(self, line: str) -> None:
        for place in (sys.stdout, self.log):
            place.write(f"{line}\n")
            place.flush()


_tell = _Telling()
tell: Callable[[str], None] = lambda line: _tell(f"{datetime.now():%H:%M:%S} {line}")  # noqa: E731

if __name__ == "__main__":
    typer.run(main)
