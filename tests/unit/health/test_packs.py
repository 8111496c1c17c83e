from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from model.test_packs import fill, packing
from model.world.restored import snapshot
from model.world.table import ModelTable, run

from pinot_assets.core.check_result import CheckResult, Severity
from pinot_assets.health.packs import FEW_OPEN, packs
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.session.stores.staging import Staging
from pinot_assets.snapshot.manifest import Snapshot


def examine(table: ModelTable, now: Snapshot | None) -> CheckResult:
    staging = Staging(table.staging)
    staged = {info.key: info.fingerprint.size for info in table.staging.list()}
    probe = SimpleNamespace(
        spec=table.spec, snapshot=lambda: now, staged=lambda: staged, staging=lambda: staging
    )
    return packs(cast("TableProbe", probe))


@pytest.fixture
def table() -> ModelTable:
    made = packing("sync", maxMergeBytes="0")
    for names in ("AB", "CD"):
        fill(made, names)
        made.start(run)
    return made


def test_a_table_without_packs(table: ModelTable) -> None:
    answer = examine(table, replace(snapshot(table), packs=()))
    assert (answer.passed, answer.message) == (True, "the table has no packs")
    assert examine(table, None).passed


def test_packs_whose_rows_are_kept(table: ModelTable) -> None:
    answer = examine(table, snapshot(table))
    assert (answer.passed, answer.expected, answer.found) == (True, 2, 2)
    assert answer.numbers == {"packs": 2, "packs_open": 2, "packs_lost": 0}


@pytest.mark.parametrize("folder", ["rows", "packs"])
def test_what_a_pack_needs_is_lost(table: ModelTable, folder: str) -> None:
    for info in [*table.staging.list(folder)]:
        table.staging.delete(info.key)
    answer = examine(table, snapshot(table))
    assert (answer.passed, answer.severity, answer.found) == (False, Severity.ERROR, 0)
    assert "kept rows of 2 packs are missing" in answer.message
    assert "swap" in answer.next_step


def test_many_small_packs(table: ModelTable) -> None:
    now = snapshot(table)
    many = replace(now, packs=now.packs[:1] * (FEW_OPEN + 1))
    answer = examine(table, many)
    assert (answer.passed, answer.severity) == (False, Severity.WARN)
    assert "maxMergeBytes is 0" in answer.message
    assert "pinot-assets compact model" in answer.next_step
