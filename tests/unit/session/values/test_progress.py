from __future__ import annotations

import pytest

from pinot_assets.session.values.progress import Pace
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source import Fingerprint


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def receipt(ordinal: int, rows: int) -> Receipt:
    return Receipt(f"file:///in/{ordinal}", ordinal, 0, Fingerprint(1, 1), "", rows, 0, (), 0.1, "h/1")


def test_time_left_goes_by_bytes_and_not_by_files(clock: Clock) -> None:
    pace = Pace({0: 900, 1: 50, 2: 50}, clock)
    assert str(pace) == "0 of 3 files, 0 rows"
    clock.now += 90
    pace.built(receipt(0, 9000))
    assert pace.left_s == pytest.approx(10)
    assert str(pace) == "1 of 3 files, 9,000 rows, 100 rows/s, about 10 s left"


def test_rows_of_a_file_that_is_not_through_count(clock: Clock) -> None:
    pace = Pace({0: 100, 1: 900}, clock)
    clock.now += 10
    pace.built(receipt(0, 1000))
    pace.moving(4000)
    clock.now += 40
    assert pace.rows == 5000
    assert pace.rows_per_s == 100
    assert pace.left_s == pytest.approx(50)
    pace.built(receipt(1, 9000))
    assert pace.rows == 10_000


def test_a_single_long_file_shows_its_rows_before_it_is_through(clock: Clock) -> None:
    pace = Pace({0: 100}, clock)
    clock.now += 20
    pace.moving(2_000_000)
    assert str(pace) == "0 of 1 file, 2,000,000 rows, 100,000 rows/s"


def test_a_failed_file_is_through_and_says_nothing_of_the_speed(clock: Clock) -> None:
    pace = Pace({0: 500, 1: 500}, clock)
    clock.now += 10
    pace.built(Failure("file:///in/0", 0, 0, "UNREADABLE", "torn"))
    assert str(pace) == "0 of 2 files, 1 failed, 0 rows"
    pace.built(receipt(1, 10))
    assert str(pace) == "1 of 2 files, 1 failed, 10 rows, 1 rows/s"


def test_rows_of_a_file_that_fails_were_read(clock: Clock) -> None:
    pace = Pace({0: 900, 1: 100}, clock)
    clock.now += 10
    pace.moving(1_000_000)
    pace.built(Failure("file:///in/0", 0, 0, "UNREADABLE", "torn"))
    assert (pace.rows, pace.rows_per_s) == (1_000_000, 100_000)
    clock.now += 10
    pace.moving(200_000)  # of the other file
    assert pace.rows >= 1_000_000
    before = pace.rows
    pace.moving(300_000)
    assert pace.rows == before + 100_000  # it goes on, and does not stand until it is where it was


def test_rows_of_a_changed_file_that_is_read_again_were_read(clock: Clock) -> None:
    pace = Pace({0: 900}, clock)
    told = []
    for rows in (100_000, 500_000, 10_000, 400_000, 600_000):
        clock.now += 15
        pace.moving(rows)
        told.append(pace.rows)
    assert told == sorted(told)
    assert 600_000 < told[-1] <= 500_000 + 600_000
    pace.built(receipt(0, 600_000))
    assert pace.rows == told[-1]


def test_a_file_that_fails_does_not_hasten_the_end(clock: Clock) -> None:
    """Time left goes by bytes: what was read of it says nothing of how wide the other files' rows are."""
    pace = Pace({0: 100, 1: 100, 2: 100}, clock)
    clock.now += 10
    pace.built(receipt(0, 1000))
    pace.moving(900)
    pace.built(Failure("file:///in/1", 1, 0, "UNREADABLE", "torn"))
    pace.moving(0)
    assert pace.left_s == pytest.approx(10 * 100 / 200)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(1, "1 s"), (119, "2 min"), (3600, "1 h 00 min"), (7380, "2 h 03 min")]
)
def test_durations_are_short(clock: Clock, seconds: float, shown: str) -> None:
    pace = Pace({0: 1, 1: 1}, clock)
    clock.now += seconds
    pace.built(receipt(0, 1))
    assert str(pace).endswith(f"about {shown} left")
