"""`local up`, ended half-way twice: what had started goes on, as it says, and `local down` stops it all."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.processes.middles import Place, place, started
from fakes.waiting import until

from pinot_assets.local.stack import Stack
from pinot_assets.settings.local_stack import default_cache, load_record

pytestmark = pytest.mark.integration


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as typed_in:
        typed_in.environment["PINOT_ASSETS_CACHE"] = str(default_cache())
        try:
            yield typed_in
        finally:
            Stack(typed_in.home).purge()


def test_down_stops_all_of_an_up_that_was_killed(here: Place) -> None:
    with started(here, "local up") as process:
        until(lambda: "zookeeper" in begun(here))
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) == 130
    said = here.said.read_text()
    assert "interrupted; what had started is still running: `pinot-assets local down` stops it" in said
    assert "Traceback" not in said
    assert [*begun(here)] == ["zookeeper"]
    with started(here, "local up") as process:
        until(lambda: "controller" in begun(here))
        process.kill()
    assert len(here.marked()) >= 2, "ZooKeeper goes on, and the controller"
    with started(here, "local down") as process:
        assert process.wait(60) == 0
    assert here.marked() == []
    assert [*here.tmp.iterdir()] == []


def begun(here: Place) -> dict[str, object]:
    record = load_record(here.home)
    return {} if record is None else {**record.processes}
