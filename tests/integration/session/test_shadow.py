"""Assertions that only a broker can answer: asked of a table for the audit alone, which then is gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fakes.pinot.staged import EMPTY

from pinot_assets.errors import LeaseLost
from pinot_assets.pinot import QueryResult
from pinot_assets.pinot.shadow_table import shadow_name, shadow_schema
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.snapshot.receipt import Output

Make = Callable[..., Any]

DISTINCT = "SELECT DISTINCTCOUNT(v) FROM {}"


@pytest.fixture
def make_asked(make_world: Make) -> Make:
    """A world whose brokers count the different values of what they route to, and of each first letter."""

    def make(mode: str) -> Any:
        world = make_world(mode)

        def answer(sql: str, segments: Sequence[Output]) -> QueryResult:
            values = {value for output in segments for value in world.builder.rows[output.segment]}
            if "GROUP BY" not in sql:
                return QueryResult(("d",), ("INT",), ((len(values),),), 1, 0)
            letters = sorted({value[0] for value in values})
            rows = tuple((sum(value[0] == letter for value in values), letter) for letter in letters)
            return QueryResult(("d", "l"), ("INT", "STRING"), rows, 1, 0)

        world.pinot.broker_answer = answer
        return world

    return make


def asking(world: Any, expect: str, sql: str = DISTINCT) -> None:
    world.audit_block.append({"sql": sql.format(world.table), "expect": expect, "via": "shadow"})


def leavings(world: Any) -> tuple[Any, Any]:
    """Config and schema of the shadow table."""
    name = shadow_name(world.table)
    return world.pinot.get_table_config(name), world.pinot.get_schema(name)


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_a_switch_with_too_few_values_is_held_back_until_its_file_is_repaired(
    make_asked: Make, mode: str
) -> None:
    world = make_asked(mode)
    asking(world, ">= 3")
    world.write(F1="a a a", F2="b")
    world.run()
    assert world.visible == []
    assert "DISTINCTCOUNT(v) is 2" in world.read_session().last_error
    assert leavings(world) == (None, None)
    world.write(F2="b c")
    world.run()
    assert world.visible == ["a", "a", "a", "b", "c"]
    assert world.built == ["F2"]
    assert leavings(world) == (None, None)
    world.assert_settled()


def test_what_will_be_seen_is_what_stays_and_what_comes(make_asked: Make) -> None:
    world = make_asked("sync")
    asking(world, "after >= live")
    asking(world, "staged <= 2")
    world.write(F1="a b c")
    world.run()  # three values are staged
    assert world.visible == []
    assert "DISTINCTCOUNT(v) is 3" in world.read_session().last_error
    world.write(F1="a b")
    world.run()
    world.write(F2="b c")
    world.run()
    assert world.visible == ["a", "b", "b", "c"]
    world.write(F2="b b")
    world.run()
    assert world.visible == ["a", "b", "b", "c"]
    assert "DISTINCTCOUNT(v) is 2, live 3" in world.read_session().last_error


def test_a_switch_that_only_removes_files_leaves_something_to_ask(make_asked: Make) -> None:
    world = make_asked("sync")
    asking(world, "after >= 2")
    asking(world, "staged >= 1")
    world.write(F1="a b", F2="c")
    world.run()
    world.remove("F2")
    world.run()
    assert world.visible == ["a", "b"]
    world.remove("F1")
    world.write(F3="d")
    world.run()
    assert world.visible == ["a", "b"]


def test_every_group_is_compared_with_its_own(make_asked: Make) -> None:
    world = make_asked("swap")
    asking(world, ">= live", "SELECT DISTINCTCOUNT(v), v FROM {} GROUP BY v")
    world.write(F1="a1 a2 b1")
    world.run()  # nothing is live yet
    world.write(F1="a1 a2 a3 c1")
    world.run()
    assert world.visible == ["a1", "a2", "b1"]
    assert "DISTINCTCOUNT(v) for b is 0, live 1" in world.read_session().last_error


def test_servers_are_asked_beside_it_and_findings_stand_in_the_specs_order(make_asked: Make) -> None:
    world = make_asked("sync")
    asking(world, "after > 0")
    count = f"SELECT COUNT(*) FROM {world.table}"
    world.audit_block.append({"sql": count, "expect": "= 2"})
    asking(world, "> 0")
    world.write("F1", "F2")
    assert world.trigger().result is TriggerResult.STAGED
    _, findings = world.audit()
    names = [f.name.partition(":")[0] for f in findings if f.name.startswith("sql")]
    assert names == ["sql via shadow", "sql", "sql via shadow"]
    assert all(f.passed for f in findings)
    assert world.pinot.calls.count("create_table") == 2  # the world's own, and one for both


def test_somebody_elses_segment_that_stays_cannot_be_asked_of_a_shadow(make_asked: Make) -> None:
    world = make_asked("sync")
    asking(world, "after > 0")
    world.pinot.push(world.table, [Output("theirs", 1, 1, "file:///t", 1, "", "")], staged=EMPTY)
    world.write("F1")
    world.run()
    assert world.visible == ["theirs"]
    assert (
        "1 segment that stays was not published by pinot-assets, first theirs"
        in world.read_session().last_error
    )
    assert leavings(world) == (None, None)


# --- whose table it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["table", "schema", "realtime"])
def test_a_users_table_of_that_name_is_never_touched(make_asked: Make, kind: str) -> None:
    world = make_asked("sync")
    asking(world, "> 0")
    name = shadow_name(world.table)
    if kind == "realtime":
        world.pinot.realtime[name] = {"tableName": f"{name}_REALTIME"}
    else:
        fields = [{"name": "other", "dataType": "INT"}]
        world.pinot.put_schema({"schemaName": name, "dimensionFieldSpecs": fields})
    if kind == "table":
        world.pinot.create_table({"tableName": name, "tableType": "OFFLINE", "metadata": {}})
    before = leavings(world)
    world.write("F1")
    world.run()
    world.run()
    assert f"{name} exists that no audit made" in world.read_session().last_error
    assert leavings(world) == before
    assert world.visible == []


@pytest.mark.parametrize("remove", ["trigger", "clear", "run"])
def test_a_schema_alone_goes_whatever_the_table_looks_like_by_now(make_asked: Make, remove: str) -> None:
    """A driver died between the two, and then the table spec got another column."""
    world = make_asked("sync")
    asking(world, "> 0")
    fields = [{"name": "that_went", "dataType": "INT"}]
    world.pinot.put_schema(shadow_schema({"dimensionFieldSpecs": fields}, world.table))
    world.write("F1")
    getattr(world, remove)()
    assert leavings(world) == (None, None)
    if remove == "run":
        assert world.visible == ["F1"]


# --- trouble -------------------------------------------------------------------------------------------


EFFECTS = ["put_schema", "create_table", "push", "query_broker", "delete_table", "delete_schema"]


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_driver_that_dies_leaves_nothing_for_long(make_asked: Make, when: str, effect: str) -> None:
    world = make_asked("sync")
    asking(world, "> 0")
    world.write("F1")
    assert world.trigger().result is TriggerResult.STAGED
    # A dead process cleans nothing up: whatever it would still do ends it again.
    getattr(world.pinot, when)(effect, world.die)
    for later in EFFECTS[EFFECTS.index(effect) + 1 :]:
        world.pinot.before(later, world.die)
    world.dies()
    world.pinot.forget_trouble()
    world.run()
    assert world.visible == ["F1"]
    assert leavings(world) == (None, None)


def test_the_next_trigger_removes_what_was_left_also_where_nothing_is_asserted_any_more(
    make_asked: Make,
) -> None:
    world = make_asked("sync")
    asking(world, "> 0")
    world.write("F1")
    world.trigger()
    world.pinot.before("delete_table", world.die)
    world.dies()
    assert leavings(world) != (None, None)
    world.audit_block.clear()
    world.trigger()
    assert leavings(world) == (None, None)
    assert any("which an audit had left, was deleted" in note for note in world.notes)


def test_clear_removes_it_too(make_asked: Make) -> None:
    world = make_asked("sync")
    asking(world, "> 0")
    world.write("F1")
    world.trigger()
    world.pinot.before("delete_table", world.die)
    world.dies()
    world.clear()
    assert leavings(world) == (None, None)


@pytest.mark.parametrize("effect", ["put_schema", "create_table", "delete_table", "delete_schema"])
def test_a_lost_answer_is_looked_up(make_asked: Make, effect: str) -> None:
    world = make_asked("sync")
    asking(world, "> 0")
    world.write("F1")
    world.trigger()
    world.pinot.lose_reply(effect)
    world.run()
    assert world.visible == ["F1"]
    assert leavings(world) == (None, None)


@pytest.mark.parametrize("effect", ["put_schema", "create_table"])
def test_a_call_that_never_came_is_no_answer_and_the_next_trigger_asks_again(
    make_asked: Make, effect: str
) -> None:
    world = make_asked("sync")
    asking(world, "> 0")
    asking(world, "< 9")
    world.write("F1")
    world.trigger()
    world.pinot.lose_call(effect)
    world.run()
    assert world.visible == []
    assert not world.read_session().audit.of_data
    assert world.pinot.calls.count("create_table") <= 2  # both assertions are told of it; one made it
    world.run()
    assert world.visible == ["F1"]
    assert world.builds == 1
    assert leavings(world) == (None, None)


def test_a_deleted_table_of_that_name_is_waited_for(make_asked: Make) -> None:
    world = make_asked("sync")
    asking(world, "> 0")
    world.write("F1")
    world.trigger()
    for _ in range(3):
        world.pinot.refuse_connection("create_table")
    world.run()
    assert world.visible == ["F1"]


def test_nothing_is_written_once_the_lease_is_lost(make_asked: Make) -> None:
    world = make_asked("sync")
    asking(world, "> 0")
    world.write("F1")
    world.trigger()

    def lose() -> None:
        with world.store() as store:
            store.zk.delete(f"{store.path}/lease")

    world.pinot.after("create_table", lose)
    pushes = world.pinot.calls.count("push")
    with pytest.raises(LeaseLost):
        world.run()
    assert world.pinot.calls.count("push") == pushes
    assert "delete_table" not in world.pinot.calls
    world.run()
    assert world.visible == ["F1"]
    assert leavings(world) == (None, None)


@pytest.mark.parametrize(("version", "asked"), [("0.11.0", False), ("1.5.1", True)])
def test_groups_that_a_broker_would_leave_out_are_no_answer(
    make_world: Make, version: str, asked: bool
) -> None:
    world = make_world("sync", pinot={"version": version})
    world.pinot.broker_answer = lambda sql, segments: QueryResult(("v", "n"), ("STRING", "INT"), (), 1, 0)
    doubled = "SELECT v, COUNT(*) FROM {} GROUP BY v HAVING COUNT(*) > 1"
    asking(world, "= 0", doubled)
    world.write(F1="a")
    world.run()
    asking(world, "= 0", f"{doubled} LIMIT 1")
    world.write(F1="b")
    world.run()
    assert world.visible == (["b"] if asked else ["a"])
    assert asked or "would not use all groups" in world.read_session().last_error


# --- on a real Pinot -----------------------------------------------------------------------------------


@pytest.mark.integration
def test_different_values_are_counted_by_a_real_broker(real_world: Any) -> None:
    world = real_world
    asking(world, "after >= live", "SELECT DISTINCTCOUNT(v), AVG(LENGTH(v)) FROM {} HAVING COUNT(*) > 0")
    world.write(F1="a b c", F2="d")
    world.run()  # nothing is live yet
    world.write(F1="a a a")
    world.run()
    assert "DISTINCTCOUNT(v) is 2, live 4" in world.read_session().last_error
    assert leavings(world) == (None, None)
    assert world.visible == ["a", "b", "c", "d"]
    world.write(F1="a b cc")
    world.run()
    assert leavings(world) == (None, None)
    for broker in world.brokers:
        assert world.shown_by(broker) == ["a", "b", "cc", "d"]
    world.assert_settled()
