"""What opens the gate opens it for the files and the table spec that were audited, and for no others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.world.lives import make_table, planned, write
from model.world.specs import spec_of
from model.world.table import MODES, TABLE, ModelTable, run

from pinot_assets.errors import PinotUnreachable, SnapshotIncomplete
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.driver import Driver
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.table_spec.blocks.audit import Assertion, Audit, EmptyOutputs


def staged_and_audited(driver: Driver) -> TriggerReport:
    """A job that ends before its last step."""
    report = driver.trigger()
    _, findings = driver.audit()
    assert all(finding.passed for finding in findings)
    return report


def without_check(driver: Driver) -> TriggerReport:
    """As somebody runs `segments` and `snapshot` alone."""
    report = driver.trigger()
    driver.publish()
    return report


def snapshot_alone(driver: Driver) -> TriggerReport:
    driver.publish()
    return TriggerReport(TriggerResult.STAGED, None, listed=0)


def audited_table(mode: str) -> ModelTable:
    table = make_table(mode)
    asked = Audit(checks=(EmptyOutputs(check="empty_outputs"),))
    table.spec_of = lambda options: replace(spec_of(options), audit=asked)
    write(A="A1")(table)
    table.start(staged_and_audited)
    return table


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", ["", "B1"])
def test_a_file_that_came_after_the_audit_shuts_it(mode: str, rows: str) -> None:
    """Also one without a row, which changes nothing of what is switched."""
    table = audited_table(mode)
    write(B=rows)(table)
    assert isinstance(table.start(without_check).process.error, SnapshotIncomplete)
    assert not table.pinot.visible_segments(TABLE)


@pytest.mark.parametrize("mode", MODES)
def test_a_session_that_was_audited_and_has_the_same_files_may_be_published(mode: str) -> None:
    table = audited_table(mode)
    assert table.start(without_check).process.error is None
    assert len(table.pinot.visible_segments(TABLE)) == 1


@pytest.mark.parametrize("mode", MODES)
def test_what_was_built_by_another_table_spec_is_not_published(mode: str) -> None:
    table = audited_table(mode)
    table.options["maxNumRecordsPerSegment"] = "7"
    error = table.start(snapshot_alone).process.error
    assert isinstance(error, SnapshotIncomplete)
    assert "its table spec was changed" in str(error)
    assert not table.pinot.visible_segments(TABLE)
    assert planned(table).decision.step is PlannedAction.RESTART
    table.start(run)
    assert len(table.pinot.visible_segments(TABLE)) == 1


def asserting(mode: str, expect: str) -> ModelTable:
    """A table of two files, whose rows an assertion counts."""
    table = make_table(mode)
    asked = Audit((Assertion(sql=f"SELECT COUNT(*) FROM {TABLE}", expect=expect),))
    table.spec_of = lambda options: replace(spec_of(options), audit=asked)
    write(A="A1", B="B1")(table)
    assert table.start(run).process.error is None
    return table


@pytest.mark.parametrize("mode", ["sync", "swap"])
@pytest.mark.parametrize("expect", ["> 0", "staged >= 0.5 * live", "after > 0"])
def test_files_that_lost_all_their_rows_do_not_pass_unasked(mode: str, expect: str) -> None:
    table = asserting(mode, expect)
    visible = table.pinot.visible_segments(TABLE)
    assert visible
    write(A="", B="")(table)
    table.start(run)
    assert (bool(table.truth.open_session), table.pinot.visible_segments(TABLE)) == (True, visible)
    write(A="A2", B="B2")(table)  # repaired
    table.start(run)
    assert not table.truth.open_session


def test_a_session_without_a_switch_is_asked_what_it_brings() -> None:
    table = asserting("sync", "> 0")
    write(C="")(table)
    table.start(run)
    assert table.truth.open_session
    write(C="C1")(table)
    table.start(run)
    assert not table.truth.open_session


def test_a_warning_of_a_session_without_a_switch_is_told() -> None:
    table = asserting("sync", "> 0")
    asked = Audit((Assertion(sql=f"SELECT COUNT(*) FROM {TABLE}", expect="> 0", severity="warn"),))
    table.spec_of = lambda options: replace(spec_of(options), audit=asked)
    write(C="")(table)
    notes: list[str] = []

    def run_noting(driver: Driver) -> TriggerReport:
        report = run(driver)
        notes.extend(driver.notes)
        return report

    table.start(run_noting)
    assert not table.truth.open_session
    assert [note for note in notes if "COUNT(*) is 0" in note]


def test_an_answer_that_comes_late_ends_a_session_without_a_switch_at_the_next_run() -> None:
    """Not in this one: nothing is staged that could be switched, and the step that switches says so."""
    table = asserting("sync", "staged >= 0 * live")
    write(C="")(table)
    ask = table.pinot.query_server

    def unanswered(*_: object) -> object:
        raise PinotUnreachable("away")

    table.pinot.query_server = unanswered  # type: ignore[method-assign,assignment]
    table.start(lambda driver: driver.trigger())
    table.pinot.query_server = ask  # type: ignore[method-assign]
    assert table.truth.open_session

    def look_again(driver: Driver) -> None:
        _, findings = driver.audit()
        assert not any(finding.blocks for finding in findings)
        driver.publish()

    error = table.start(look_again).process.error
    assert isinstance(error, SnapshotIncomplete)
    assert "has to be switched" in str(error)
    table.start(run)
    assert not table.truth.open_session
