"""What opens the gate opens it for the files and the table spec that were audited, and for no others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.lives import make_table, planned, write
from model.specs import spec_of
from model.table import MODES, TABLE, Table, run

from pinot_assets.errors import SnapshotIncomplete
from pinot_assets.session.driver import Driver
from pinot_assets.session.forecast import Step
from pinot_assets.session.report import Report, Result
from pinot_assets.spec.audit_block import Assertion, Audit
from pinot_assets.spec.audit_check import EmptyOutputs


def staged_and_audited(driver: Driver) -> Report:
    """A job that ends before its last step."""
    report = driver.trigger()
    _, findings = driver.audit()
    assert all(finding.passed for finding in findings)
    return report


def without_check(driver: Driver) -> Report:
    """As somebody runs `segments` and `snapshot` alone."""
    report = driver.trigger()
    driver.publish()
    return report


def snapshot_alone(driver: Driver) -> Report:
    driver.publish()
    return Report(Result.STAGED, None, listed=0)


def audited_table(mode: str) -> Table:
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
    assert planned(table).forecast.step is Step.RESTART
    table.start(run)
    assert len(table.pinot.visible_segments(TABLE)) == 1


def asserting(mode: str, expect: str) -> Table:
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
    seen = table.pinot.visible_segments(TABLE)
    assert seen
    write(A="", B="")(table)
    table.start(run)
    assert (bool(table.truth.open_session), table.pinot.visible_segments(TABLE)) == (True, seen)
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
