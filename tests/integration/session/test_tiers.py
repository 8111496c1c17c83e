"""What was built is looked at before queries see it, with the bounds of the table spec."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fakes.pinot.lineage import SERVERS

from pinot_assets.errors import RollbackRefused, SnapshotIncomplete
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome, State
from pinot_assets.snapshot.receipt import Receipt

Make = Callable[..., Any]
TEN = " ".join("abcdefghij")


def shut(world: Any, text: str) -> None:
    """The gate is shut for data, nothing is spent, and it says why."""
    session = world.read_session()
    assert (session.state, session.audit.passed, session.audit.waits) == (State.SWITCH, False, True)
    assert text in session.last_error
    assert session.retry_count == 0


def receipts_of(world: Any) -> list[Any]:
    return sorted((world.folder / "staging").glob("**/files/*.json"))


@pytest.mark.parametrize("of", ["table", "file"])
@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_half_of_a_files_rows_are_gone(make_world: Make, mode: str, of: str) -> None:
    world = make_world(mode)
    world.audit_block.append({"check": "row_change", "of": of, "min": "-20%"})
    world.write(F1=TEN, F2="k l")
    world.run()  # nothing is live yet
    assert len(world.visible) == 12
    world.watch_anew()
    world.write(F1="a b c d e")
    world.run()
    shut(world, "from 10 to 5 rows (-50%)" if of == "file" else "from 12 to 7 rows (-41.7%)")
    assert world.shown == [tuple(sorted([*TEN.split(), "k", "l"]))]
    world.write(F1=f"{TEN} z")
    world.run()
    assert len(world.visible) == 13
    assert world.built == (["F1"] if mode == "sync" else world.built)
    world.assert_settled()


def test_a_gate_that_stays_shut_is_no_bar_to_a_rollback(make_world: Make) -> None:
    """A run would find the same again and end nothing, so the refusal names what does."""
    world = make_world("sync")
    for rows in ("a b", "c d"):
        world.write(F1=rows)
        world.run()
    world.audit_block.append({"check": "row_change", "min": "-20%"})
    world.write(F1="e")
    world.run()
    shut(world, "from 2 to 1 rows (-50%)")
    with pytest.raises(RollbackRefused, match="is in its switch") as refused:
        world.rollback()
    assert f"`pinot-assets session clear {world.table}`" in str(refused.value.hint)
    world.clear()
    world.rollback()
    assert world.visible == ["a", "b"]


def test_a_file_that_goes_is_a_change_of_the_table_and_of_no_file(make_world: Make) -> None:
    world = make_world("sync")
    world.audit_block.append({"check": "row_change", "of": "file", "min": "-1%"})
    world.write("F1", "F2")
    world.run()
    world.remove("F2")
    world.run()
    assert world.visible == ["F1"]
    world.audit_block[0]["of"] = "table"
    world.write("F2", "F3")
    world.run()
    world.remove("F3")
    world.run()
    shut(world, "from 3 to 2 rows (-33.3%)")
    assert world.visible == ["F1", "F2", "F3"]


def test_rows_of_segments_that_somebody_else_pushed_count(make_world: Make) -> None:
    world = make_world("swap")
    world.write(F1="a b c d")
    world.run()
    foreign = replace(next(iter(world.read_snapshot().segments.values())), segment="foreign", crc=5)
    world.pinot.push(world.table, [foreign], staged=world.staging)
    world.audit_block.append({"check": "row_change", "min": "-20%"})
    world.write(F1="a b c d e")
    world.run()
    shut(world, "from 8 to 5 rows (-37.5%)")


def test_a_warning_is_shown_and_the_switch_happens(make_world: Make) -> None:
    world = make_world("sync")
    world.audit_block.append({"check": "row_change", "min": "-20%", "severity": "warn"})
    world.write(F1=TEN)
    world.run()
    world.write(F1="a")
    assert world.trigger().result is TriggerResult.STAGED
    _, findings = world.audit()
    [finding] = [f for f in findings if not f.passed]
    assert (finding.blocks, finding.expected, finding.found) == (False, 10, 1)
    world.publish()
    assert world.visible == ["a"]


def test_an_empty_file_is_taken_unless_the_table_says_otherwise(make_world: Make) -> None:
    world = make_world("sync")
    world.write("F1", F2="")
    world.run()
    assert world.visible == ["F1"]
    world.audit_block.append({"check": "empty_outputs"})
    world.write("F4", F3="")
    world.run()
    shut(world, "F3 has none")
    world.write("F3")
    world.run()
    assert world.visible == ["F1", "F3", "F4"]


def test_only_empty_files_do_not_end_a_session_that_asks_for_rows(make_world: Make) -> None:
    """No segment comes or goes: the session would be a NOOP, and the file's version taken as published."""
    world = make_world("sync")
    world.audit_block.append({"check": "empty_outputs"})
    world.write("F1")
    world.run()
    world.write(F2="")
    for _ in range(3):  # nothing is spent
        assert world.trigger().result is TriggerResult.FAILED
        session, findings = world.audit()
        assert (session.state, session.retry_count, session.audit.waits) == (State.IN_PROGRESS, 0, True)
        [finding] = [f for f in findings if f.blocks]
        assert (finding.name, finding.expected, finding.found) == ("empty_outputs", 1, 0)
        with pytest.raises(SnapshotIncomplete, match=r"(?s)gate of \w+ is shut: .*F2 has.*correct the files"):
            world.publish()
    assert world.builds == 2
    world.write("F2")
    world.run()
    assert world.visible == ["F1", "F2"]
    world.assert_settled()


