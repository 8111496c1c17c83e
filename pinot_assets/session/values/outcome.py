"""The results of a run: of each step of its driver, and of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pinot_assets.audit.checks import Finding
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError, PlanOutdated, SessionHeld, SnapshotIncomplete
from pinot_assets.session.values.report import TriggerReport
from pinot_assets.session.values.state import Session
from pinot_assets.session.values.trouble import passes
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Failure


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The result of one step of a driver, for metrics and lineage events.

    :ivar seconds: wall time.
    :ivar result: the value that the step returned, or the error that it raised.
    """

    seconds: float
    result: object

    @property
    def outcome(self) -> Mapping[str, str]:
        """The result in a word or two, for the log."""
        if isinstance(self.result, PinotAssetsError):
            return {"error": type(self.result).__name__, "reason": self.result.reason}
        if isinstance(self.result, Exception):
            return {"error": type(self.result).__name__}
        if isinstance(self.result, TriggerReport):
            return {"result": self.result.result}
        if isinstance(self.result, Snapshot):
            return {"result": "PUBLISHED", "snapshot": self.result.session}
        if isinstance(self.result, tuple) and len(self.result) == 2 and isinstance(self.result[0], Session):
            return {"result": "PASSED" if self.result[0].gate_open else "SHUT"}
        return {}


def was_turned_away(steps: Mapping[str, StepRecord]) -> bool:
    """Whether the driver did nothing, because another one holds the lease or because its plan was outdated.
    Then the driver that works on the table, or did last, reports on the table."""
    return any(isinstance(step.result, SessionHeld | PlanOutdated) for step in steps.values())


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended.

    :ivar findings: findings of the audit; empty if there was nothing to audit.
    :ivar snapshot: the snapshot that the run published, None if it published none.
    :ivar refusal: why the gate stayed shut.
    :ivar left_out: files that failed while others were published (a plain push).
    """

    report: TriggerReport
    findings: tuple[Finding, ...] = ()
    snapshot: Snapshot | None = None
    refusal: SnapshotIncomplete | None = None
    left_out: tuple[Failure, ...] = ()

    @property
    def failed(self) -> tuple[Failure, ...]:
        """The files that could not be built or published."""
        return self.report.failed or self.left_out

    @property
    def may_pass(self) -> bool:
        """Whether only trouble that passes kept the run from publishing everything; it is tried again."""
        if self.failed:
            return passes(self.failed)
        blocking = [finding for finding in self.findings if finding.blocks]
        return bool(blocking) and not any(finding.blames or finding.of_data for finding in blocking)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the command: REFUSED if the gate stayed shut or files were left out."""
        return ExitCode.REFUSED if self.refusal is not None or self.left_out else ExitCode.DONE

    @property
    def values(self) -> JsonObject:
        """The outcome as plain values, for `--json`."""
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
                "rebuilt": len(report.rebuilt),
                "built": len(report.built),
                "kept": report.kept,
            },
            "failed": [
                {"file": failure.uri, "code": failure.code, "reason": failure.reason}
                for failure in self.failed
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
