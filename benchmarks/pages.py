"""Seconds of Dagster's pages, as a browser sees them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from in_memory import NAME
from playwright.sync_api import Request, sync_playwright

from pinot_assets.local import processes

PATIENCE_S = 300


@contextmanager
def webserver(home: Path, tables: Path) -> Iterator[str]:
    """`dagster-webserver` on the code location with these tables; its URL."""
    port = processes.free_port(())
    env = {**os.environ, "DAGSTER_HOME": str(home), "PINOT_ASSETS_TABLES": str(tables)}
    command = [sys.executable, "-m", "dagster_webserver", "-m", "pinot_assets.definitions"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with (home / "webserver.log").open("wb") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _await(url)
        yield url
    finally:
        server.terminate()
        server.wait()


def _await(url: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            if httpx.get(f"{url}/server_info", timeout=5, trust_env=False).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    raise TimeoutError(f"{url} does not come up")


def measure(url: str, key: str) -> dict[str, float] | None:
    """Seconds to the first partition's text, and of the slowest GraphQL queries of the page.

    :param key: a partition that the page shows at once.
    :returns: None where Chromium is not installed.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        return None
    seconds: dict[str, float] = defaultdict(float)

    def note(request: Request) -> None:
        if (match := re.search(r"/graphql\b", request.url)) and request.timing["responseEnd"] > 0:
            operation = (request.post_data_json or {}).get("operationName", match[0])
            seconds[operation] = max(seconds[operation], request.timing["responseEnd"] / 1000)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("requestfinished", note)
        # The first visit loads the application itself; the measured one is of a warm browser.
        page.goto(f"{url}/assets/{NAME}", timeout=PATIENCE_S * 1000)
        page.wait_for_load_state("networkidle", timeout=PATIENCE_S * 1000)
        seconds.clear()
        begun = time.perf_counter()
        page.goto(f"{url}/assets/{NAME}/segments?view=partitions", timeout=PATIENCE_S * 1000)
        page.get_by_text(key, exact=False).first.wait_for(timeout=PATIENCE_S * 1000)
        first = time.perf_counter() - begun
        page.wait_for_load_state("networkidle", timeout=PATIENCE_S * 1000)
        browser.close()
    slowest = sorted(seconds.items(), key=lambda item: -item[1])[:6]
    return {"first partition": first, **dict(slowest)}
