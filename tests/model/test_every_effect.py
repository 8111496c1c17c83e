"""One fixed life of a table, again and again, with one trouble at each of its effects in turn.

What `test_session_model.py` finds by luck is visited here one by one: a switch that adds, rewrites and
removes, and a driver that was given up for dead and wakes.
"""

from __future__ import annotations

import pytest
from model.world.ending import settle
from model.world.process import Kind, Trouble
from model.world.specs import spec_of
from model.world.table import MODES, ModelTable, clear, run

from pinot_assets.errors import SessionError


def _live(mode: str, troubles: list[Trouble]) -> tuple[ModelTable, int]:
    """The life; the table at its end, and how many effects its troubled run had."""
    table = ModelTable(spec_of, mode)
    for name in ("A", "B", "C"):
        table.source.write(name, f"{name}1a {name}1b".encode())
    table.start(run)
    table.source.write("A", b"A2a")
    table.source.remove("B")
    table.source.write("D", b"D2a D2b")
    troubled = table.start(run, troubles).process
    table.expire()
    table.start(run)  # another one, while the first may stand still
    for stopped in table.stopped:
        table.go_on(stopped)
    effects = len(troubled.effects)
    table.source.write("A", b"A3a")
    table.start(run)
    settle(table)
    return table, effects


# What can be lost and come twice is the same in all modes; what stays half done is not. Whoever stops before
# an effect stands as after the one before.
HALF_DONE = {Kind.DIES_AFTER, Kind.STOPS_AFTER, Kind.HALF, Kind.LATE}
CASES = [(m, k) for m in sorted(MODES) for k in sorted(Kind) if m == "sync" or k in HALF_DONE]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("mode", "kind"), CASES)
def test_whatever_happens_at_an_effect(mode: str, kind: Kind) -> None:
    _, effects = _live(mode, [])
    assert effects > 15
    wrong = []
    for number in range(1, effects + 1):
        table, _ = _live(mode, [Trouble(number, kind)])
        if table.truth.violations:
            wrong.append("\n".join([*table.story, "", *table.truth.violations]))
    assert not wrong, f"{len(wrong)} of {effects}, the first:\n{wrong[0]}"


def test_a_driver_that_wakes_after_its_session_was_cleared_says_so() -> None:
    """It had kept a built file of an earlier attempt; whoever cleared the session deleted its receipt."""
    table = ModelTable(spec_of, "sync")
    table.source.write("A", b"A1")
    table.source.write("B", b"B1")
    table.start(run, [Trouble("build A", Kind.DIES_AFTER)])
    table.expire()
    slow = table.start(run, [Trouble("build B", Kind.STOPS_BEFORE)])
    table.expire()
    table.start(clear)
    table.go_on(slow)
    assert isinstance(slow.process.error, SessionError)
    assert "without a valid receipt" in str(slow.process.error)
    settle(table)
    assert not table.truth.violations
