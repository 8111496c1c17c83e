"""A stack whose processes are real but do nothing, so that starting and stopping can be tested quickly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fakes.apache_site import files_of

from pinot_assets.local import parts
from pinot_assets.local.parts import Site, StackPart
from pinot_assets.local.stack import Stack, StartProgress

Executable = Callable[[str, str], Path]

JAVA = """
if [ "$1" = -version ]; then echo 'openjdk version "17.0.1"' >&2; exit 0; fi
exec "{python}" -c '
import sys, time
if "dies" in sys.argv:
    sys.exit("cannot bind")
time.sleep(600)
' "$@"
"""


@dataclass
class Toy:
    """A stack of three parts: two Pinot parts after a ZooKeeper, and an optional S3.

    :ivar lacks: by part, what it says it lacks, each said once before it is ready.
    :ivar dies: the parts that end right after their start.
    :ivar reported: what was reported as done.
    """

    home: Path
    lacks: dict[str, list[str]] = field(default_factory=dict)
    dies: set[str] = field(default_factory=set)
    reported: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def part(self, name: str, jars: str, after: tuple[str, ...]) -> StackPart:
        def arguments(site: Site) -> list[str]:
            self.order.append(f"start {name}")
            return ["dies"] if name in self.dies else []

        def missing(site: Site) -> str | None:
            if name in self.dies:
                return "its life"
            if lacks := self.lacks.get(name):
                return lacks.pop(0)
            self.order.append(f"ready {name}")
            return None

        return StackPart(name, jars, ("client", "http", "netty", "admin", "grpc"), after, arguments, missing)

    def stack(self) -> Stack:
        return Stack(self.home, cache=self.home / "cache", progress=StartProgress(done=self.reported.append))

    def pids(self) -> dict[str, int]:
        return {part.name: part.pid for part in self.stack().status() if part.pid}


@pytest.fixture
def toy(tmp_path: Path, executable: Executable, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    toy = Toy(tmp_path / "home")
    java = executable("jdk/bin/java", JAVA.format(python=sys.executable))
    monkeypatch.setenv("JAVA_HOME", str(java.parent.parent))
    set_pinot(tmp_path / "pinot-1.2.3", monkeypatch)
    names = ("zookeeper", "controller", "broker-1", "broker-2", "server-1", "server-2")
    after = {"zookeeper": (), "controller": ("zookeeper",)}
    pinot = tuple(toy.part(name, "pinot", after.get(name, ("controller",))) for name in names)
    s3, kafka = toy.part("s3", "pinot", ()), toy.part("kafka", "pinot", ())
    monkeypatch.setattr(parts, "PINOT", pinot)
    monkeypatch.setattr(parts, "S3", s3)
    monkeypatch.setattr(parts, "KAFKA", kafka)
    monkeypatch.setattr(parts, "ALL", (*pinot, kafka, s3))
    yield toy
    toy.stack().down()


def set_pinot(home: Path, monkeypatch: pytest.MonkeyPatch, java: int = 11) -> None:
    """Make `PINOT_HOME` a distribution of the version that `home` is named after."""
    write_distribution(home, home.name.removeprefix("pinot-"), java)
    monkeypatch.setenv("PINOT_HOME", str(home))


def write_distribution(home: Path, version: str, java: int = 11) -> None:
    """Write an unpacked distribution, whose Pinot needs that Java."""
    for name, content in files_of(version, java).items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(content)
