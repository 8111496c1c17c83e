"""A table is forgotten, whatever happens meanwhile, and stays in Pinot as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.pinot.staged import EMPTY
from model.world.process import Kind, Trouble
from model.world.specs import spec_of
from model.world.table import TABLE, ModelTable, clear, run

from pinot_assets.errors import ForgetRefused, SessionHeld
from pinot_assets.gc import forget as forgetting
from pinot_assets.gc.forget_plan import ForgetPlan, StagedKind, WhyKept
from pinot_assets.pinot.shadow_table import shadow_name, shadow_schema
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.stores.stored_snapshots import snapshot_refs
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.snapshot.receipt import Output

TROUBLES = [Kind.DIES_AFTER, Kind.CALL_LOST, Kind.REPLY_LOST]


class Forget:
    """As `pinot-assets forget --yes`."""

    __name__ = "forget"

    def __init__(self) -> None:
        self.forgotten: forgetting.Forgotten | None = None

    def __call__(self, driver: Driver) -> None:
        self.forgotten = forgetting.forget(driver, lambda done, total: None)


def plan(table: ModelTable) -> ForgetPlan:
    """As `pinot-assets forget --dry-run`."""
    plans: list[ForgetPlan] = []

    def forget(driver: Driver) -> None:
        plans.append(forgetting.forget_plan(driver))

    before = len(table.zookeeper.writes), {info.key for info in table.staging.list()}
    process = table.start(forget).process
    assert (process.error, process.effects) == (None, [])
    assert before == (len(table.zookeeper.writes), {info.key for info in table.staging.list()})
    return plans[0]


def published(mode: str = "sync") -> ModelTable:
    """Three snapshots, and an object of somebody else in the staging area."""
    table = ModelTable(spec_of, mode)
    for number in range(3):
        table.source.write("A", f"A{number}".encode())
        table.source.write(f"B{number}", f"B{number}".encode())
        table.start(run)
    table.staging.write("segments/readme.txt", b"theirs")
    return table


def nodes(table: ModelTable) -> list[str]:
    """What is left in ZooKeeper below Pinot's record of tasks."""
    return [path for path in table.zookeeper.nodes if "MINION_TASK_METADATA/" in path]


def left(table: ModelTable) -> set[str]:
    return {info.key for info in table.staging.list()}


@pytest.mark.parametrize("mode", ["append", "sync", "swap"])
def test_all_of_ours_goes_and_queries_see_the_same(mode: str) -> None:
    table = published(mode)
    planned = plan(table)
    visible, lineage, files = table.pinot.visible_segments(TABLE), table.pinot.lineage(TABLE), table.files
    assert planned.nodes[0] == "pointer"
    assert {group.what for group in planned.removed} == {
        StagedKind.SNAPSHOT,
        StagedKind.SESSION,
        StagedKind.TAR,
        StagedKind.MARK,
    }
    assert [(group.what, group.keys) for group in planned.kept] == [
        (WhyKept.STRANGE, ("segments/readme.txt",))
    ]
    assert (planned.ours, planned.entries) == (len(visible), len(lineage.entries))
    forget = Forget()
    assert table.start(forget).process.error is None
    assert forget.forgotten is not None
    assert (forget.forgotten.plan, forget.forgotten.failed) == (planned, {})
    assert (nodes(table), left(table)) == ([], {"segments/readme.txt"})
    assert (table.pinot.visible_segments(TABLE), table.pinot.lineage(TABLE)) == (visible, lineage)
    assert table.files == files
    assert plan(table).is_empty


@pytest.mark.parametrize("kind", TROUBLES)
def test_whatever_happens_meanwhile_the_next_call_finishes_it(kind: Kind) -> None:
    places = len(published().start(Forget()).process.effects)
    assert places > 10
    for place in range(1, places + 1):
        table = published()
        visible = table.pinot.visible_segments(TABLE)
        table.start(Forget(), [Trouble(place, kind)])
        table.expire()
        table.later(60)
        assert table.start(Forget()).process.error is None, f"{kind} at {place}"
        assert (nodes(table), left(table)) == ([], {"segments/readme.txt"}), f"{kind} at {place}"
        assert table.pinot.visible_segments(TABLE) == visible


def test_a_run_after_one_that_died_loads_nothing_twice() -> None:
    kind = Kind.DIES_AFTER
    places = len(published().start(Forget()).process.effects)
    for place in range(1, places + 1):
        table = published()
        visible = table.pinot.visible_segments(TABLE)
        table.start(Forget(), [Trouble(place, kind)])
        table.expire()
        table.later(60)
        running = table.start(run)
        assert running.process.error is None, f"{kind} at {place}"
        assert running.report is not None
        assert running.report.result is TriggerResult.NOTHING, f"{kind} at {place}"
        assert table.pinot.visible_segments(TABLE) == visible


