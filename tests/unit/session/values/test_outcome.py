"""Whether a run that did not publish everything is tried again by itself."""

from __future__ import annotations

import pytest

from pinot_assets.audit.checks import Finding
from pinot_assets.session.values.outcome import RunOutcome
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.snapshot.receipt import Failure

SERVERS_AWAY = Finding("servers_answered", False, 2, 1, "s2 did not answer")
WRONG_CRC = Finding("crc_as_built", False, 1, 0, "other CRC", at_fault=("s",))
FEW_ROWS = Finding("shrunk_table", False, 9, 1, "lost rows", of_data=True)


@pytest.mark.parametrize(
    ("findings", "codes", "passes"),
    [
        ((SERVERS_AWAY,), (), True),
        ((SERVERS_AWAY, WRONG_CRC), (), False),
        ((FEW_ROWS,), (), False),
        ((), (), False),
        ((SERVERS_AWAY,), ("UNREADABLE",), False),
        ((), ("VANISHED", "VANISHED"), True),
        ((), ("VANISHED", "UNREADABLE"), False),
    ],
)
def test_only_trouble_that_passes_is_tried_again(
    findings: tuple[Finding, ...], codes: tuple[str, ...], passes: bool
) -> None:
    failed = tuple(Failure("file:///a", 0, 0, code, "no") for code in codes)
    report = TriggerReport(TriggerResult.FAILED, None, 1, failed=failed)
    assert RunOutcome(report, findings).may_pass is passes
