"""Runs that do something with published files because a person asks for it: `compact` and `rebuild`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from pinot_assets.audit.checks import Finding
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.session.driver import Driver
from pinot_assets.session.values.outcome import RunOutcome
from pinot_assets.session.values.outdated import CompactRequest, Request


def run_planned(
    driver: Driver, plan_hash: str, request: Request, on_findings: Callable[[Sequence[Finding]], None]
) -> RunOutcome:
    """Make one run of a plan that was shown.

    :param on_findings: as for `Driver.gate_and_publish`.
    :raises PinotAssetsError: as `Driver.trigger_planned`.
    """
    return driver.gate_and_publish(driver.trigger_planned(plan_hash, request), on_findings)


def compact_in_rounds(
    driver: Driver, plan_hash: str, on_findings: Callable[[Sequence[Finding]], None]
) -> RunOutcome:
    """Merge packs until no round leaves fewer segments; the first round is a plan that was shown.

    :returns: how the last round ended: the first one that did not publish everything, if one did not.
    :raises PinotAssetsError: as `run_planned`.
    """
    request, segments = CompactRequest(), math.inf
    while True:
        outcome = run_planned(driver, plan_hash, request, on_findings)
        if outcome.exit_code is not ExitCode.DONE:
            return outcome
        planned, before = driver.plan(request), segments
        segments = len(planned.planned.visible)
        if not planned.compacts or segments >= before:  # a round that brings nothing is the last
            return outcome
        plan_hash = planned.planned.plan_basis.hash
