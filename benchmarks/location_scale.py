"""What a code location of many tables takes: its import, its memory, and a round of ticks of its sensors.

`make bench-location` starts Dagster's own code server and daemon on this machine, and a real ZooKeeper. The
tables have real files on disk; none of them is published, and there is no Pinot. The same is measured of a
location of plain Dagster with as many assets, checks, jobs and sensors (`bare_location.py`): the floor.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import psutil
import yaml
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._grpc.client import DagsterGrpcClient
from fakes.tables import SYNC, document
from fakes.zookeeper.server import zookeeper_server
from rich.console import Console

from pinot_assets.local import processes
from pinot_assets.zookeeper import close_client, connect

CONSOLE = Console(width=160, highlight=False)
CLUSTER = "PinotCluster"
MOST_TIMES_FLOOR = 2.0
MOST_BYTES = 450e6
"""What 500 tables may take: CPU time of the import as a multiple of the floor's, and memory."""
PATIENCE_S = 3600.0
INSTANCE = """
telemetry: {enabled: false}
nux: {enabled: false}
concurrency: {runs: {max_concurrent_runs: 0}}
sensors: {use_threads: true, num_workers: 8}
"""
"""Nothing is launched: what a run takes is not measured here."""


@dataclass(frozen=True)
class Measured:
    """What one location took.

    :ivar import_s: CPU seconds until the code server has sent its definitions once.
    :ivar rss: bytes of the code server after the round; `pss` shares pages with other processes.
    :ivar round_s: CPU seconds of code server and daemon for a round of ticks.
    :ivar wall_s: how long the round took.
    """

    import_s: float
    rss: int
    pss: int
    round_s: float
    wall_s: float


ARENAS = {"MALLOC_ARENA_MAX": "2"}
"""As the chart sets it: by default glibc keeps freed memory in eight arenas for each core (docs/scale.md)."""


class Location:
    """A code server of one module, and a daemon that ticks its sensors."""

    def __init__(self, home: Path, module: str, env: dict[str, str], stack: ExitStack) -> None:
        self.home, self._stack = home, stack
        home.mkdir()
        (home / "dagster.yaml").write_text(INSTANCE)
        self.port = processes.free_port(())
        place = {"host": "127.0.0.1", "port": self.port, "location_name": "bench"}
        (home / "workspace.yaml").write_text(yaml.safe_dump({"load_from": [{"grpc_server": place}]}))
        self._env = {**os.environ, **ARENAS, **env, "DAGSTER_HOME": str(home)}
        serve = ["api", "grpc", "-m", module, "--host", "127.0.0.1", "--port", str(self.port)]
        self.server = self._start("-m", "dagster", *serve, "--location-name", "bench")

    def _start(self, *arguments: str) -> psutil.Process:
        with (self.home / "log").open("ab") as log:
            process = subprocess.Popen([sys.executable, *arguments], env=self._env, stdout=log, stderr=log)
        self._stack.callback(stop, process)
        return psutil.Process(process.pid)

    def import_s(self) -> float:
        """CPU seconds of the code server until it has sent all its definitions."""
        client = DagsterGrpcClient(port=self.port, host="127.0.0.1")
        until(lambda: answers(client))
        place = GrpcServerCodeLocationOrigin(host="127.0.0.1", port=self.port, location_name="bench")
        # As daemon and web server ask: they fetch a job's own structure when somebody opens it.
        client.external_repository(RemoteRepositoryOrigin(place, "__repository__"), defer_snapshots=True)
        return cpu_s(self.server)

    def switch_on(self) -> None:
        """All sensors, as `dagster sensor start` does it."""
        command = [sys.executable, "-m", "dagster", "sensor", "start", "--start-all", "-w", "workspace.yaml"]
        subprocess.run(command, cwd=self.home, env=self._env, check=True, capture_output=True)

    def round(self, sensors: int) -> tuple[float, float]:
        """CPU and wall seconds of code server and daemon until so many sensors have ended a tick."""
        before, began = cpu_s(self.server), time.monotonic()
        daemon = self._start("-m", "dagster._daemon", "run", "-w", str(self.home / "workspace.yaml"))
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            until(lambda: ticked(instance, sensors))
        return cpu_s(daemon) + cpu_s(self.server) - before, time.monotonic() - began


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process; a code server may take no notice of a polite request."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def answers(client: DagsterGrpcClient) -> bool:
    """Whether the code server has loaded its definitions."""
    try:
        client.ping("ready?")
        client.list_repositories()
    except Exception:  # of several kinds, until it is up
        return False
    return True


