"""Find the Java that starts everything here, and refuse one that is too old before anything fails oddly."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pinot_assets.core.subprocesses import run_child
from pinot_assets.errors import LocalStackError

MINIMUM_JAVA = 17
"""Spark 4 and the Pinot of the local stack both run on 17."""

_INSTALL = f"install a JDK {MINIMUM_JAVA} or newer and put it on PATH, or point JAVA_HOME at it"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime.

    :ivar executable: the `java` to start.
    :ivar major: its feature release, such as 17.
    """

    executable: Path
    major: int


def find_java() -> Java:
    """The Java that `JAVA_HOME` names, else the one on `PATH`, as Maven and Spark choose it too.

    :raises LocalStackError: there is none, it does not run, or it is older than `MINIMUM_JAVA`.
    """
    java_home = os.environ.get("JAVA_HOME")
    if java_home:
        executable = Path(java_home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise LocalStackError(
                f"JAVA_HOME is {java_home}, which holds no Java",
                why=f"{executable} is not an executable file",
                hint="unset JAVA_HOME to use the java on PATH, or point it at a JDK",
            )
    else:
        on_path = shutil.which("java")
        if on_path is None:
            raise LocalStackError(
                "no Java was found", why="JAVA_HOME is not set and no java is on PATH", hint=_INSTALL
            )
        executable = Path(on_path)
    java = Java(executable, _major_version(executable))
    if java.major < MINIMUM_JAVA:
        raise LocalStackError(
            f"Java {java.major} is too old",
            why=f"{executable} is version {java.major}, {MINIMUM_JAVA} or newer is needed",
            hint=_INSTALL,
        )
    return java


def _major_version(executable: Path) -> int:
    try:
        answer = run_child([executable, "-version"], timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LocalStackError(f"{executable} does not run", why=str(error), hint=_INSTALL) from error
    text = answer.stderr + answer.stdout
    # "1.8.0_402" is Java 8, "17.0.15" is Java 17, "25-ea" is Java 25.
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    if answer.returncode != 0 or found is None:
        # The JVM announces the options that it takes from the environment before it says what is wrong.
        lines = [line for line in text.strip().splitlines() if not line.startswith("Picked up ")]
        why = lines[0] if lines else "it printed nothing"
        raise LocalStackError(f"{executable} does not tell its version", why=why, hint=_INSTALL)
    return int(found.group(1))
