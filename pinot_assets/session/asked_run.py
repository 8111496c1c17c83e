"""Runs that do something with published files because a person asks for it: `compact` and `rebuild`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pinot_assets.audit.checks import Finding
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.values.outcome import RunOutcome
from pinot_assets.session.values.outdated import CompactRequest, Request

OnFindings = Callable[[Sequence[Finding]], None]
"""Called with the findings of the audit before a switch, as by `Driver.gate_and_publish`."""


def is_asked_in(plan: PlanReport, request: Request) -> bool:
    """Whether a run of this plan does what the request asks for."""
    return plan.compacts if isinstance(request, CompactRequest) else bool(plan.rebuilds)


def run_asked(driver: Driver, plan_hash: str, request: Request, on_findings: OnFindings) -> RunOutcome:
    """Do what is asked for, beginning with a plan that was shown; a compaction goes in rounds.

    :raises PinotAssetsError: as `Driver.trigger_planned`.
    """
    if isinstance(request, CompactRequest):
        return _compact_in_rounds(driver, plan_hash, on_findings)
    return run_planned(driver, plan_hash, request, on_findings)


def run_planned(driver: Driver, plan_hash: str, request: Request, on_findings: OnFindings) -> RunOutcome:
    """Make one run of a plan that was shown.

    :raises PinotAssetsError: as `Driver.trigger_planned`.
    """
    return driver.gate_and_publish(driver.trigger_planned(plan_hash, request), on_findings)


def _compact_in_rounds(driver: Driver, plan_hash: str, on_findings: OnFindings) -> RunOutcome:
    """Merge packs until no round leaves fewer segments; return how the last round ended: the first one that
    did not publish everything, if one did not."""
    request, segments = CompactRequest(), math.inf
    while True:
        outcome = run_planned(driver, plan_hash, request, on_findings)
        if outcome.exit_code is not ExitCode.DONE:
            return outcome
        planned, before = driver.plan(request), segments
        segments = len(planned.planned.visible)
        if not is_asked_in(planned, request) or segments >= before:  # a round that brings nothing is the last
            return outcome
        plan_hash = planned.planned.plan_basis.hash
