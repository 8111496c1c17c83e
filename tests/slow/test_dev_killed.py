"""`dev`, killed while the Dagster UI starts: what had started goes on, and `down` stops it all (a minute)."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from fakes.processes.middles import place, started
from fakes.waiting import until

from pinot_assets.local.stack import Stack
from pinot_assets.settings.local_stack import default_cache

pytestmark = pytest.mark.integration


def test_down_stops_all_of_a_dev_that_was_killed(tmp_path: Path) -> None:
    for name in ("workspace.yaml", "dagster.yaml"):
        shutil.copy(Path(__file__).parents[2] / name, tmp_path)
    with place(tmp_path) as here:
        here.environment |= {
            "PINOT_CONTROLLER_URL": "",
            "PINOT_ZOOKEEPER": "",
            "PINOT_ASSETS_CACHE": str(default_cache()),
        }
        try:
            with started(here, "dev --yes") as process:
                until((here.home / "logs" / "dagster.log").exists, 180)
                process.kill()
                process.wait()
            assert len(here.marked()) >= 7, "two brokers, two servers, controller, ZooKeeper, Dagster"
            with started(here, "down") as process:
                assert process.wait(120) == 0
            assert here.marked() == []
            with started(here, "dev --yes") as process:
                until((here.home / "dagster.json").exists, 180)
                os.killpg(process.pid, signal.SIGINT)
                assert process.wait(60) == 130
            assert (
                "interrupted; what had started is still running: `pinot-assets down` stops it"
                in here.said.read_text()
            )
            with started(here, "down") as process:
                assert process.wait(120) == 0
            assert here.marked() == []
        finally:
            Stack(here.home).purge()