def test_empty_files_that_follow_a_staged_switch_are_asked_for_rows_too(make_world: Make) -> None:
    world = make_world("sync")
    world.audit_block.append({"check": "empty_outputs"})
    world.write("F1", F2="")
    world.trigger()
    world.audit()
    world.remove("F1")
    assert world.trigger().result is TriggerResult.FAILED
    assert world.read_session().switch_object is None
    world.audit_block.clear()
    assert world.run().result is TriggerResult.NOOP
    assert world.visible == []
    assert set(world.read_ledger()) == {"F2"}
    assert world.read_snapshot().audit["passed"]
    world.assert_settled()


def test_a_warning_does_not_keep_a_session_without_a_switch_open(make_world: Make) -> None:
    world = make_world("sync")
    world.audit_block.append({"check": "empty_outputs", "severity": "warn"})
    world.write(F1="")
    assert world.run().result is TriggerResult.NOOP


def test_rows_that_all_got_lost_are_missed_where_nothing_is_switched(
    make_world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receipt of the only file tells of rows that are in no segment: it is built again, as a retry."""
    world = make_world("sync")
    world.write(F1="")
    read = Staging.receipts

    def lost(staging: Staging, plan: Plan) -> Any:
        receipts = read(staging, plan)
        return {o: (key, replace(receipt, rows_read=5)) for o, (key, receipt) in receipts.items()}

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "receipts", lost)
        assert world.trigger().result is TriggerResult.FAILED
    session = world.read_session()
    assert "F1: 5 rows read, 0 put aside, 0 filtered out, 0 written" in session.last_error
    assert not session.audit.waits
    assert world.run().result is TriggerResult.NOOP
    assert (world.built, world.read_sessions()[-1].retry_count) == (["F1"], 1)


def test_a_way_back_is_not_barred(make_world: Make) -> None:
    world = make_world("swap")
    world.write(F1="a")
    world.run()
    world.write(F1=TEN)
    world.run()
    world.audit_block.append({"check": "row_change", "min": "-1%"})
    world.rollback()
    assert world.visible == ["a"]


OTHER_TARS: dict[str, Callable[[bytes], bytes]] = {
    "its hash differs": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "it has more than": lambda content: content + b"\0",
    "it has less than": lambda content: content[:-1],
}


@pytest.mark.parametrize("why", OTHER_TARS)
def test_a_tar_that_was_swapped_is_built_again(make_world: Make, why: str) -> None:
    world = make_world("sync")
    world.write("F1", "F2")
    world.trigger()
    _, two = sorted((world.folder / "staging").glob("**/segments/*_0.tar.gz"))
    two.write_bytes(OTHER_TARS[why](two.read_bytes()))
    session, findings = world.audit()
    [finding] = [f for f in findings if not f.passed]
    assert (finding.name, finding.blocks, finding.expected, finding.found) == ("tars_as_built", True, 2, 1)
    assert f"was changed: {why}" in finding.message
    assert not session.audit.waits
    world.run()
    assert world.visible == ["F1", "F2"]
    assert world.built == ["F2"]
    assert world.read_sessions()[-1].retry_count == 1


def test_a_tar_that_is_only_touched_is_fine(make_world: Make) -> None:
    world = make_world("sync")
    world.write("F1")
    world.trigger()
    [tar] = (world.folder / "staging").glob("**/segments/*_0.tar.gz")
    content = tar.read_bytes()
    tar.unlink()
    tar.write_bytes(content)
    _, findings = world.audit()
    assert all(f.passed for f in findings)


def test_rows_that_a_task_lost_are_built_again(make_world: Make) -> None:
    world = make_world("sync")
    world.write(F1=TEN)
    world.trigger()
    [path] = receipts_of(world)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rows_read": 11}))
    _, findings = world.audit()
    [finding] = [f for f in findings if not f.passed]
    assert (finding.name, finding.expected, finding.found) == ("rows_as_read", 11, 10)
    world.run()
    assert world.builds == 2
    assert len(world.visible) == 10
    assert world.read_sessions()[-1].outcome is Outcome.PUBLISHED


def test_a_file_whose_rows_all_got_lost_is_built_again(make_world: Make) -> None:
    """It has no segment that could be named: its receipt is what is not believed (R14)."""
    world = make_world("sync")
    world.write(F1=TEN, F2="")
    world.trigger()
    [path] = [path for path in receipts_of(world) if json.loads(path.read_text())["uri"].endswith("F2")]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rows_read": 5}))
    session, findings = world.audit()
    [finding] = [f for f in findings if f.blocks]
    assert (finding.name, finding.expected, finding.found) == ("rows_as_read", 15, 10)
    assert not session.audit.waits
    world.run()
    assert world.built == ["F2"]
    assert len(world.visible) == 10
    assert world.read_sessions()[-1].outcome is Outcome.PUBLISHED


def test_receipts_of_a_writer_before_the_counts_pass(make_world: Make) -> None:
    world = make_world("sync")
    world.write("F1")
    world.trigger()
    [path] = receipts_of(world)
    said = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in said.items() if k not in ("rows_read", "facts")}))
    assert Receipt.from_bytes(path.read_bytes()).facts == ()
    _, findings = world.audit()
    assert all(f.passed for f in findings)
    world.publish()
    assert world.visible == ["F1"]


# --- servers that are down -------------------------------------------------------------------------


def test_a_server_that_is_down_keeps_the_gate_shut_and_is_named(make_world: Make) -> None:
    world = make_world("sync")
    world.write("F1")
    world.pinot.stop_server(SERVERS[1])
    world.run()
    shut(world, f"is OFFLINE on {SERVERS[1]}")
    assert f"{SERVERS[1]} did not answer" in world.read_session().last_error
    assert sum(world.slept) >= world.waits.online
    with world.driver() as driver:
        driver.audit()
        [waiting] = [note for note in driver.notes if "more to load" in note]
        assert waiting.startswith("the servers have 290 s more to load: 1 of 2 replicas are ONLINE: ")
        with pytest.raises(SnapshotIncomplete, match="correct what it names and run the table again"):
            driver.publish()
    world.pinot.start_server(SERVERS[1])
    world.run()
    assert world.visible == ["F1"]
    assert world.builds == 1


def test_a_server_that_went_a_moment_ago_is_named_too(make_world: Make) -> None:
    """ZooKeeper still shows its segments as ONLINE."""
    world = make_world("sync")
    world.write("F1")
    world.pinot.cut_off_server(SERVERS[0])
    world.run()
    shut(world, f"{SERVERS[0]} did not answer")


@pytest.mark.parametrize("trouble", ["stop_server", "cut_off_server"])
def test_of_one_replica_a_server_that_is_down_is_told_and_not_waited_for(
    make_world: Make, trouble: str
) -> None:
    world = make_world("sync")
    world.audit_block += [
        {"replicas": "one"},
        {"sql": f"SELECT COUNT(*) FROM {world.table}", "expect": "= 2"},
    ]
    world.write(F1="a b")
    getattr(world.pinot, trouble)(SERVERS[1])
    assert world.trigger().result is TriggerResult.STAGED
    slept = sum(world.slept)
    _, findings = world.audit()
    assert sum(world.slept) - slept < 10
    failed = [f for f in findings if not f.passed]
    assert [f.blocks for f in failed] == [False] * len(failed)
    assert any(SERVERS[1] in f.message for f in failed)
    assert {f.name: (f.expected, f.found) for f in findings}["one_replica_online"] == (1, 1)
    world.publish()
    assert world.visible == ["a", "b"]
    world.pinot.start_server(SERVERS[1])
    world.assert_settled()


@pytest.mark.parametrize("again", ["publish", "trigger"])
def test_a_gate_that_a_laxer_policy_opened_does_not_stay_open(make_world: Make, again: str) -> None:
    world = make_world("sync")
    world.audit_block.append({"replicas": "one"})
    world.write("F1")
    world.pinot.stop_server(SERVERS[1])
    world.trigger()
    session, _ = world.audit()
    assert session.gate_open
    world.audit_block.clear()
    if again == "trigger":
        world.trigger()
    with pytest.raises(SnapshotIncomplete, match=r"the gate of \w+ is shut"):
        world.publish()
    assert world.visible == []
    world.pinot.start_server(SERVERS[1])
    world.run()
    assert world.visible == ["F1"]


def test_of_one_replica_a_server_that_is_up_is_waited_for(make_world: Make) -> None:
    world = make_world("sync")
    world.audit_block.append({"replicas": "one"})
    world.write("F1")
    world.trigger()
    [name] = world.pinot.all_segments(world.table)
    world.pinot.load_slowly_on(world.table, name, SERVERS[1], looks=20)
    _, findings = world.audit()
    assert all(f.passed for f in findings)
    assert sum(world.slept) >= 9


def test_of_one_replica_none_is_too_few(make_world: Make) -> None:
    world = make_world("sync")
    world.audit_block.append({"replicas": "one"})
    world.write("F1")
    for server in SERVERS:
        world.pinot.stop_server(server)
    world.run()
    shut(world, "is ONLINE on no server that answers")


@pytest.mark.parametrize("policy", ["all", "one"])
def test_a_replica_with_another_crc_is_never_enough(make_world: Make, policy: str) -> None:
    """METADATA push: Pinot's own metadata come from another file than what servers load."""
    world = make_world("sync")
    world.audit_block.append({"replicas": policy})
    world.write("F1", "F2")
    world.trigger()
    name = min(world.pinot.all_segments(world.table))
    world.pinot.loaded_crcs[SERVERS[1], name] = 5
    session, findings = world.audit()
    [finding] = [f for f in findings if not f.passed]
    assert (finding.name, finding.expected, finding.found) == ("crc_on_servers", 4, 3)
    assert f"{name} has CRC 5 on {SERVERS[1]}" in finding.message
    assert not session.audit.waits
    world.run()
    assert world.visible == ["F1", "F2"]
    assert len(world.built) == 1