@pytest.mark.parametrize("mode", ["append", "sync"])
def test_a_later_run_takes_the_segments_for_its_own_again_and_says_so(mode: str) -> None:
    table = published(mode)
    visible = table.pinot.visible_segments(TABLE)
    table.start(Forget())
    report = table.start(run).report
    assert report is not None
    assert report.result is TriggerResult.NOTHING
    assert any("the ledger is made again" in note and "content hash" in note for note in report.notes)
    assert table.pinot.visible_segments(TABLE) == visible
    table.source.write("C", b"C1")
    assert table.start(run).process.error is None
    assert len(table.pinot.visible_segments(TABLE)) == len(visible) + 1


def test_it_refuses_while_a_session_is_open_and_works_once_it_is_dropped() -> None:
    table = published()
    table.source.write("A", b"A9")
    table.start(run, [Trouble("end_replace_segments", Kind.DIES_BEFORE)])
    table.expire()
    before = left(table), set(nodes(table))
    error = table.start(Forget()).process.error
    assert isinstance(error, ForgetRefused)
    assert error.why is not None
    assert "the switch of session" in error.why
    assert error.hint is not None
    assert f"\n    pinot-assets session clear {TABLE} " in error.hint
    assert (left(table), set(nodes(table))) == before
    table.later(60)
    table.start(clear)
    assert table.start(Forget()).process.error is None
    assert nodes(table) == []


def test_it_refuses_while_a_rollback_is_not_finished() -> None:
    def back(driver: Driver) -> None:
        driver.rollback("1")

    table = published()
    table.start(back, [Trouble("end_replace_segments", Kind.DIES_BEFORE)])
    table.expire()
    error = table.start(Forget()).process.error
    assert isinstance(error, ForgetRefused)
    assert error.why is not None
    assert "rollback cp4" in error.why


def test_it_refuses_while_queries_see_strays_or_an_entry_of_ours_is_open() -> None:
    table = published()
    vars(table.truth)["look"] = lambda: None
    table.pinot.push(TABLE, [Output(f"{TABLE}__cp1-abcdef_0_0_0", 1, 1, "", 1, "", "")], staged=EMPTY)
    error = table.start(Forget()).process.error
    assert isinstance(error, ForgetRefused)
    assert "in no snapshot" in str(error.why)
    table = published()
    vars(table.truth)["look"] = lambda: None
    entry = table.pinot.start_replace_segments(TABLE, [], [f"{TABLE}__cp1-abcdef_0_0_0"])
    error = table.start(Forget()).process.error
    assert isinstance(error, ForgetRefused)
    assert entry in str(error.why)


def test_it_does_nothing_while_another_run_holds_the_table() -> None:
    table = published()
    table.source.write("A", b"A9")
    table.start(run, [Trouble("push", Kind.STOPS_BEFORE)])
    before = left(table)
    assert isinstance(table.start(Forget()).process.error, SessionHeld)
    assert left(table) == before


def test_a_tar_from_which_servers_download_a_segment_stays() -> None:
    table = published()
    (name, *_) = sorted(table.pinot.visible_segments(TABLE))
    key = f"segments/{name}.tar.gz"
    metadata = table.pinot._tables[TABLE].metadata
    metadata[name] = replace(metadata[name], download_url=table.staging.uri_of(key))
    forget = Forget()
    table.start(forget)
    assert left(table) == {key, "segments/readme.txt"}
    assert forget.forgotten is not None
    kept = forget.forgotten.plan.kept[0]
    assert (kept.what, kept.keys) == (WhyKept.DOWNLOADED, (key,))
    assert nodes(table) == []


def test_what_may_be_another_clusters_stays() -> None:
    table = published()
    table.staging.write("owners/other-1", b"other-1")
    before = left(table)
    planned = plan(table)
    assert planned.removed == ()
    assert [group.what for group in planned.kept] == [WhyKept.OTHERS]
    assert "another cluster" in planned.notes[0]
    table.start(Forget())
    assert (nodes(table), left(table)) == ([], before)


def test_a_table_whose_current_snapshot_is_lost_can_be_forgotten() -> None:
    table = published()
    table.staging.delete(snapshot_refs(Staging(table.staging))[0].key)
    assert "not known" in plan(table).notes[0]
    assert table.start(Forget()).process.error is None
    assert (nodes(table), left(table)) == ([], {"segments/readme.txt"})


def test_a_table_that_pinot_does_not_have_any_more_can_be_forgotten() -> None:
    table = published()
    vars(table.truth)["look"] = lambda: None
    table.pinot.delete_table(TABLE)
    assert plan(table).segments is None
    assert table.start(Forget()).process.error is None
    assert (nodes(table), left(table)) == ([], {"segments/readme.txt"})


def test_a_shadow_table_that_an_audit_left_goes_too() -> None:
    table = published()
    table.pinot.put_schema(shadow_schema(table.spec.schema_json, TABLE))
    assert plan(table).shadow == shadow_name(TABLE)
    table.start(Forget())
    assert table.pinot.get_schema(shadow_name(TABLE)) is None
    assert table.pinot.get_schema(TABLE) is not None
