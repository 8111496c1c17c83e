"""What docs/guides/realtime.md shows is true: its spec, its rules, its commands, its anchors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fakes.project import ROOT
from typer.main import get_group

from pinot_assets.assets.realtime import OPERATIONS
from pinot_assets.cli.realtime.group import app
from pinot_assets.realtime.health.all_checks import CHECKS
from pinot_assets.realtime.model.settings import table_settings
from pinot_assets.realtime.preflight.judge import RULES
from pinot_assets.table_spec import load_tables
from pinot_assets.table_spec.blocks.realtime import KEYS

DOCS = ROOT / "docs"
GUIDE = (DOCS / "guides" / "realtime.md").read_text()


def test_its_table_spec_is_valid(tmp_path: Path) -> None:
    (spec,) = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "clicks.yaml").write_text(spec)
    table = load_tables(tmp_path).realtime["clicks"]
    settings = table_settings(table.table_json)
    assert settings.pauseless
    assert settings.bypasses
    assert settings.download_timeout_s == 60
    assert table.dagster.repair_limit == 3


def test_every_rule_of_the_preflight_is_in_its_table() -> None:
    said = re.findall(r"^\| `([a-z_]+)` \|", GUIDE, re.MULTILINE)
    assert [name for name in said if name in {rule.name for rule in RULES}] == [r.name for r in RULES]


def test_every_check_that_can_fail_leads_to_a_row() -> None:
    told = {"committing_list", "replicas", "consumption_lag"}  # they say themselves all that is to be said
    assert [check.name for check in CHECKS if f"`{check.name}`" not in GUIDE and check.name not in told] == []


def test_every_job_is_listed() -> None:
    for operation in OPERATIONS:
        assert f"pinot_realtime_{operation.name}" in GUIDE or f"…_{operation.name.split('_')[-1]}" in GUIDE


def test_every_command_that_does_something_has_a_job() -> None:
    reads = {"status", "health"}  # an asset with observations; a job and a sensor of their own
    jobs = {operation.name for operation in OPERATIONS}
    for command in get_group(app).commands.keys() - reads:
        assert any(job.startswith(command.replace("-", "_")) for job in jobs), command


@pytest.mark.parametrize("command", sorted(set(re.findall(r"realtime ([a-z][a-z-]+) clicks", GUIDE))))
def test_every_command_is_there(command: str) -> None:
    assert command in get_group(app).commands


def test_every_anchor_leads_somewhere() -> None:
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in GUIDE.splitlines()
        if line.startswith("#")
    }
    assert set(re.findall(r"\]\(#([a-z0-9-]+)\)", GUIDE)) <= headings


def test_every_key_of_the_block_is_described() -> None:
    tables = (DOCS / "tables.md").read_text()
    section = tables[tables.index("## Keys of `realtime`") :]
    assert [key for key in KEYS if f"| `{key}` |" not in section] == []
