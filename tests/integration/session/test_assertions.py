"""Assertions by SQL on staged segments: before the switch, past what lineage hides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pinot_assets.errors import PinotUnreachable, SnapshotIncomplete, SpecError
from pinot_assets.pinot.client.data_table import DataTable
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import State
from pinot_assets.snapshot.receipt import Output

Make = Callable[..., Any]


def rows_named(world: Any, *bad: str) -> Callable[[str, Sequence[Output]], DataTable]:
    """A server's answer to `COUNT(*) … WHERE v = 'bad'`, by what the segments hold; else all rows."""

    def answer(sql: str, segments: Sequence[Output]) -> DataTable:
        values = [value for output in segments for value in world.builder.rows[output.segment]]
        counted = sum(value in bad for value in values) if "WHERE" in sql else len(values)
        return DataTable((("count(*)", "LONG"),), ((counted,),), {}, len(segments), len(values), False)

    return answer


def asking(world: Any, sql: str, expect: str, severity: str = "error") -> None:
    world.audit_block.append({"sql": sql.format(world.table), "expect": expect, "severity": severity})


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_a_bad_value_keeps_the_switch_shut_until_its_file_is_repaired(make_world: Make, mode: str) -> None:
    world = make_world(mode)
    world.pinot.answer = rows_named(world, "bad")
    asking(world, "SELECT COUNT(*) FROM {} WHERE v = 'bad'", "= 0")
    world.write("F1", "F2", F3="bad")
    world.run()
    assert world.visible == []
    session = world.read_session()
    assert (session.state, session.audit.passed, session.audit.waits) == (State.SWITCH, False, True)
    assert "COUNT(*) is 1" in session.last_error
    with pytest.raises(SnapshotIncomplete, match=r"the gate of \w+ is shut") as shut:
        world.publish()
    assert "change the assertion" in str(shut.value.hint)

    world.write(F3="good")
    world.run()
    assert world.visible == ["F1", "F2", "good"]
    assert world.built == ["F3"]  # what was good is not built again
    assert world.shown == [(), ("F1", "F2", "good")]
    world.assert_settled()


def test_settings_by_which_no_server_can_be_asked_are_refused_before_anything_is_built(
    make_world: Make,
) -> None:
    world = make_world("sync")
    world.pinot.unaskable = SpecError("no certificate is verified", hint="PINOT_GRPC_CA_BUNDLE")
    world.write("F1")
    world.run()  # nothing is asked of servers yet
    asking(world, "SELECT COUNT(*) FROM {}", "> 0")
    world.write("F2")
    with pytest.raises(SpecError, match="no certificate is verified"):
        world.trigger()
    assert (world.builds, world.visible) == (1, ["F1"])
    world.pinot.unaskable = None
    world.run()
    assert world.visible == ["F1", "F2"]


def test_nothing_changes_while_nobody_repairs_anything(make_world: Make) -> None:
    world = make_world("sync")
    world.pinot.answer = rows_named(world, "bad")
    asking(world, "SELECT COUNT(*) FROM {} WHERE v = 'bad'", "= 0")
    world.write(F1="bad")
    world.run()
    for _ in range(5):
        world.run()
    assert world.builds == 1
    assert world.visible == []


def test_a_looser_assertion_lets_the_staged_segments_through(make_world: Make) -> None:
    world = make_world("sync")
    world.pinot.answer = rows_named(world, "bad")
    asking(world, "SELECT COUNT(*) FROM {} WHERE v = 'bad'", "= 0")
    world.write("F1", F2="bad")
    world.run()
    world.audit_block[0]["expect"] = "<= 1"
    world.run()
    assert world.builds == 1
    assert world.visible == ["F1", "bad"]


def test_a_warning_is_shown_and_the_switch_happens(make_world: Make) -> None:
    world = make_world("sync")
    world.pinot.answer = rows_named(world, "bad")
    asking(world, "SELECT COUNT(*) FROM {} WHERE v = 'bad'", "= 0", "warn")
    world.write("F1", F2="bad")
    assert world.trigger().result is TriggerResult.STAGED
    _, findings = world.audit()
    [finding] = [f for f in findings if not f.passed]
    assert (finding.blocks, finding.name.startswith("sql: SELECT COUNT(*)")) == (False, True)
    world.publish()
    assert world.visible == ["F1", "bad"]


def test_a_table_that_shrinks_too_much_is_not_switched(make_world: Make) -> None:
    world = make_world("sync")
    world.pinot.answer = rows_named(world)
    asking(world, "SELECT COUNT(*) FROM {}", "after >= 0.9 * live")
    world.write(F1="a b c d e", F2="f g h i j")
    world.run()  # nothing is live yet
    assert len(world.visible) == 10
    world.write(F2="f g")
    world.run()
    assert len(world.visible) == 10
    assert "COUNT(*) is 7, live 10" in world.read_session().last_error
    world.write(F2="f g h i")
    world.run()
    assert len(world.visible) == 9


def test_a_file_that_goes_counts_too(make_world: Make) -> None:
    world = make_world("sync")
    world.pinot.answer = rows_named(world)
    asking(world, "SELECT COUNT(*) FROM {}", "after >= 0.9 * live")
    world.write("F1", "F2")
    world.run()
    world.remove("F2")
    world.run()
    assert world.visible == ["F1", "F2"]


def test_a_way_back_is_not_barred(make_world: Make) -> None:
    world = make_world("swap")
    world.pinot.answer = rows_named(world, "bad")
    world.write(F1="bad")
    world.run()
    world.write(F1="good")
    world.run()
    asking(world, "SELECT COUNT(*) FROM {} WHERE v = 'bad'", "= 0")
    world.rollback()
    assert world.visible == ["bad"]


def test_a_server_that_does_not_answer_keeps_the_gate_shut_and_costs_no_retry(make_world: Make) -> None:
    world = make_world("sync")
    world.pinot.answer = rows_named(world)
    asking(world, "SELECT COUNT(*) FROM {}", "> 0")
    world.write("F1")

    def away(sql: str, segments: Sequence[Output]) -> DataTable:
        raise PinotUnreachable("the server at 127.0.0.1:1 did not answer by gRPC", why="UNAVAILABLE")

    world.pinot.answer, good = away, world.pinot.answer
    world.run()
    assert world.visible == []
    assert "127.0.0.1:1 did not answer" in world.read_session().last_error
    world.pinot.answer = good
    world.run()
    assert world.visible == ["F1"]
    assert world.builds == 1
    assert world.read_sessions()[-1].retry_count == 0
