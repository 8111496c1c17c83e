"""What benchmarks measure by: CPU and wall seconds of a process with all that it started; their spread."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.this_machine import numpy_settings

CONSOLE = Console(width=160, highlight=False, markup=False)
TELL = Console(stderr=True, highlight=False, markup=False)


@dataclass(frozen=True)
class Cost:
    """Of one piece of work.

    :ivar cpu: seconds that all its threads and processes worked.
    :ivar wall: seconds it took; of little worth on a machine that others use, too.
    """

    cpu: float
    wall: float


class Meter:
    """What a process and its descendants have cost since."""

    def __init__(self, pid: int | None = None) -> None:
        self._process = psutil.Process(pid)
        self._cpu, self._wall = worked(self._process), time.perf_counter()

    def read(self) -> Cost:
        """Since the meter was made."""
        return Cost(worked(self._process) - self._cpu, time.perf_counter() - self._wall)


def worked(process: psutil.Process) -> float:
    """CPU seconds of a process, of what it started, and of those of them that have ended."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            total += sum(one.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue  # its parent has it now
    return total


def peak_bytes(pid: int | str = "self") -> int:
    """The most memory that a process ever held (resident set)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError("the kernel does not tell VmHWM")


def in_process_of_its_own(program: Path, *arguments: str) -> JsonObject:
    """Run a program of this folder; what it printed last, as JSON.

    Its memory is its own then, and what it imports is not warm.
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), *arguments],
        env=os.environ | numpy_settings(os.environ),  # as Spark's workers have it
        stdout=subprocess.PIPE,
        check=True,
    )
    printed: JsonObject = json.loads(done.stdout.splitlines()[-1])
    return printed


def answer(value: JsonMapping) -> None:
    """The other side of `in_process_of_its_own`."""
    sys.stdout.write(f"\n{json.dumps(value)}\n")  # a JVM may have logged before it


def spread(values: Sequence[float], digits: int = 2) -> str:
    """`1.0 / 1.5 / 2.0`: minimum, median and maximum."""
    return " / ".join(f"{v:.{digits}f}" for v in (min(values), statistics.median(values), max(values)))


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the ratios of the rounds."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def rounds(count: int, what: str) -> Iterator[int]:
    """Numbers of so many rounds; stderr names each as it begins, for those who wait."""
    for number in range(count):
        TELL.print(f"{time.strftime('%H:%M:%S')} {what}: round {number + 1} of {count}")
        yield number


def head(*columns: str) -> None:
    """The first two lines of a Markdown table."""
    row(*columns)
    row(*["---"] * len(columns))


def row(*cells: object) -> None:
    """One line of a Markdown table."""
    CONSOLE.print(f"| {' | '.join(map(str, cells))} |")


def costs(what: str, measured: Sequence[Cost], *more: object) -> None:
    """One line: CPU and wall seconds as minimum, median and maximum."""
    row(what, spread([c.cpu for c in measured]), spread([c.wall for c in measured]), *more)


def machine(*packages: str) -> None:
    """Say what it was measured on; versions of packages, too."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    CONSOLE.print(
        f"{os.cpu_count()} cores ({_processor()}), {psutil.virtual_memory().total / 1e9:.0f} GB; "
        f"Python {platform.python_version()}, {versions}; "
        f"load {os.getloadavg()[0]:.1f} at the start\n"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
