"""A real `dagster dev` on the local stack, and a browser in front of it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright
from ui.console import Console
from ui.flights import Flights

from pinot_assets.local import processes, ui
from pinot_assets.settings.local_stack import StackState

ROOT = Path(__file__).parents[2]
BROWSER = "PINOT_ASSETS_CHROMIUM"
"""Environment variable with the browser's path, for a Chromium that is not `chromium` on the PATH."""
SIZE = (1280, 800)


@pytest.fixture(scope="module")
def flights(stack: StackState) -> Iterator[Flights]:
    """The table, made in Pinot, without files; its folder has a name to be shown."""
    with tempfile.TemporaryDirectory(prefix="data-") as folder:
        table = Flights(Path(folder), stack)
        table.create()
        yield table
        table.drop()


@pytest.fixture(scope="module")
def url(stack: StackState, flights: Flights) -> Iterator[str]:
    """Webserver, daemon and code server with the shipped dagster.yaml and workspace.yaml."""
    home = flights.folder / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PINOT_CONTROLLER_URL", stack.controller_url)
        patch.setenv("PINOT_ZOOKEEPER", stack.zookeeper)
        patch.setenv("PINOT_ASSETS_TABLES", str(flights.tables))
        patch.setenv("DAGSTER_HOME", "")  # `start` sets it; this puts it back
        # Not the port of a `make dev` that may be started beside it.
        patch.setattr(ui, "PREFERRED_PORT", processes.free_port(()))
        yield ui.start(home, ROOT)
        ui.stop(home)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A tab of headless Chromium."""
    browser = os.environ.get(BROWSER) or shutil.which("chromium")
    assert browser, f"install Debian's package chromium, or name a Chromium in {BROWSER}"
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        # Its sandbox does not start as root, as in a container; it opens nothing but pages of this test.
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        width, height = SIZE
        tab = chromium.new_page(viewport={"width": width, "height": height}, timezone_id="UTC")
        tab.set_default_timeout(60_000)
        yield tab
        chromium.close()


@pytest.fixture(scope="module")
def console(page: Page, url: str) -> Console:
    """Dagster's pages; screenshots go where the docs show them."""
    shots = ROOT / "docs" / "ui"
    shots.mkdir(exist_ok=True)
    return Console(page, url, shots)
