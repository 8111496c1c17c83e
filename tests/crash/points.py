"""One crash point: bring a table there, kill its driver, give triggers until quiet, look at everything."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from crash.gate import Fate, Point, fates_of
from crash.scenarios import SCENARIOS, Lane, Round, start
from crash.table import WAITS, open_table
from crash.watch import Phase

from pinot_assets.session.stores.session_store import KEPT_SESSIONS
from pinot_assets.settings.local_stack import StackState

ROUNDS = 20
"""Changes of one table before a new one takes over: an old one's listings grow slow."""

TRIES = 3
_ELSEWHERE = "other effects than recorded"


@dataclass(frozen=True)
class Verdict:
    """What became of one point.

    :ivar problems: all that was not as it must be; empty when the point was recovered.
    :ivar answers: how many answers of brokers were judged, and how many of them were mixed.
    :ivar triggers: how many it took until quiet.
    :ivar gaps: how many brokers were seen in the gap of a revert.
    """

    name: str
    problems: tuple[str, ...]
    answers: int
    mixed: int
    triggers: int
    seconds: float
    story: tuple[str, ...] = field(default=())
    gaps: int = 0

    @property
    def strayed(self) -> bool:
        """Whether nothing is wrong but that another effect was struck."""
        return bool(self.problems) and all(problem.startswith(_ELSEWHERE) for problem in self.problems)


def points_of(effects: Sequence[str]) -> list[Point]:
    """Every way in which a run with these effects can go wrong."""
    counts: Counter[str] = Counter()
    points = []
    for effect in effects:
        counts[effect] += 1
        points += [Point(effect, counts[effect], fate) for fate in fates_of(effect)]
    return points


class Course:
    """One scenario in one mode, on tables of a running stack; close it at the end.

    :ivar effects: those of the undisturbed run, once recorded.
    """

    def __init__(self, stack: StackState, mode: str, scenario: str, folder: Path) -> None:
        self.mode, self.scenario = mode, scenario
        self._prepare = SCENARIOS[scenario].prepare
        self._stack, self._folder = stack, folder
        self._table = ExitStack()
        self._lane: Lane | None = None
        self.effects: tuple[str, ...] = ()

    def __enter__(self) -> Course:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()

    def record(self) -> tuple[str, ...]:
        """Let one run go its way and write down its effects.

        :raises AssertionError: even that did not end as it should.
        """
        lane, round_ = self._prepared()
        phase = lane.table.watch.start((round_.before, round_.after), gap=round_.gap)
        lane.table.run(round_.step, None, round_.failing)
        self.effects = tuple(lane.table.gate.effects)
        self._settle(lane, round_)
        problems = [*self._problems(lane, round_, phase)]
        assert not problems, f"{self.mode}/{self.scenario} undisturbed: {problems}"
        return self.effects

    def try_point(self, point: Point) -> Verdict:
        """Go through one round with that point; once more, where the run had other effects than recorded.

        Up to 0.11 Pinot lists deleted segments for some seconds more, and a switch that meets them takes a
        forced start on its way: its number then names another effect than the one that was to be struck.
        """
        for _ in range(TRIES - 1):
            verdict = self._try(point)
            if not verdict.strayed:
                return verdict
        return self._try(point)

    def _try(self, point: Point) -> Verdict:
        name, began = f"{self.mode}/{self.scenario}/{point}", time.monotonic()
        story: list[str] = []
        phase, problems, triggers = Phase(ways=()), list[str](), 0
        try:
            lane, round_ = self._prepared()
            phase = lane.table.watch.start((round_.before, round_.after), gap=round_.gap)
            problems += self._strike(lane, round_, point, story)
            triggers = self._settle(lane, round_, point, story)
            problems += self._problems(lane, round_, phase)
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")
        if problems:
            self._drop()
        return Verdict(
            name=name,
            problems=tuple(problems),
            answers=phase.answers,
            mixed=len(phase.mixed),
            triggers=triggers,
            seconds=round(time.monotonic() - began, 1),
            story=tuple(story),
            gaps=len(phase.gaps),
        )

    def _strike(self, lane: Lane, round_: Round, point: Point, story: list[str]) -> Iterator[str]:
        answer = lane.table.run(round_.step, point, round_.failing)
        story.append(f"{answer.said}: {answer.text}")
        gate = lane.table.gate
        if not gate.struck_after:
            yield f"{_ELSEWHERE}: it never came to {point.effect} #{point.number}"
            return
        if (answer.said == "KILLED") != (point.fate is not Fate.LOST):
            yield f"the run was to die {point.fate} and said {answer.said}"
        here = _index(self.effects, point)
        if gate.struck_after != self.effects[: here + 1]:
            yield f"{_ELSEWHERE}: {gate.struck_after}, recorded {self.effects[: here + 1]}"

    def _settle(
        self, lane: Lane, round_: Round, point: Point | None = None, story: list[str] | None = None
    ) -> int:
        table, story = lane.table, story if story is not None else []
        answers = table.until_quiet()
        if point is not None and point.fate is Fate.LATE:
            table.gate.land()
            if not table.gate.wait_landed(WAITS.pinot_write + 60):
                raise AssertionError("the late effect never landed")
            answers += table.until_quiet()
        if round_.step == "rollback" and table.shown_by(table.stack.broker_urls[0]) == round_.before:
            answers.append(table.run("rollback"))  # it died before it was one; who asked for it asks again
            answers += table.until_quiet()
        story += [f"{answer.said}: {answer.text}" for answer in answers]
        if not answers[-1].quiet:
            raise AssertionError(f"not quiet after {len(answers)} triggers: {answers[-1]}")
        return len(answers)

    def _problems(self, lane: Lane, round_: Round, phase: Phase) -> Iterator[str]:
        yield from lane.table.troubles(round_.after)
        yield from phase.mixed
        if round_.step != "rollback":  # a revert deletes what a query may be on its way to
            yield from (f"{count} queries failed: {error}" for error, count in phase.errors.items())
        if phase.answers == 0:
            yield "no query was answered all the while"
        lane.over(round_)

    def _prepared(self) -> tuple[Lane, Round]:
        """A table on the way to the point; on a busy machine the way may take a second try."""
        try:
            lane = self._fresh_lane()
            return lane, self._prepare(lane)
        except Exception:
            self._drop()
            lane = self._fresh_lane()
            return lane, self._prepare(lane)

    def _fresh_lane(self) -> Lane:
        if self._lane is None or self._lane.number >= ROUNDS or _has_old_sessions(self._lane):
            self._drop()
            table = self._table.enter_context(open_table(self._stack, self.mode, self._folder))
            self._lane = Lane(table)
            start(self._lane)
        return self._lane

    def _drop(self) -> None:
        self._lane = None
        self._table.close()


def _has_old_sessions(lane: Lane) -> bool:
    """Whether a killed run left a node for the next one to delete: an effect more than was recorded."""
    return len(lane.table.store.session_nodes()) > KEPT_SESSIONS


def _index(effects: Sequence[str], point: Point) -> int:
    places = [n for n, effect in enumerate(effects) if effect == point.effect]
    return places[point.number - 1]
