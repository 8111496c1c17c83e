"""Some points of the crash matrix (`make crash-matrix` goes through all): a real process, real servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from crash.gate import point_from
from crash.points import Course, Verdict

from pinot_assets.settings.local_stack import StackState

pytestmark = pytest.mark.integration

# Few are before an effect: then the same stands as after the effect before.
POINTS = {
    "sync/change": (
        "zk create lease, set pointer #1 after",
        "zk create lease, set pointer #1 lost",
        "zk set pointer, create session #1 after",
        "store PUT tar #2 after",
        "store PUT receipt #1 after",
        "store PUT receipt #2 late",
        "pinot startReplaceSegments #1 after",
        "pinot startReplaceSegments #1 lost",
        "pinot upload #3 late",
        "pinot endReplaceSegments #1 before",
        "pinot endReplaceSegments #1 after",
        "pinot endReplaceSegments #1 late",
    ),
    "append/change": (
        "pinot startReplaceSegments #1 late",
        "pinot upload #1 after",
        "pinot endReplaceSegments #1 lost",
        "zk set pointer, set session #1 lost",
    ),
    "swap/change": (
        "pinot startReplaceSegments #1 after",
        "pinot upload #2 lost",
        "pinot endReplaceSegments #1 after",
        "pinot rebuild routing #1 before",
        "store PUT snapshot #1 after",
        "zk set pointer, set session #1 before",
    ),
    "sync/retry": (
        "zk set session #1 after",
        "store PUT switch #1 lost",
        "zk delete lease, set pointer #1 before",
    ),
    "append/clear": ("pinot forced revertReplaceSegments #1 late",),
    "sync/clear": (
        "pinot forced revertReplaceSegments #1 after",
        "zk set pointer, set session #1 before",
        "store delete #2 before",
    ),
    "sync/rollback": (
        "zk set pointer, create session #1 after",
        "pinot revertReplaceSegments #1 after",
        "pinot revertReplaceSegments #1 lost",
        "zk set pointer, set session #1 before",
    ),
    "append-packed/change": (
        "store PUT batch receipt #1 after",
        "store PUT rows object #2 after",
        "store PUT plan #2 after",
        "zk set session #3 before",
        "store PUT receipt #1 after",
        "pinot endReplaceSegments #1 late",
    ),
    "sync-packed/change": (
        "store PUT member list #1 after",
        "store PUT plan #2 lost",
        "zk set session #3 before",
        "pinot endReplaceSegments #1 late",
    ),
    "swap-packed/retry": (
        "store PUT member list #1 after",
        "store PUT tar #1 after",
    ),
    "append/rebuild": (
        "store PUT receipt #1 after",
        "pinot endReplaceSegments #1 after",
        "pinot endReplaceSegments #1 late",
    ),
    "sync/rebuild": (
        "pinot upload #2 before",
        "zk set pointer, set session #1 before",
    ),
    "swap/again": (
        "pinot forced startReplaceSegments #1 before",
        "pinot forced startReplaceSegments #1 after",
    ),
}
LANES = 6


@pytest.fixture(scope="module")
def verdicts(
    stack_with_s3: StackState, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[dict[str, Future[Verdict]]]:
    """The points that are asked for, tried side by side: most of a point is waiting."""
    functions = (item for item in request.session.items if isinstance(item, pytest.Function))
    asked = {item.callspec.params["name"] for item in functions if "verdicts" in item.fixturenames}
    folder = tmp_path_factory.mktemp("crash")
    futures: dict[str, Future[Verdict]] = {}
    with ThreadPoolExecutor(LANES) as pool:
        for course, all_points in POINTS.items():
            points = [point for point in all_points if f"{course}/{point}" in asked]
            futures |= {f"{course}/{point}": Future() for point in points}
            pool.submit(_go_through, stack_with_s3, course, points, folder, futures)
        yield futures


def _go_through(
    stack: StackState, name: str, points: Sequence[str], folder: Path, futures: dict[str, Future[Verdict]]
) -> None:
    mode, _, scenario = name.partition("/")
    try:
        with Course(stack, mode, scenario, folder) as course:
            course.record()
            for point in points:
                futures[f"{name}/{point}"].set_result(course.try_point(point_from(point)))
    except BaseException as error:
        for point in points:
            future = futures[f"{name}/{point}"]
            if not future.done():
                future.set_exception(error)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [f"{course}/{point}" for course in POINTS for point in POINTS[course]])
def test_a_crash_is_recovered(verdicts: dict[str, Future[Verdict]], name: str) -> None:
    verdict = verdicts[name].result(timeout=590)
    assert verdict.problems == (), verdict.story
    assert verdict.answers > 0
