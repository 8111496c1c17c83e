"""docs/stuck.md has a line for each word of `status`, and for each check that blocks by default."""

from __future__ import annotations

import re
from typing import get_args

from fakes.project import ROOT

from pinot_assets.session.detect.table_status import TableCondition
from pinot_assets.table_spec.blocks.audit import LossName

PAGE = (ROOT / "docs" / "stuck.md").read_text(encoding="utf-8")
AUDIT = (ROOT / "docs" / "guides" / "audit.md").read_text(encoding="utf-8")
RULES = ROOT / "pinot_assets" / "audit"


def first_cells(page: str, heading: str) -> list[str]:
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)[1:]


def names(cells: list[str]) -> set[str]:
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_word_of_status_has_a_line() -> None:
    assert names(first_cells(PAGE, "Queries do not show what the files say")) >= {*TableCondition}


def test_every_check_that_blocks_by_default_has_a_line() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| error \|$", AUDIT, re.MULTILINE)
    assert {*get_args(LossName), "cut_at_nul", "replicas_online"} <= {*rows}
    assert {*rows} - names(first_cells(PAGE, "The audit does not pass")) == set()


def test_the_guide_lists_the_checks_of_the_code_and_no_other() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in RULES.glob("*.py"))
    made = {*re.findall(r'(?:finding_of|Finding|_loss_of_files)\(\s*f?"(\w+)', code)}
    made |= {*get_args(LossName), "cut_at_nul", "cut_at_max_length", "times_replaced", "row_change"}
    assert len(made) > 20
    assert made == {name for name in names(first_cells(AUDIT, "All checks")) if "_" in name}
