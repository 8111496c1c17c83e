"""Lives in which the model found something wrong, in their shortest form."""

from __future__ import annotations

import pytest
from model.world.ending import settle
from model.world.process import Kind, Trouble
from model.world.specs import spec_of
from model.world.table import ModelTable, run


def make_table(mode: str) -> ModelTable:
    return ModelTable(spec_of, mode)


def assert_right(table: ModelTable) -> None:
    if not table.truth.violations:
        settle(table)
    assert not table.truth.violations, "\n".join([*table.story, "", *table.truth.violations])


def test_a_driver_that_sleeps_before_its_build_leaves_it_to_the_next_owner() -> None:
    table = make_table("sync")
    table.source.write("A", b"A1")
    sleeper = table.start(run, [Trouble("zk set cp1", Kind.STOPS_AFTER)])
    table.expire()
    table.start(run)
    table.go_on(sleeper)
    assert not [effect for effect in sleeper.process.effects if effect.startswith("build")]
    assert_right(table)


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_a_start_that_wakes_after_its_segments_were_replaced_stops_nobody(mode: str) -> None:
    table = make_table(mode)
    table.source.write("A", b"A1")
    sleeper = table.start(run, [Trouble("start_", Kind.STOPS_BEFORE)])
    table.expire()
    table.start(run)
    table.source.write("A", b"A2")
    table.start(run)
    table.clean_up()  # Pinot forgets the first switch, which replaced nothing
    table.go_on(sleeper)
    assert len(table.truth.belated) == 1
    table.source.write("A", b"A3")
    assert_right(table)
