"""A source of Pinot that was compiled and installed on this machine: its class path and its commit.

How to make one: docs/recipes/pinot-release.md.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from pinot_assets.local.jars import find_maven

HOME: Final = "PINOT_ORACLE_HOME"
_MODULE = "pinot-segment-local"
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"


def class_path(home: Path, scratch: Path) -> list[Path]:
    """The classes of the segment library, and the jars that it needs; Maven's repository has them."""
    out = scratch / "class-path"
    command = [str(find_maven()), "--batch-mode", "--quiet", "--file", str(home / _MODULE / "pom.xml")]
    command += [_GOAL, f"-Dmdep.outputFile={out}", "-DincludeScope=runtime"]
    subprocess.run(command, cwd=scratch, check=True)
    return [home / _MODULE / "target" / "classes", *map(Path, out.read_text().strip().split(os.pathsep))]


def commit(home: Path) -> str:
    """The commit of the source."""
    said = subprocess.run(
        ["git", "-C", str(home), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    return said.stdout.strip()
