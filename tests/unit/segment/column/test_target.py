from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import pytest

from pinot_assets.segment.column.target import NEWEST, OLDEST, REFERENCE, TARGETS, target_for


@pytest.mark.parametrize(
    ("release", "taken"),
    [
        ("0.11", "0.11"),
        ("0.11.0", "0.11"),
        ("0.12.1", "0.11"),
        ("1.0", "0.11"),
        ("1.1", "1.1"),
        ("1.4.0", "1.3"),
        ("1.5.1", "1.5"),
        ("1.5.9", "1.5"),
        ("1.6.0-SNAPSHOT-210c2951e7", "1.6"),
        ("1.10", "1.6"),
        ("2.0", "1.6"),
    ],
)
def test_a_release_between_two_takes_the_lower(release: str, taken: str) -> None:
    assert target_for(release).release == taken


@pytest.mark.parametrize("text", ["", "1", "new", "1.x", ".5", "v1.5", "１.５", "99999.1"])
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        target_for(text)


@pytest.mark.parametrize("text", ["0.10", "0.2.0"])
def test_servers_before_the_oldest_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"older than 0\.11"):
        target_for(text)


def test_targets_are_in_order_and_each_one_adds_something() -> None:
    assert [one.number for one in TARGETS] == sorted({one.number for one in TARGETS})
    assert (TARGETS[0], TARGETS[-1]) == (OLDEST, NEWEST)
    switches = [one.name for one in fields(NEWEST) if one.name != "release"]
    for lower, higher in pairwise(TARGETS):
        before, after = ({name for name in switches if getattr(one, name)} for one in (lower, higher))
        assert before < after
    assert all(getattr(NEWEST, name) for name in switches)
    assert REFERENCE in {one.release for one in TARGETS}
