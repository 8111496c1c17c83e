"""The numbers of a plan are those of the run: segments replaced and new, rows gone and come, what is left."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from fakes.pinot.memory import FakePinot
from hypothesis import example, given, settings
from hypothesis import strategies as st
from model.world.lives import PUSHES, make_table, planned, run_now, run_planned
from model.world.restored import snapshot
from model.world.specs import losing_spec_of
from model.world.table import MODES, TABLE, ModelTable
from model.world.truth import Truth

from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.plan_report.rendering import amounts

PUBLISHED = {"A": "A1", "B": "B1 B2", "C": "C1"}
CHANGES: dict[str, dict[str, str | None]] = {
    "left alone": {},
    "rewritten": {"A": "A9"},
    "rewritten, more rows": {"A": "A8 A9"},
    "touched": {"A": "A1"},
    "emptied": {"A": ""},
    "deleted": {"A": None},
    "another rewritten": {"B": "B9"},
    "another emptied": {"B": ""},
    "another deleted": {"B": None},
    "new": {"D": "D1"},
    "new and empty": {"E": ""},
}
"""What happens to a file; None deletes it."""
RELEASES = ("0.11.0", "1.5.1")
"""The older one refuses a replacement by nothing, so its switch may replace one segment more."""

changes = st.sets(st.sampled_from(sorted(CHANGES)), max_size=4).map(sorted)


def table_of(mode: str, release: str, is_published: bool) -> ModelTable:
    table = make_table(mode)
    table.spec_of = losing_spec_of
    table.pinot = FakePinot(version=release)
    table.pinot.put_schema(table.spec.schema_json)
    table.pinot.create_table(table.spec.table_json)
    table.truth = Truth(TABLE, table.zookeeper, table.pinot)
    if is_published:
        change_files(table, PUBLISHED)
        run_now(table)
    return table


def change_files(table: ModelTable, files: Mapping[str, str | None]) -> None:
    for name, text in files.items():
        if text is not None:
            table.source.write(name, text.encode())
        elif name in table.files:
            table.source.remove(name)


def shown_segments(plan: PlanReport) -> list[int]:
    """Before, after, replaced, new: as people read them."""
    text = next((line.text for line in amounts(plan) if line.label == "segments"), "")
    return [int(number) for number in re.findall(r"\d+", text)]


@given(
    mode=st.sampled_from([*MODES, *PUSHES]),
    release=st.sampled_from(RELEASES),
    is_published=st.booleans(),
    names=changes,
)
@example(mode="sync", release="0.11.0", is_published=True, names=["emptied"])
@example(mode="sync", release="0.11.0", is_published=True, names=["emptied", "another deleted"])
@example(mode="sync", release="1.5.1", is_published=True, names=["emptied"])
@example(mode="plain", release="0.11.0", is_published=True, names=["emptied"])
@example(mode="atomic", release="0.11.0", is_published=True, names=["emptied"])
@example(mode="append", release="0.11.0", is_published=True, names=["emptied", "deleted"])
@example(mode="swap", release="0.11.0", is_published=True, names=["emptied"])
@settings(max_examples=60, deadline=None)
def test_a_run_has_the_numbers_of_its_plan(
    mode: str, release: str, is_published: bool, names: list[str]
) -> None:
    table = table_of(mode, release, is_published)
    for name in names:
        change_files(table, CHANGES[name])
    plan = planned(table)
    before = table.pinot.visible_segments(TABLE)
    report, error = run_planned(table, plan.planned.plan_basis.hash)
    after = table.pinot.visible_segments(TABLE)
    if plan.planned.refused is not None:
        assert (str(error), after) == (str(plan.planned.refused), before)
        return
    assert error is None, error
    assert report is not None
    assert before - after == set(plan.planned.segments_from)
    if plan.switching is None:
        assert after == before
        return
    rows = {file: len(text.split()) for file, text in table.files.items()}
    more = sum(rows[row.uri.rpartition("/")[2]] - 1 for row in plan.build if row.planned.size)
    assert len(after - before) == len(plan.switching.added) + more, "a row more is a segment more here"
    replaced, new = len(before - after), len(after - before) - more
    assert shown_segments(plan) == [len(before), len(after) - more, replaced, new]
    counted = plan.switching.rows
    assert (counted.now, counted.removed.total) == (len(before), replaced)
    assert counted.added.exact is not any(row.planned.size for row in plan.build)
    if counted.after.exact:
        assert counted.after.total == len(after)


@given(mode=st.sampled_from([*MODES]), release=st.sampled_from(RELEASES), names=changes, more=st.booleans())
@example(mode="sync", release="0.11.0", names=["deleted"], more=False)
@example(mode="sync", release="0.11.0", names=["rewritten", "another deleted", "new"], more=True)
@settings(max_examples=25, deadline=None)
def test_a_run_has_the_numbers_of_its_plan_where_files_share_segments(
    mode: str, release: str, names: list[str], more: bool
) -> None:
    """Packs that change are known exactly, before any file is read; their rows are, too."""
    table = table_of(mode, release, is_published=False)
    table.options |= {"layout.pack": "true", "layout.maxMergeBytes": "0"}  # merges follow from what is read
    change_files(table, PUBLISHED)
    run_now(table)
    if more:
        change_files(table, {"F": "F1", "G": "G1"})
        run_now(table)
    for name in names:
        change_files(table, CHANGES[name])
    plan = planned(table)
    before, was = table.pinot.visible_segments(TABLE), snapshot(table)
    _, error = run_planned(table, plan.planned.plan_basis.hash)
    after = table.pinot.visible_segments(TABLE)
    if plan.planned.refused is not None:
        assert (str(error), after) == (str(plan.planned.refused), before)
        return
    assert error is None, error
    assert before - after == set(plan.planned.segments_from)
    changed = plan.packs.changed
    if plan.switching is None:
        assert (after, changed.rebuilt, changed.dropped) == (before, 0, 0)
        return
    is_read = any(row.planned.size for row in plan.build)
    sizes = {file: len(text) for file, text in table.files.items()}
    if all(sizes[row.uri.rpartition("/")[2]] for row in plan.build):
        assert len(after - before) == len(plan.switching.added)
    if mode != "swap":
        stays = {pack.name for pack in snapshot(table).packs} & {pack.name for pack in was.packs}
        assert changed.rebuilt + changed.dropped == len(was.packs) - len(stays)
        now = snapshot(table)
        carried = [f for f in now.files if stays.isdisjoint(f.packs) and f.session != now.session]
        assert (changed.files, changed.rows) == (len(carried), sum(file.rows for file in carried))
    if not is_read:
        assert plan.switching.rows.after.total == snapshot(table).rows


@pytest.mark.parametrize(("release", "replaced"), [("0.11.0", 2), ("1.5.1", 1)])
def test_a_file_that_was_emptied(release: str, replaced: int) -> None:
    """A Pinot before 1.0 replaces a segment that stays, too, by a copy of it: the plan says so."""
    table = table_of("sync", release, is_published=True)
    change_files(table, {"A": ""})
    new = replaced - 1
    assert shown_segments(planned(table)) == [4, 3, replaced, new]
