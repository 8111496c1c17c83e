"""How much goes into one upload (rule R2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.pinot import PushMode, PushReport
from pinot_assets.session.lineage import switch
from pinot_assets.session.lineage.switch import MOST, SHARE, BatchSizer
from pinot_assets.snapshot.receipt import Output

MB = 1024**2
FRESH = BatchSizer()


def outputs(*sizes: int) -> list[Output]:
    return [Output(f"s{n}", 1, 1, "", size, "", "") for n, size in enumerate(sizes)]


def after(
    outputs: Sequence[Output], seconds: float, deadline: float, before: BatchSizer = FRESH
) -> BatchSizer:
    report = PushReport(tuple(o.segment for o in outputs), (), PushMode.METADATA, None, 1, seconds)
    return before.after(outputs, report, deadline)


def pushed_at(
    cost: Callable[[list[Output]], float], sizes: list[int], deadline: float = 20.0
) -> list[tuple[int, float]]:
    """Batches of a push against a store of that cost: size and seconds of each."""
    left, pace, batches = outputs(*sizes), BatchSizer(), []
    while left:
        batch = pace.next_of(left)
        seconds = cost(list(batch))
        batches.append((len(batch), seconds))
        pace, left = after(batch, seconds, deadline, pace), left[len(batch) :]
    return batches


def test_the_first_goes_alone() -> None:
    assert len(BatchSizer().next_of(outputs(1, 1, 1))) == 1


def test_small_segments_soon_go_by_hundreds() -> None:
    batches = pushed_at(lambda batch: 0.04 + 0.007 * len(batch), [10_000] * 6150)
    assert [count for count, _ in batches[:2]] == [1, 105]
    assert {count for count, _ in batches[2:]} == {464, 465}
    assert len(batches) == 15


def test_the_cost_of_a_call_is_not_counted_for_each_segment() -> None:
    """A controller of Pinot 1.5.1 on a small machine: 2,000 segments are seven writes of its ideal state."""
    batches = pushed_at(lambda batch: 0.09 + 0.0094 * len(batch), [600] * 2000)
    assert [count for count, _ in batches] == [1, 50, 488, 487, 487, 487]


def test_many_small_ones_after_a_large_first_one() -> None:
    """Its seconds were those of its tar: what a batch takes must not be taken for that of a call."""
    large = after(outputs(70 * MB), 0.8, 20.0)
    small = after(outputs(*[1000] * 6), 0.81, 20.0, large)
    assert small.segments <= 2 * 6 * 5 / 0.81
    assert after(outputs(*[1000] * 6), 0.3, 20.0, large).segments == int(6 * 5 / 0.3)


def test_a_call_that_takes_too_long_by_itself_goes_one_at_a_time() -> None:
    slow = after(outputs(1), 8.0, 20.0)
    assert after(outputs(1, 1), 12.0, 20.0, slow).segments == 1


@pytest.mark.parametrize(("left", "sizes"), [(500, [500]), (501, [251, 250]), (1097, [366, 366, 365])])
def test_no_small_remainder_pays_for_a_call_of_its_own(left: int, sizes: list[int]) -> None:
    found, pace = [], BatchSizer(segments=9999)
    while left:
        found.append(len(pace.next_of(outputs(*[1] * left))))
        left -= found[-1]
    assert found == sizes


def test_large_segments_go_as_many_as_are_copied_in_time() -> None:
    rate = 100 * MB
    batches = pushed_at(lambda batch: 0.1 + sum(o.tar_bytes for o in batch) / rate, [70 * MB] * 60)
    assert max(seconds for _, seconds in batches) <= 20 * SHARE * 1.3
    assert max(count for count, _ in batches) >= 5


def test_a_large_one_after_small_ones_does_not_go_with_them() -> None:
    pace = BatchSizer(segments=100, bytes=10 * MB)
    assert len(pace.next_of(outputs(4 * MB, 4 * MB, 200 * MB, 1))) == 2
    assert len(pace.next_of(outputs(200 * MB, 1))) == 1


def test_a_store_that_gets_slow_is_given_less() -> None:
    batch = outputs(*[MB] * 400)
    assert after(batch, 15.0, 20.0).segments == 133


def test_no_more_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(BatchSizer(segments=9999).next_of(outputs(*[1] * 2000))) == MOST
    monkeypatch.setattr(switch, "MOST", 3)
    assert len(BatchSizer(segments=9999).next_of(outputs(*[1] * 20))) == 3


@given(
    st.lists(st.integers(0, 500 * MB), min_size=1, max_size=50),
    st.floats(0, 5),
    st.floats(1e-9, 1e-7),
    st.floats(0.5, 60),
)
def test_everything_is_pushed_whatever_it_costs(
    sizes: list[int], per_call: float, per_byte: float, deadline: float
) -> None:
    batches = pushed_at(lambda batch: per_call + per_byte * sum(o.tar_bytes for o in batch), sizes, deadline)
    assert sum(count for count, _ in batches) == len(sizes)


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_a_clock_that_stands_still(seconds: float) -> None:
    assert len(after(outputs(0), seconds, 20.0).next_of(outputs(*[0] * 1000))) == MOST


def test_what_was_there_already_says_nothing_of_the_pace() -> None:
    before = BatchSizer(50, 10 * MB)
    report = PushReport((), ("s0", "s1"), None, None, 0, 0.01)
    assert before.after(outputs(1, 1), report, 20.0) == before
