"""What one part of the local stack is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pinot_assets.settings.local_stack import Record

SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # fast to start, small; not for benchmarks


@dataclass(frozen=True, slots=True)
class Site:
    """Where a part runs.

    :ivar pid: of the part itself, None while it is not started.
    """

    home: Path
    record: Record
    pid: int | None = None

    def port(self, part: str, purpose: str) -> int:
        """A recorded port."""
        return self.record.ports[part][purpose]

    def data(self, part: str) -> Path:
        """The part's data folder."""
        return self.home / "data" / part

    def write(self, name: str, settings: dict[str, object]) -> str:
        """Write a properties file that only its owner can read (some hold the S3 key); answers its path."""
        path = self.home / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return str(path)


@dataclass(frozen=True, slots=True)
class StackPart:
    """One process of the stack.

    :ivar jars: what its class path is made of: `pinot`, `kafka` or `s3`.
    :ivar ports: what it listens for.
    :ivar after: the parts that have to be ready before it starts.
    :ivar arguments: writes its configuration; answers the JVM's arguments but for the class path.
    :ivar missing: what it still lacks to be ready, None when it is.
    """

    name: str
    jars: str
    ports: tuple[str, ...]
    after: tuple[str, ...]
    arguments: Callable[[Site], list[str]]
    missing: Callable[[Site], str | None]
