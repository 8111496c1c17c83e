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
SEGMENT_MODULE: Final = "pinot-segment-local"
ARROW_MODULE: Final = "pinot-plugins/pinot-input-format/pinot-arrow"
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath"


def class_path(home: Path, scratch: Path, module: str = SEGMENT_MODULE, scope: str = "runtime") -> list[Path]:
    """The classes of a module, and the jars that it needs in a scope of Maven; Maven's repository has them.

    :raises FileNotFoundError: the module was not compiled.
    """
    classes = home / module / "target" / "classes"
    if not classes.is_dir():
        raise FileNotFoundError(
            f"{classes} does not exist: {HOME} names a source whose {module} was not compiled. "
            f"Run `mvn install -pl {module} -am -DskipTests -Ppinot-fastdev` in it"
        )
    out = scratch / "class-path"
    command = [str(find_maven()), "--batch-mode", "--quiet", "--file", str(home / module / "pom.xml")]
    command += [_GOAL, f"-Dmdep.outputFile={out}", f"-DincludeScope={scope}"]
    subprocess.run(command, cwd=scratch, check=True)
    return [classes, *map(Path, out.read_text().strip().split(os.pathsep))]


def commit(home: Path) -> str:
    """The commit of the source."""
    said = subprocess.run(
        ["git", "-C", str(home), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    return said.stdout.strip()
