"""`make demo`, ended while its servers start: it stops them and removes its folder, `kill -9` or not."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from fakes.processes.middles import place, started
from fakes.project import ROOT
from fakes.waiting import until

from pinot_assets.local.stack import Stack
from pinot_assets.settings.local_stack import default_cache, load_record

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_server_goes_on(tmp_path: Path, number: signal.Signals) -> None:
    home = tmp_path / ".pinot-assets" / "demo"
    with place(tmp_path) as here:
        here.environment |= {
            "PINOT_ASSETS_CACHE": str(default_cache()),
            "PINOT_ASSETS_TABLES": str(ROOT / "tables"),
            "PYTHONPATH": str(ROOT),  # demos are no part of the package
        }
        try:
            with started(here, "", "demos") as process:
                until(lambda: "zookeeper" in getattr(load_record(home / "stack"), "processes", ()))
                os.killpg(process.pid, number) if number == signal.SIGINT else process.kill()
                assert process.wait(60) == (130 if number == signal.SIGINT else -number)
            until(lambda: not here.marked())
        finally:
            Stack(home / "stack").purge()
        assert not home.exists()
        assert [*here.tmp.iterdir()] == []
        assert "Traceback" not in here.said.read_text()
