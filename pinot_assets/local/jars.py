"""The class paths of the local stack's parts: from Maven's pinned poms, or from an unpacked Pinot."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from pinot_assets.errors import LocalStackError
from pinot_assets.local import maven

_SPI = re.compile(r"(?:\d{3}-)?pinot-(?:spi|all)-(\d[\w.]*?)(?:-jar-with-dependencies|-shaded)?\.jar")


def pom(jars: str) -> Path:
    """The pinned pom of `pinot`, `kafka` or `s3`."""
    return Path(__file__).with_name(f"{jars}.xml")


def class_path(
    jars: str, *, cache: Path | None = None, progress: Callable[[str], None] | None = None
) -> list[Path]:
    """The jars of `pinot`, `kafka` or `s3`, resolved when they are not yet.

    :raises LocalStackError: they cannot be resolved, or `PINOT_HOME` is not a Pinot distribution.
    """
    if jars == "pinot" and (pinot_home := os.environ.get("PINOT_HOME")):
        return _distribution(Path(pinot_home))
    return maven.resolve(pom(jars), cache=cache, progress=progress)


def is_at_hand(jars: str, *, cache: Path | None = None) -> bool:
    """Whether `class_path` would answer without Maven."""
    if jars == "pinot" and os.environ.get("PINOT_HOME"):
        return True
    return maven.is_resolved(pom(jars), cache=cache)


def pinot_version(jars: list[Path]) -> str:
    """The version of the Pinot on a class path, as its jars are named."""
    found = (_SPI.fullmatch(jar.name) for jar in jars)
    return next((match.group(1) for match in found if match), "unknown")


def _distribution(home: Path) -> list[Path]:
    jars = [*sorted((home / "lib").glob("*.jar")), *sorted((home / "plugins").rglob("*.jar"))]
    if pinot_version(jars) == "unknown":
        raise LocalStackError(
            f"PINOT_HOME is {home}, which holds no Apache Pinot",
            why="no pinot-all or pinot-spi jar is in its lib folder",
            hint="point PINOT_HOME at an unpacked Pinot distribution, or unset it to use Maven's",
        )
    return jars
