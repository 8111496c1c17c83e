"""moto's S3 server, for the cases that need object versions, which the S3 part of the stack has not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from pinot_assets.core.waiting import MONOTONIC, Deadline, poll_until
from pinot_assets.errors import LocalStackError
from pinot_assets.local import processes
from pinot_assets.settings.local_stack import LOOPBACK

_PATIENCE = 60.0


@contextmanager
def moto_server(log: Path) -> Iterator[str]:
    """Run moto's server process for the length of the block; it keeps everything in memory.

    Any credentials will do. Needs the `dev` extra.

    :param log: where its output goes.
    :returns: its endpoint URL.
    :raises LocalStackError: it does not start.
    """
    port = processes.free_port(())
    url = f"http://{LOOPBACK}:{port}"
    command = [sys.executable, "-m", "moto.server", "--host", LOOPBACK, "--port", str(port)]
    with (
        log.open("ab") as output,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output) as server,
    ):
        try:
            _wait(server, url, log)
            yield url
        finally:
            server.terminate()


def _wait(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    def answers() -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{url}/moto-api/data.json", timeout=5, trust_env=False).status_code == 200
        return False

    deadline = Deadline(MONOTONIC, _PATIENCE)
    if not poll_until(deadline, 0.1, answers, lambda up: up or server.poll() is not None):
        raise LocalStackError(
            "moto's server did not start",
            why=f"the end of its log:\n{processes.tail(log)}\n",
            hint="install the development extra: pip install 'pinot-assets[dev]'",
        )