def until(ends: Callable[[], bool]) -> None:
    """Wait, a second at a time."""
    end = time.monotonic() + PATIENCE_S
    while not ends():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {PATIENCE_S:.0f} s")
        time.sleep(1)


def cpu_s(process: psutil.Process) -> float:
    """CPU seconds of a process and what it has started."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        times = one.cpu_times()
        total += times.user + times.system
    return total + process.cpu_times().children_user + process.cpu_times().children_system


def ticked(instance: dg.DagsterInstance, sensors: int) -> bool:
    """Whether so many sensors have ended a tick."""
    states = instance.all_instigator_state()
    with_data = [one for one in states if getattr(one.instigator_data, "last_tick_timestamp", None)]
    return len(with_data) >= sensors


def write_tables(folder: Path, tables: int, files: int) -> None:
    """Tables of so many files each, that are too young to be loaded."""
    (folder / "tables").mkdir()
    for name in [f"t{number:03}" for number in range(tables)]:
        source = folder / "source" / name
        source.mkdir(parents=True)
        for number in range(files):
            (source / f"F{number:03}.csv").write_text("v\na\n")
        ingestion = {
            **SYNC,
            "inputDirURI": str(source),
            "inputFormat": "csv",
            "output.segment.dir.uri": str(folder / "staging"),
            "minFileAgeSec": str(10**6),
        }
        text = yaml.safe_dump(document(name, {"v": "STRING"}, ingestion), sort_keys=False)
        (folder / "tables" / f"{name}.yaml").write_text(text)


@contextmanager
def cluster(home: Path) -> Iterator[str]:
    """A ZooKeeper with an empty Pinot cluster."""
    with zookeeper_server(home) as address:
        client = connect(address)
        for part in ("PROPERTYSTORE", "IDEALSTATES", "EXTERNALVIEW", "INSTANCES", "CONFIGS", "LIVEINSTANCES"):
            client.ensure_path(f"/{CLUSTER}/{part}")
        close_client(client)
        yield address


def measure(home: Path, module: str, env: dict[str, str], sensors: int) -> Measured:
    """Measure one location, over a round: until each of so many sensors has ended a tick."""
    with ExitStack() as stack:
        location = Location(home, module, env, stack)
        import_s = location.import_s()
        location.switch_on()
        round_s, wall_s = location.round(sensors)
        memory = location.server.memory_full_info()
    return Measured(import_s, memory.rss, memory.pss, round_s, wall_s)


def show(what: str, one: Measured) -> None:
    """A row of a Markdown table."""
    CONSOLE.print(
        f"| {what} | {one.import_s:.1f} s | {one.rss / 1e6:.0f} MB ({one.pss / 1e6:.0f}) "
        f"| {one.round_s:.1f} s | {one.wall_s:.0f} s |"
    )


def main() -> None:
    """Measure both; exit with 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--files", type=int, default=100, help="of each table")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="location-scale-"))
    try:
        write_tables(folder, asked.tables, asked.files)
        CONSOLE.print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
        CONSOLE.print("| location | import, CPU | code server, RSS (PSS) | a round of ticks, CPU | it took |")
        CONSOLE.print("|---|---|---|---|---|")
        bare = {"BARE_TABLES": str(asked.tables), "PYTHONPATH": str(Path(__file__).parent)}
        sensors = asked.tables + 2
        floor = measure(folder / "bare", "bare_location", bare, sensors)
        show("plain Dagster", floor)
        with cluster(folder / "zookeeper") as address:
            ours = measure(
                folder / "ours",
                "pinot_assets.definitions",
                {
                    "PINOT_ASSETS_TABLES": str(folder / "tables"),
                    "PINOT_ZOOKEEPER": address,
                    "PINOT_CONTROLLER_URL": f"http://127.0.0.1:{processes.free_port(())}",
                    "PINOT_CLUSTER": CLUSTER,
                },
                sensors,
            )
        show("pinot-assets", ours)
        CONSOLE.print(f"\nload {os.getloadavg()[0]:.1f} at the end")
        CONSOLE.print(
            f"{asked.tables} tables: import {ours.import_s:.1f} (floor {floor.import_s:.1f}) CPU s, "
            f"memory {ours.rss / 1e6:.0f} MB, a round of ticks {ours.round_s:.1f} CPU s"
        )
        if ours.import_s > MOST_TIMES_FLOOR * floor.import_s or ours.rss > MOST_BYTES:
            sys.exit(1)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
