"""One run of a table, as `run` and `watch` do it: what a trigger left is gated, and switched to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pinot_assets.audit.checks import Finding
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SnapshotIncomplete
from pinot_assets.session.driver import Driver
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure

STAGED = (TriggerResult.STAGED, TriggerResult.FAILED)
"""Triggers that leave something to gate."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended.

    :ivar findings: of the gate; none where nothing was to be gated.
    :ivar snapshot: what queries see now, None where nothing was switched to.
    :ivar refusal: why the gate stayed shut.
    :ivar left_out: files that failed while others were published (a plain push).
    """

    report: TriggerReport
    findings: tuple[Finding, ...] = ()
    snapshot: Snapshot | None = None
    refusal: SnapshotIncomplete | None = None
    left_out: tuple[Failure, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """What a command ends with."""
        return ExitCode.REFUSED if self.refusal is not None or self.left_out else ExitCode.DONE

    @property
    def values(self) -> JsonObject:
        """For other programs."""
        report, snapshot = self.report, self.snapshot
        return {
            "result": report.result.value,
            "summary": report.summary,
            "session": None if report.session is None else report.session.id,
            "files": {
                "listed": report.listed,
                "new": len(report.new),
                "rewritten": len(report.rewritten),
                "deleted": len(report.deleted),
                "built": len(report.built),
                "kept": report.kept,
            },
            "failed": [
                {"file": failure.uri, "code": failure.code, "reason": failure.reason}
                for failure in (report.failed or self.left_out)
            ],
            "notReady": [f"{unready.uri} {unready.why}" for unready in report.unready],
            "checks": [
                {"name": f.name, "passed": f.passed, "warns": f.warns, "message": f.message}
                for f in self.findings
            ],
            "switched": None
            if snapshot is None
            else {
                "session": snapshot.session,
                "files": len(snapshot.ledger),
                "segments": len(snapshot.segments),
                "rows": snapshot.rows,
            },
            "notSwitched": None if self.refusal is None else self.refusal.reason,
            "exit": int(self.exit_code),
        }


def finish(driver: Driver, report: TriggerReport, found: Callable[[Finding], None]) -> RunOutcome:
    """Gate what a trigger staged, and switch to it.

    :param found: is told each finding of the gate before the switch.
    """
    if report.result not in STAGED:
        return RunOutcome(report, left_out=report.failed)
    _, findings = driver.audit()
    for finding in findings:
        found(finding)
    try:
        snapshot = driver.publish()
    except SnapshotIncomplete as error:
        return RunOutcome(report, findings, refusal=error)
    return RunOutcome(report, findings, snapshot, left_out=tuple(driver.last_failures()))
