"""Edge cases of the files themselves (docs/edge-cases.md#files-settings-others-at-work)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from pinot_assets.errors import ListingFailed
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Outcome

pytestmark = pytest.mark.integration

Make = Callable[..., Any]
EXCLUDE_ALL = {"excludeFileNamePattern": "glob:**"}


@pytest.mark.parametrize(
    ("mode", "after"), [("append", ["F1", "F2"]), ("sync", []), ("swap", [])], ids=["append", "sync", "swap"]
)
def test_e02_all_files_deleted(make_world: Make, mode: str, after: list[str]) -> None:
    world = make_world(mode)
    world.write("F1", "F2")
    world.run()
    world.watch_anew()
    world.remove("F1", "F2")
    world.run()
    assert world.visible == after
    assert (30.0 in world.slept) == (mode != "append")  # it looks a second time
    assert len(world.shown) == (1 if mode == "append" else 2)


@pytest.mark.parametrize("empty", ["", "v\n"], ids=["0 bytes", "0 rows"])
def test_e05_an_empty_file_takes_its_older_version_away_only_where_that_is_allowed(
    make_world: Make, empty: str
) -> None:
    world = make_world("sync")
    world.write("F1", "F2")
    world.run()
    (world.source / "F1").write_text(empty)
    world.run()
    assert world.visible == ["F1", "F2"]
    assert "F1 changes from 1 to 0 rows (-100%)" in world.read_session().last_error
    world.audit_block.append({"check": "emptied_files", "severity": "warn"})
    world.run()
    assert world.builds == 2  # what was built is taken
    assert world.visible == ["F2"]
    assert world.read_ledger()["F1"] == ()
    assert world.run().result is TriggerResult.NOTHING  # it is known, and wakes nobody
    world.assert_settled()


def test_a_nul_in_a_text_keeps_the_gate_shut_until_the_spec_allows_it(make_world: Make) -> None:
    world = make_world("sync")
    world.write("F1", F2="two\0more F2")
    world.trigger()
    session, findings = world.audit()
    [finding] = [f for f in findings if f.name == "cut_at_nul"]
    assert finding.blocks
    assert "F2: v 1 value" in finding.message
    assert session.audit is not None
    assert not session.audit.passed
    assert world.visible == []
    world.audit_block = [{"check": "cut_at_nul", "severity": "warn"}]
    world.run()
    assert "F1" in world.visible


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_a_file_that_became_a_folder_fails_and_its_rows_stay(make_world: Make, mode: str) -> None:
    world = make_world(mode)
    world.write("F1", "F2")
    world.run()
    world.remove("F1")
    (world.source / "F1").mkdir()
    [failure] = world.run().failed
    assert failure.code == "BECAME_FOLDER"
    assert failure.uri.endswith("/F1")
    assert world.visible == ["F1", "F2"]
    (world.source / "F1").rmdir()
    world.write("F1", "F3")
    world.run()
    assert world.visible == ["F1", "F2", "F3"]
    world.remove("F1")  # that is a deletion
    world.run()
    assert world.visible == ["F2", "F3"]


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_e06_without_changes_there_is_no_session(make_world: Make, mode: str) -> None:
    world = make_world(mode)
    world.write("F1")
    world.run()
    before, sessions = world.read_pointer(), world.read_sessions()
    for _ in range(3):
        assert world.run().result is TriggerResult.NOTHING
    after = world.read_pointer()
    assert (after.next_seq, after.history, after.current_snapshot) == (
        before.next_seq,
        before.history,
        before.current_snapshot,
    )
    assert world.read_sessions() == sessions


@pytest.mark.parametrize(
    ("mode", "after"),
    [("append", ["x", "x"]), ("sync", ["x"]), ("swap", ["x"])],
    ids=["append", "sync", "swap"],
)
def test_e24_a_renamed_file_is_a_deleted_and_a_new_one(make_world: Make, mode: str, after: list[str]) -> None:
    world = make_world(mode)
    world.write(F1="x")
    world.run()
    (world.source / "F1").rename(world.source / "F9")
    world.run()
    assert world.visible == after
    world.assert_settled()


def test_e25_a_file_that_returns_in_the_same_session_is_a_new_row(scene: Any) -> None:
    world = scene.world
    world.remove("F3")
    world.builder.failing = {"F5"}
    world.run()
    world.write("F3")
    world.builder.failing = set()
    report = world.run()
    plan = world.staging.plan(world.read_sessions()[-1].plan)
    rows = [row for row in plan.rows if row.uri.endswith("/F3")]
    assert [str(row.status) for row in rows] == ["GONE", "DONE"]
    assert rows[1].ordinal == max(row.ordinal for row in plan.rows)
    names = [o.segment for receipt in report.built for o in receipt.outputs]
    assert len(set(names)) == len(names)
    assert world.visible == scene.after("F1", "F2", "F3", "F4", "F5")
    world.assert_settled()


def test_e26_what_upstream_writers_leave_around_is_no_data(make_world: Make) -> None:
    world = make_world("sync")
    world.write("F1")
    for name in ("_SUCCESS", ".hidden", "F2.tmp"):
        (world.source / name).write_text(f"v\n{name}\n")
    (world.source / "link").symlink_to(world.source / "F1")
    world.run()
    assert world.visible == ["F1"]
    world.options["includeFileNamePattern"] = "glob:**/*.tmp"
    world.run()
    assert world.visible == ["F2.tmp"]


def test_e27_names_that_a_list_in_one_text_would_tear_apart(make_world: Make) -> None:
    world = make_world("sync")
    odd = ["a,b", "c d", "e%2Cf", "g#h", "ü"]
    for number, name in enumerate(odd):
        world.write(**{name: f"v{number}"})
    world.run()
    assert world.visible == ["v0", "v1", "v2", "v3", "v4"]
    assert len(world.read_ledger()) == len(odd)
    assert world.run().result is TriggerResult.NOTHING
    world.remove("a,b")
    world.run()
    assert world.visible == ["v1", "v2", "v3", "v4"]


@pytest.mark.parametrize("seconds", [0, 4_000_000_000], ids=["1970", "2096"])
def test_e28_times_of_files_are_compared_with_each_other_alone(make_world: Make, seconds: int) -> None:
    world = make_world("sync")
    world.write("F1", "F2")
    os.utime(world.source / "F1", (seconds, seconds))
    world.run()
    assert world.visible == ["F1", "F2"]
    assert world.run().result is TriggerResult.NOTHING
    world.write(F2="F2.1")  # an older date than the published one is a change like any other
    os.utime(world.source / "F2", (1, 1))
    world.run()
    assert world.built == ["F2"]
    assert world.visible == ["F1", "F2.1"]


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_e33_new_patterns_that_match_nothing_of_a_full_directory_are_refused(
    make_world: Make, mode: str
) -> None:
    world = make_world(mode)
    world.write("F1", "F2")
    world.run()
    before = world.read_pointer().current_snapshot
    world.options.update(EXCLUDE_ALL)
    for _ in range(2):  # not just once
        with pytest.raises(ListingFailed, match="matches since the table spec was changed"):
            world.run()
    assert world.visible == ["F1", "F2"]
    assert world.read_pointer().current_snapshot == before
    assert world.read_session() is None
    world.options["emptySourceAction"] = "APPLY"
    world.run()
    assert world.visible == []
    assert world.read_sessions()[-1].outcome is Outcome.PUBLISHED


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_e33_an_open_session_outlives_the_slip(make_world: Make, mode: str) -> None:
    world = make_world(mode)
    world.write("F1")
    world.run()
    world.write("F2", "F3")
    world.builder.failing = {"F3"}
    world.run()
    opened = world.read_session()
    world.options.update(EXCLUDE_ALL)
    with pytest.raises(ListingFailed):
        world.run()
    assert world.read_session() == opened
    del world.options["excludeFileNamePattern"]
    world.builder.failing = set()
    world.run()
    assert world.built == ["F3"]


def test_e33_an_empty_directory_is_e02_whatever_the_spec(make_world: Make) -> None:
    world = make_world("sync")
    world.write("F1")
    world.run()
    world.remove("F1")
    world.options.update(EXCLUDE_ALL)
    world.run()
    assert world.visible == []
