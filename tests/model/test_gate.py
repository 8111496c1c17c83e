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
from pinot_assets.spec.audit_block import Audit
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
