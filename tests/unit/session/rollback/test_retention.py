"""How many snapshots are asked for, by number and by age."""

from __future__ import annotations

import pytest

from pinot_assets.session.rollback.retention import SnapshotRetention
from pinot_assets.session.stores.stored_snapshots import SnapshotHeader
from pinot_assets.snapshot.manifest import SnapshotRef

DAY_MS = 24 * 3_600_000
NOW = 100 * DAY_MS


def header(seq: int, days: float, twin: str = "") -> SnapshotHeader:
    return SnapshotHeader(SnapshotRef(f"snapshots/{seq}-{twin}", "x"), seq, int(NOW - days * DAY_MS))


KEPT = [header(5, 0), header(4, 1), header(3, 5), header(2, 10), header(1, 20)]


@pytest.mark.parametrize(
    ("number", "days", "expired"),
    [
        (None, None, []),
        (2, None, [3, 2, 1]),
        (9, None, []),
        (None, 7, [2, 1]),
        (None, 1, [3, 2, 1]),
        (2, 7, [2, 1]),
        (4, 1, [1]),
    ],
)
def test_what_neither_number_nor_days_ask_for_goes(
    number: int | None, days: int | None, expired: list[int]
) -> None:
    assert [h.seq for h in SnapshotRetention(number, days).expired(KEPT, (), NOW)] == expired


def test_what_is_needed_stays_however_old() -> None:
    assert [h.seq for h in SnapshotRetention(1, None).expired(KEPT, {KEPT[4].ref, KEPT[0].ref}, NOW)] == [
        4,
        3,
        2,
    ]


def test_a_second_one_of_the_same_number_takes_no_place_of_another() -> None:
    """A driver that died in its last step left it."""
    kept = [header(5, 0, "a"), header(5, 0, "b"), *KEPT[1:]]
    assert [h.seq for h in SnapshotRetention(2, None).expired(kept, (), NOW)] == [3, 2, 1]
