"""Segments are reloaded a few at a time, waited for, and read back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakes.pinot.memory import SERVERS, FakePinot
from fakes.pinot.staged import EMPTY
from fakes.spec_folder import Change, Folder

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError, SpecError, SwitchStateUnknown
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.changes.recipe import recipe_of
from pinot_assets.table_spec.changes.spec_changes import Verdict
from pinot_assets.table_spec.tables.apply import ApplyPlan, apply_plan, plan_apply
from pinot_assets.table_spec.tables.reload import AT_A_TIME, carry_out

MANY = [f"s{number:02d}" for number in range(3 * AT_A_TIME + 1)]


class Clock:
    """Time that passes only in pauses."""

    def __init__(self) -> None:
        self.ms = 0
        self.on_pause: Callable[[], None] = lambda: None

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float, /) -> None:
        self.ms += int(seconds * 1000)
        self.on_pause()


def output(name: str) -> Output:
    return Output(name, 1, 3, f"file:///{name}.tar.gz", 1, "", f"file:///{name}.metadata.tar.gz")


@pytest.fixture(params=["0.11.0", "1.5.1"])
def pinot(request: pytest.FixtureRequest, folder: Folder) -> FakePinot:
    """A table with segments that servers hold as the spec says."""
    pinot = FakePinot(version=request.param)
    apply_plan(plan_apply(folder.load(), pinot), pinot)
    pinot.push("flights", [output(name) for name in MANY], staged=EMPTY)
    assert plan_apply(folder.load(), pinot).changes_nothing
    pinot.calls.clear()
    return pinot


def index(*columns: str) -> Change:
    return lambda whole: whole["table"]["tableIndexConfig"].update(invertedIndexColumns=[*columns])


def column(whole: JsonObject) -> None:
    whole["schema"]["dimensionFieldSpecs"].append({"name": "origin", "dataType": "STRING"})


def applied(spec: TableSpec, pinot: FakePinot) -> ApplyPlan:
    plan = plan_apply(spec, pinot)
    apply_plan(plan, pinot)
    return plan


def inverted(pinot: FakePinot, column: str) -> list[bool]:
    """Whether each replica has the inverted index."""
    held = pinot.held_segments("flights", MANY, SERVERS)
    return ["inverted" in one.indexes[column] for each in held.values() for one in each.values()]


def test_a_new_index_is_built_by_a_reload(folder: Folder, pinot: FakePinot) -> None:
    spec = folder.load(change=index("carrier"))
    plan = applied(spec, pinot)
    assert [(one.column, one.setting, one.verdict) for one in plan.changes] == [
        ("carrier", "invertedIndexColumns", Verdict.RELOAD)
    ]
    assert plan.reload.reasons == ("inverted index of carrier",)
    assert str(plan.reload) == "25 of 25 segments"
    assert plan.warnings == ()
    assert pinot.calls.count("reload_segment") == len(MANY)
    assert all(inverted(pinot, "carrier"))
    assert plan_apply(spec, pinot).changes_nothing
    applied(folder.load(), pinot)
    assert not any(inverted(pinot, "carrier"))


def test_a_new_column_is_warned_of_before(folder: Folder, pinot: FakePinot) -> None:
    plan = applied(folder.load(change=column), pinot)
    assert plan.warnings == (
        "until they are reloaded, 25 of 25 segments are left out of queries that name the column origin",
    )
    held = pinot.held_segments("flights", MANY, SERVERS)
    assert all("origin" in one.indexes for each in held.values() for one in each.values())


def test_what_an_apply_without_reloads_left_is_found(folder: Folder, pinot: FakePinot) -> None:
    """As earlier releases left it: Pinot holds the right configs, its servers the segments of before."""
    spec = folder.load(change=index("carrier"))
    pinot.update_table(spec.table_json)
    plan = plan_apply(spec, pinot)
    assert (plan.schema.action, plan.table.action, plan.changes) == ("keep", "keep", ())
    assert not plan.changes_nothing
    assert len(plan.reload.segments) == len(MANY)
    apply_plan(plan, pinot)
    assert pinot.calls.count("update_table") == 1
    assert all(inverted(pinot, "carrier"))


def test_only_the_segments_that_lack_something_are_reloaded(folder: Folder, pinot: FakePinot) -> None:
    spec = folder.load(change=index("carrier"))
    pinot.update_table(spec.table_json)
    for name in MANY[5:]:
        pinot.reload_segment("flights", name)
    pinot.calls.clear()
    assert list(applied(spec, pinot).reload.segments) == MANY[:5]
    assert pinot.calls.count("reload_segment") == 5


def test_a_few_are_reloaded_at_a_time(folder: Folder, pinot: FakePinot) -> None:
    spec, clock, seen = folder.load(change=index("carrier")), Clock(), list[tuple[int, int]]()
    for name in MANY:
        pinot.reload_slowly(name, looks=3)
    at_a_time = list[int]()
    plan = plan_apply(spec, pinot)
    pinot.update_table(spec.table_json)
    pinot.calls.clear()

    def progress(done: int, of: int) -> None:
        seen.append((done, of))
        at_a_time.append(pinot.calls.count("reload_segment") - (seen[-2][0] if len(seen) > 1 else 0))

    carry_out(plan.reload, "flights", recipe_of(spec), pinot, progress, clock)
    assert seen[-1] == (len(MANY), len(MANY))
    assert seen == sorted(seen)
    assert max(at_a_time) <= AT_A_TIME
    assert all(inverted(pinot, "carrier"))


def test_what_servers_do_not_build_is_an_error(folder: Folder, pinot: FakePinot) -> None:
    spec = folder.load(change=index("carrier"))
    pinot.fail_to_load("flights", MANY[3])
    with pytest.raises(PinotError, match=rf"1 segment \({MANY[3]}\) of flights were reloaded and are still"):
        applied(spec, pinot)
    assert list(plan_apply(spec, pinot).reload.segments) == [MANY[3]]


def test_servers_that_never_reload_end_the_wait(folder: Folder, pinot: FakePinot) -> None:
    spec, clock = folder.load(change=index("carrier")), Clock()
    plan = plan_apply(spec, pinot)
    pinot.update_table(spec.table_json)
    for name in MANY:
        pinot.fail_to_load("flights", name)
    clock.on_pause = lambda: [pinot.reload_slowly(name, looks=10**6) for name in MANY] and None
    clock.on_pause()
    with pytest.raises(
        PinotError, match=r"8 segments \(s00, s01, s02, s03, s04, …\) of flights were not reloaded"
    ):
        carry_out(plan.reload, "flights", recipe_of(spec), pinot, clock=clock)
    assert clock.ms >= 1_800_000


def test_a_segment_that_is_deleted_meanwhile_is_left_out(folder: Folder, pinot: FakePinot) -> None:
    spec = folder.load(change=index("carrier"))
    plan = plan_apply(spec, pinot)
    pinot.before("reload_segment", lambda: pinot.delete_segments("flights", [MANY[-1]]))
    apply_plan(plan, pinot)
    assert all(inverted(pinot, "carrier"))


def test_a_server_that_is_down_is_not_waited_for(folder: Folder, pinot: FakePinot) -> None:
    """It loads every segment when it starts."""
    pinot.stop_server()
    plan = applied(folder.load(change=index("carrier")), pinot)
    assert len(plan.reload.segments) == len(MANY)


def test_a_reload_that_is_broken_off_goes_on(folder: Folder, pinot: FakePinot) -> None:
    spec = folder.load(change=index("carrier"))
    pinot.lose_call("reload_segment")
    with pytest.raises(SwitchStateUnknown) as lost:
        applied(spec, pinot)
    assert "config of table flights written" in str(lost.value)
    applied(spec, pinot)
    assert all(inverted(pinot, "carrier"))


def test_what_only_a_rebuild_does_reloads_nothing(folder: Folder, pinot: FakePinot) -> None:
    plan = applied(
        folder.load(change=lambda w: w["table"]["tableIndexConfig"].update(sortedColumn=["carrier"])), pinot
    )
    assert [one.verdict for one in plan.changes] == [Verdict.REBUILD]
    assert "reload_segment" not in pinot.calls


def test_what_published_segments_do_not_allow_is_refused(folder: Folder, pinot: FakePinot) -> None:
    def change(whole: JsonObject) -> None:
        whole["schema"]["dimensionFieldSpecs"][1]["dataType"] = "STRING"

    with pytest.raises(SpecError, match=r'dataType of flight: "INT" → "STRING": one query cannot combine'):
        applied(folder.load(change=change), pinot)
    assert "put_schema" not in pinot.calls


def test_without_segments_pinot_decides(folder: Folder) -> None:
    pinot = FakePinot()
    applied(folder.load(), pinot)
    plan = applied(folder.load(change=index("carrier")), pinot)
    assert plan.reload.segments == {}


def test_a_job_that_pinot_forgets_is_over_when_nothing_is_lacking(folder: Folder, pinot: FakePinot) -> None:
    pinot.forget_jobs()
    applied(folder.load(change=index("carrier")), pinot)
    assert all(inverted(pinot, "carrier"))


def test_a_column_that_gets_another_type_gets_another_schema(folder: Folder, pinot: FakePinot) -> None:
    def change(whole: JsonObject) -> None:
        whole["schema"]["dimensionFieldSpecs"][1]["dataType"] = "LONG"

    plan = applied(folder.load(change=change), pinot)
    assert [(one.setting, one.verdict) for one in plan.changes] == [("dataType", Verdict.REBUILD)]
    assert "replace_schema" in pinot.calls
    assert plan_apply(folder.load(change=change), pinot).changes_nothing


def test_servers_are_compared_where_pinot_cannot_say(folder: Folder, pinot: FakePinot) -> None:
    def fails() -> None:
        raise PinotError("needReload was refused", why="a server did not answer")

    spec = folder.load(change=index("carrier"))
    pinot.update_table(spec.table_json)
    pinot.before("needs_reload", fails)
    assert len(plan_apply(spec, pinot).reload.segments) == len(MANY)
