"""The deep-store outage drill: what it measures, when a phase is over, what the measurements show, and the
drill itself on a real test table.

The drill makes the store unwritable while the test table has a backlog. Consumption must keep its rate
through at least two commits of each partition. Then the store is repaired, and what only servers have is
uploaded. The drill also measures how peer downloads affect queries: the bypass's design leaves that open.
"""

from __future__ import annotations

import math
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from pinot_assets.core.interrupts import held_off
from pinot_assets.core.text import counted, plural
from pinot_assets.core.this_machine import run_child
from pinot_assets.errors import PinotAssetsError, PinotError
from pinot_assets.realtime.health.recovery import offset
from pinot_assets.realtime.model.state import RealtimeState
from pinot_assets.realtime.read.reading import Reader, Tell
from pinot_assets.realtime.repair.apply import Repair


class Phase(StrEnum):
    """The parts of a drill, in order."""

    BEFORE = "before"
    OUTAGE = "outage"
    DOWNLOADS = "downloads"
    """The store is still unwritable, and a server loads segments from its peers."""
    BACKFILL = "back-fill"


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long phases last, in seconds, and what they must reach.

    :ivar commits: commits of each partition that the outage phase must see.
    :ivar longest: a phase that is not over by then has failed.
    """

    before: float = 60.0
    outage: float = 60.0
    downloads: float = 30.0
    commits: int = 2
    longest: float = 1800.0
    ratio: float = 0.95


USUAL_LENGTHS = Lengths()


@dataclass(frozen=True, slots=True)
class DrillSample:
    """One look at the table, and queries since the last one.

    :ivar consumed: messages consumed since the stream began, over all partitions.
    :ivar backlog: messages that wait; None where the stream was not read.
    :ivar commits: number of segments with a fixed end, by partition.
    :ivar only_servers: number of completed segments without a copy in the deep store.
    :ivar query_s: duration of each query since the last sample, in seconds.
    :ivar peer_downloads: a counter of Pinot's; None where it could not be read.
    """

    at_ms: int
    consumed: int
    backlog: int | None
    commits: Mapping[int, int]
    only_servers: int
    query_s: tuple[float, ...] = ()
    peer_downloads: int | None = None


@dataclass(frozen=True, slots=True)
class DrillObservation:
    """One result of the drill.

    :ivar passed: None for a result that is only information.
    :ivar value: the number that counts: a ratio, or a number of segments; None where nothing was measured.
    """

    name: str
    passed: bool | None
    text: str
    value: float | None = None


def sample_of(
    state: RealtimeState, query_s: Sequence[float] = (), peer_downloads: int | None = None
) -> DrillSample:
    """Return the sample of one look."""
    ended: dict[int, int] = {}
    reached: dict[int, int] = {}
    for segment in state.segments:
        ended.setdefault(segment.partition, 0)
        if (end := offset(segment.end_offset)) is not None:
            ended[segment.partition] += 1
            reached[segment.partition] = max(reached.get(segment.partition, 0), end)
    for one in state.consumption:
        consumed = state.by_name.get(one.segment)
        if consumed is not None and one.offset is not None:
            reached[consumed.partition] = max(reached.get(consumed.partition, 0), one.offset)
    held = state.stream
    return DrillSample(
        at_ms=state.read_ms,
        consumed=sum(reached.values()),
        backlog=sum(max(s.latest - reached.get(p, 0), 0) for p, s in held.items()) if held else None,
        commits=ended,
        only_servers=sum(segment.past_the_store for segment in state.segments),
        query_s=tuple(query_s),
        peer_downloads=peer_downloads,
    )


def is_over(phase: Phase, samples: Sequence[DrillSample], lengths: Lengths) -> bool:
    """Return whether the phase has shown its result, or has lasted for the longest time.

    :param samples: of this phase; the first was taken when it began.
    """
    if len(samples) < 2:
        return False
    seconds = (samples[-1].at_ms - samples[0].at_ms) / 1000
    if seconds >= lengths.longest:
        return True
    match phase:
        case Phase.BEFORE:
            return seconds >= lengths.before
        case Phase.OUTAGE:
            return seconds >= lengths.outage and least_commits(samples) >= lengths.commits
        case Phase.DOWNLOADS:
            return seconds >= lengths.downloads and downloaded(samples) != 0
        case Phase.BACKFILL:
            return samples[-1].only_servers == 0


def downloaded(samples: Sequence[DrillSample]) -> int | None:
    """Return how many segments came from peers; None where that could not be counted. The counter of a server
    that is restarted, as one may be for its downloads, starts from 0 again.
    """
    counts = [sample.peer_downloads for sample in samples if sample.peer_downloads is not None]
    gained = sum(max(later - earlier, 0) for earlier, later in pairwise(counts))
    return gained if len(counts) > 1 else None


def least_commits(samples: Sequence[DrillSample]) -> int:
    """Return the commits between first and last sample of the partition that had fewest."""
    first, last = samples[0].commits, samples[-1].commits
    return min((count - first.get(partition, 0) for partition, count in last.items()), default=0)


def rate(samples: Sequence[DrillSample]) -> float | None:
    """Return messages per second; None where no time passed."""
    if len(samples) < 2 or samples[-1].at_ms <= samples[0].at_ms:
        return None
    seconds = (samples[-1].at_ms - samples[0].at_ms) / 1000
    return (samples[-1].consumed - samples[0].consumed) / seconds


def p95(samples: Iterable[DrillSample]) -> float | None:
    """Return the 95th percentile of the query times, in seconds; None without queries."""
    taken = sorted(seconds for sample in samples for seconds in sample.query_s)
    return taken[math.ceil(0.95 * len(taken)) - 1] if taken else None


def evidence(phases: Mapping[Phase, Sequence[DrillSample]], lengths: Lengths) -> tuple[DrillObservation, ...]:
    """Return what the drill shows, in the order of its phases."""
    outage = phases.get(Phase.OUTAGE, ())
    least = least_commits(outage) if outage else 0
    gained = outage[-1].only_servers - outage[0].only_servers if outage else 0
    past = f"{counted(gained, 'segment was', 'segments were')} committed past the deep store"
    return (
        _consumption(phases, lengths),
        DrillObservation(
            "commits",
            least >= lengths.commits,
            f"every partition committed {least} times or more while the store was away",
            least,
        ),
        DrillObservation(
            "bypass", gained > 0, past if gained else f"{past}: was the deep store unwritable at all?", gained
        ),
        _downloads(phases.get(Phase.DOWNLOADS, ())),
        _queries(phases),
        _backfill(phases.get(Phase.BACKFILL, ())),
    )


def _consumption(phases: Mapping[Phase, Sequence[DrillSample]], lengths: Lengths) -> DrillObservation:
    before, during = rate(phases.get(Phase.BEFORE, ())), rate(phases.get(Phase.OUTAGE, ()))
    if not before or during is None:
        return DrillObservation(
            "ingestion", False, "nothing was consumed before the outage, or nothing was measured"
        )
    ratio = during / before
    text = f"{during:,.0f} messages/s in the outage, {before:,.0f} before: ratio {ratio:.2f}"
    waited = [s.backlog for p in (Phase.BEFORE, Phase.OUTAGE) for s in phases.get(p, ())]
    if not all(waited):
        # Without a backlog the producer sets the rate, and the ratio says nothing about Pinot.
        return DrillObservation(
            "ingestion", None, f"{text}; the backlog was empty at times, so this proves little", ratio
        )
    return DrillObservation("ingestion", ratio >= lengths.ratio, text, ratio)


def _downloads(samples: Sequence[DrillSample]) -> DrillObservation:
    if (count := downloaded(samples)) is None:
        return DrillObservation("peer downloads", None, "not measured")
    return DrillObservation("peer downloads", count > 0, f"{plural(count, 'segment')} came from peers", count)


def _queries(phases: Mapping[Phase, Sequence[DrillSample]]) -> DrillObservation:
    times = {phase: p95(samples) for phase, samples in phases.items()}
    text = ", ".join(
        f"{phase} {seconds * 1000:.0f} ms" for phase, seconds in times.items() if seconds is not None
    )
    return DrillObservation("queries", None, f"95th percentile: {text}" if text else "not measured")


def _backfill(samples: Sequence[DrillSample]) -> DrillObservation:
    if not samples:
        return DrillObservation("back-fill", False, "it was not reached")
    seconds = (samples[-1].at_ms - samples[0].at_ms) / 1000
    left = samples[-1].only_servers
    text = f"{samples[0].only_servers - left} segments in {seconds:.0f} s, {left} left"
    return DrillObservation("back-fill", left == 0, text, left)


POLL_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Drill:
    """Runs a drill on one table.

    :ivar break_store: makes the deep store unwritable, and returns once it is.
    :ivar mend_store: undoes that; always called, also where `break_store` failed half-way.
    :ivar query: sends one query of the table, which the drill times.
    :ivar repair: of the same table; uploads what only servers have.
    :ivar load_from_peers: makes a server load segments from others (a new disk, say); None skips that phase.
    :ivar peer_downloads: returns a counter of such loads; None where it cannot be read.
    """

    read: Reader
    break_store: Callable[[], None]
    mend_store: Callable[[], None]
    query: Callable[[], object]
    repair: Repair
    load_from_peers: Callable[[], None] | None = None
    peer_downloads: Callable[[], int | None] = lambda: None
    lengths: Lengths = USUAL_LENGTHS
    tell: Tell = lambda _: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self) -> tuple[DrillObservation, ...]:
        """Run all phases and return what they show.

        :raises PinotAssetsError: the table cannot be read when a phase begins, or a given command fails.
        """
        phases = {Phase.BEFORE: self._phase(Phase.BEFORE)}
        try:
            self.break_store()
            phases[Phase.OUTAGE] = self._phase(Phase.OUTAGE)
            if self.load_from_peers is not None:
                self.load_from_peers()
                phases[Phase.DOWNLOADS] = self._phase(Phase.DOWNLOADS)
        finally:
            with held_off():
                self.mend_store()
        phases[Phase.BACKFILL] = self._phase(Phase.BACKFILL, self.repair.round)
        return evidence(phases, self.lengths)

    def _phase(self, phase: Phase, work: Callable[[], object] = lambda: None) -> list[DrillSample]:
        self.tell(f"{phase}: begins")
        samples = [self._sample()]
        while not is_over(phase, samples, self.lengths):
            work()
            self.sleep(POLL_S)
            try:
                samples.append(self._sample())
            except PinotError as error:
                self.tell(f"{phase}: the table could not be read just now: {error.what}")
        last = samples[-1]
        self.tell(
            f"{phase}: ended; {plural(last.consumed, 'message')}, "
            f"{plural(last.only_servers, 'segment')} only on servers"
        )
        return samples

    def _sample(self) -> DrillSample:
        began = self.clock()
        try:
            self.query()
            taken: tuple[float, ...] = (self.clock() - began,)
        except PinotAssetsError as error:
            self.tell(f"a query failed: {error.what}")
            taken = ()
        return sample_of(self.read(), taken, self.peer_downloads())


def drill_values(observations: Sequence[DrillObservation]) -> Mapping[str, Mapping[str, object]]:
    """Return the results as JSON values."""
    return {one.name: {"passed": one.passed, "text": one.text, "value": one.value} for one in observations}


COMMAND_S: Final = 300.0


def runs(command: str) -> Callable[[], None]:
    """Return a function that runs the command without a shell, and raises `PinotAssetsError` if it fails.

    The command is checked now: the drill must not break a store that no existing command can repair.

    :raises PinotAssetsError: the command cannot be parsed, is empty, or no program has its name.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise PinotAssetsError("a command of the drill cannot be read", why=str(error)) from None
    if not words:
        raise PinotAssetsError("an empty command cannot make a deep store unwritable or undo it")
    if shutil.which(words[0]) is None:
        raise PinotAssetsError(
            f"there is no command {words[0]}", hint="write a command line of a shell as sh -c '…'"
        )

    def run() -> None:
        try:
            run_child(words, stdout=None, stderr=None, timeout=COMMAND_S).check_returncode()
        except (OSError, subprocess.SubprocessError) as error:
            # Their own text repeats the whole command, which may hold a secret.
            raise PinotAssetsError(f"the command {words[0]} failed", why=_reason(error)) from None

    return run


def _reason(error: OSError | subprocess.SubprocessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit status {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it had not ended after {COMMAND_S:.0f} s"
    return getattr(error, "strerror", None) or type(error).__name__
