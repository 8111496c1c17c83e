"""docs/operations.md has a section or a row for everything that calls a person."""

from __future__ import annotations

import re

import pytest
import yaml
from fakes.project import ROOT
from pymdownx.slugs import slugify

from pinot_assets.health import CHECKS
from pinot_assets.realtime.health.all_checks import CHECKS as OF_STREAMS
from pinot_assets.sensors import notice
from pinot_assets.session.detect.observe import Observation
from pinot_assets.session.values.hold import NO_HOLD
from pinot_assets.session.values.state import Pointer

BOOK = (ROOT / "docs" / "operations.md").read_text()
ALERTS = {
    rule["alert"]: rule["annotations"]["runbook_url"]
    for group in yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
}


def sections() -> dict[str, str]:
    """Anchor of each heading → its text, up to the next one."""
    parts = re.split(r"^##+ (.+)$", BOOK, flags=re.MULTILINE)
    to_anchor = slugify(case="lower")
    return {to_anchor(title, "-"): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def row_of(name: str) -> list[str]:
    """The cells behind a name in a table."""
    (row,) = re.findall(rf"^\| `{name}` \|(.*)\|$", BOOK, re.MULTILINE)
    return [cell for cell in row.split("|") if cell.strip()]


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_its_section(alert: str) -> None:
    page, _, anchor = ALERTS[alert].partition("#")
    assert page == "operations.md"
    section = sections()[anchor]
    assert re.findall(r"^- \*\*(.+?)\*\* \S", section, re.MULTILINE) == ["Means.", "Look.", "Do.", "Do not."]


def test_no_section_is_of_an_alert_that_is_gone() -> None:
    told = {anchor for anchor in sections() if anchor.startswith("pinotassets")}
    assert told == {alert.lower() for alert in ALERTS}


@pytest.mark.parametrize("name", [check.name for check in (*CHECKS, *OF_STREAMS)])
def test_every_health_check_has_its_row(name: str) -> None:
    assert len(row_of(name)) == 3, "means, do, do not"


def test_every_notice_of_the_webhook_has_its_row() -> None:
    nothing = Observation(Pointer(), None, (), {}, None, None, NO_HOLD)
    texts = (
        notice.of_stream_table()["text"],
        notice.of_table(nothing)["text"],
        notice.without_table("")["text"].partition(":")[0],
    )
    assert [len(row_of(text)) for text in texts] == [2, 2, 2]
    for key in ("failed_steps", "failed_checks", "will_be_retried"):
        assert f"`{key}`" in BOOK
