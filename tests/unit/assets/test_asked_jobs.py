"""What the jobs pinot_compact and pinot_rebuild do, on tables of the model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import cast

import dagster as dg
import pytest
from model.test_merges import arrivals, names_of
from model.world.restored import rows, snapshot
from model.world.table import ModelTable

from pinot_assets.assets.asked_jobs import act_compact, act_rebuild
from pinot_assets.core.json_object import JsonObject
from pinot_assets.session.driver import Driver

Act = Callable[[Driver, JsonObject, dg.DagsterLogManager], str]
LOG = cast("dg.DagsterLogManager", logging.getLogger("asked jobs"))


def job(table: ModelTable, act: Act, config: JsonObject) -> str:
    texts: list[str] = []

    def work(driver: Driver) -> None:
        driver.take()  # as a job does, before it looks
        texts.append(act(driver, config, LOG))

    error = table.start(work).process.error
    if error is not None:
        raise error
    return texts[0]


def three_packs() -> ModelTable:
    table = arrivals("sync", "AB", "CD", "E", maxMergeBytes="0")
    del table.options["layout.maxMergeBytes"]
    assert len(snapshot(table).packs) == 3
    return table


def test_small_segments_are_merged(caplog: pytest.LogCaptureFixture) -> None:
    table = three_packs()
    with caplog.at_level(logging.INFO):
        assert job(table, act_compact, {"dry_run": False}) == "queries see 1 segment, 10 rows now"
    assert [pack.files for pack in snapshot(table).packs] == [5]
    assert rows(table) == names_of("ABCDE")
    assert "merges: 3 small packs of 5 files" in caplog.text
    assert "packs_as_read" in caplog.text
    assert job(table, act_compact, {"dry_run": False}).startswith("nothing is done: a run ")


def test_a_dry_run_only_shows_it(caplog: pytest.LogCaptureFixture) -> None:
    table = three_packs()
    with caplog.at_level(logging.INFO):
        assert job(table, act_compact, {"dry_run": True}) == "nothing was done: dry_run is set"
    assert "merges: 3 small packs of 5 files" in caplog.text
    assert len(snapshot(table).packs) == 3


def test_a_file_that_cannot_be_read_fails_the_job() -> None:
    table = three_packs()
    table.source.write("F", b"!")
    with pytest.raises(dg.Failure, match="not everything was published"):
        job(table, act_compact, {"dry_run": False})
    assert rows(table) == names_of("ABCDE")


def test_files_are_built_again_that_the_spec_would_build_otherwise() -> None:
    table = arrivals("sync", "AB")
    table.options["filter"] = "v = 'A1'"
    assert job(table, act_rebuild, {"files": "A", "dry_run": True}) == "nothing was done: dry_run is set"
    assert job(table, act_rebuild, {"files": "A", "dry_run": False}) == "queries see 2 segments, 3 rows now"
    with pytest.raises(dg.Failure, match=r"not everything was published: .*emptied_files"):
        job(table, act_rebuild, {"files": "", "dry_run": False})  # B would have no row
    assert rows(table) == {"A1": 1, "B1": 1, "B2": 1}
