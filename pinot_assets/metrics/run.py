"""What one run did, of the steps of its driver: pushed at its end, for nobody can scrape it afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pinot_assets.audit.checks import Finding
from pinot_assets.metrics.family import Sample, gauge
from pinot_assets.metrics.session import CHECK_EXPECTED, CHECK_FOUND, CHECK_PASSED
from pinot_assets.session.driver import StepRecord
from pinot_assets.session.values.report import TriggerReport, TriggerResult

ENDED = gauge("run_end_timestamp_seconds", "When the newest run ended.")
SUCCESS = gauge(
    "run_success", "1 where the newest run failed in nothing: no error, no file left out, gate open."
)
STEP_SECONDS = gauge("run_step_duration_seconds", "Wall time of each step of the newest run.", "step")
BUILD_SECONDS = gauge("run_build_duration_seconds", "Wall time of the newest run's build.")
RUN_FILES = gauge("run_files", "Files of the newest run, by what became of them in it.", "state")
RUN_ROWS = gauge("run_rows", "Rows that the newest run built.")
BAD_ROWS = gauge("run_bad_rows", "Rows that the newest run put aside.")

FAMILIES = (ENDED, SUCCESS, STEP_SECONDS, BUILD_SECONDS, RUN_FILES, RUN_ROWS, BAD_ROWS)


def run_samples(table: str, steps: Mapping[str, StepRecord], ended_s: float) -> Iterator[Sample]:
    """:param steps: of the driver, by name, at least one.
    :param ended_s: seconds since the epoch.
    """
    yield ENDED.of(ended_s, table)
    yield SUCCESS.of(not any(_failed(step.result) for step in steps.values()), table)
    yield from (STEP_SECONDS.of(step.seconds, table, name) for name, step in steps.items())
    for step in steps.values():
        if isinstance(step.result, TriggerReport):
            yield from _report(table, step.result)
        for finding in _findings(step.result):
            yield from _check(table, finding)


def _failed(result: object) -> bool:
    if isinstance(result, TriggerReport):
        return result.result is TriggerResult.FAILED or bool(result.failed)
    return isinstance(result, Exception) or any(finding.blocks for finding in _findings(result))


def _findings(result: object) -> tuple[Finding, ...]:
    """Those of a step that answered with some, as `Driver.audit` does: session and findings."""
    found = result[1] if isinstance(result, tuple) and len(result) == 2 else ()
    return tuple(finding for finding in found if isinstance(finding, Finding))


def _report(table: str, report: TriggerReport) -> Iterator[Sample]:
    yield BUILD_SECONDS.of(report.build_seconds, table)
    yield RUN_FILES.of(len(report.built), table, "built")
    yield RUN_FILES.of(report.kept, table, "kept")
    yield RUN_FILES.of(len(report.failed), table, "failed")
    yield RUN_ROWS.of(sum(receipt.rows for receipt in report.built), table)
    yield BAD_ROWS.of(report.bad_rows, table)


def _check(table: str, finding: Finding) -> Iterator[Sample]:
    yield CHECK_PASSED.of(finding.passed, table, finding.name)
    yield CHECK_EXPECTED.of(finding.expected, table, finding.name)
    yield CHECK_FOUND.of(finding.found, table, finding.name)
