"""An archive of Spark's classes, with which a JVM starts with less CPU.

A start of Spark takes some seconds of CPU, most of them to load and check its classes. A JVM can write what
it has loaded into a file when it ends, and a later one maps that file (class data sharing, JEP 350). To write
it costs more than a start, so the second JVM of a machine does it: a container that starts one and goes away
has no use for it. The file is in the user's cache, beside the jars. A JVM checks for itself whether an
archive is of its own build and class path, and ignores it otherwise.
"""

from __future__ import annotations

import hashlib
import re
import time
from enum import StrEnum
from pathlib import Path
from typing import Final

import pyspark

from pinot_assets.core.this_machine import Java
from pinot_assets.settings.local_stack import default_cache

_PLAIN: Final = re.compile(r"[\w./+-]+")
"""Paths that Spark's script and a shell take as one word."""
_MAKING_S: Final = 600.0
"""Seconds after which another JVM makes an archive that one has begun to make."""
_QUIET: Final = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:cds*=off"
"""A JVM without archives knows none of this; one that cannot use an archive is not to say so."""


class Classes(StrEnum):
    """Which classes a JVM is going to load; each has an archive of its own."""

    CORE = "core"
    SQL = "sql"


def archive_folder() -> Path:
    """Return the folder of the archives; it may not exist."""
    return default_cache() / "spark-classes"


def archive_options(classes: Classes, java: Java, home: Path) -> str:
    """Return the options with which a JVM uses the archive, or makes it at its end in `home`.

    :param home: folder of the JVM; whoever removes it stores the archive first (`jvm`).
    :returns: "" for the first JVM, while another one makes the archive, and if the cache cannot be written.
    """
    folder = archive_folder()
    if not (_PLAIN.fullmatch(str(folder)) and _PLAIN.fullmatch(str(home))):
        return ""
    names = {kind: f"{_build(java)}-{kind}.jsa" for kind in Classes}
    there = [folder / names[kind] for kind in (classes, Classes.SQL) if (folder / names[kind]).exists()]
    if there:
        return f"{_QUIET} -XX:SharedArchiveFile={there[0]}"
    seen, making = folder / f"{names[classes]}.seen", folder / f"{names[classes]}.making"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_first = not seen.exists()
        seen.touch()
        if is_first or (making.exists() and time.time() - making.stat().st_mtime < _MAKING_S):
            return ""
        making.touch()
        (home / "archives").touch()
    except OSError:
        return ""
    return f"{_QUIET} -XX:ArchiveClassesAtExit={home / names[classes]}"


def _build(java: Java) -> str:
    """Return what names a build of Java and of Spark, 16 hex digits."""
    executable = java.executable.resolve()
    of_java = f"{executable} {executable.stat().st_mtime_ns}"
    return hashlib.sha256(f"{of_java} {pyspark.__version__} {pyspark.__file__}".encode()).hexdigest()[:16]
