"""The Pinot in a set of jars: its version, and the oldest Java that runs it.

Both are read from the jar with Pinot's main class, so builds of any name are known: snapshots, and the
distributions of others. A list of releases would not know the next one: Pinot itself needs Java 21 since
https://github.com/apache/pinot/pull/18046, and 25 since https://github.com/apache/pinot/pull/19014, while
its jars for other programs, such as pinot-spi, still are for Java 11.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pinot_assets.core.this_machine import Java
from pinot_assets.errors import LocalStackError

MAIN_CLASS: Final = "org.apache.pinot.tools.admin.PinotAdministrator"
"""The class that starts each part of Pinot."""

UNKNOWN: Final = "unknown"
"""The version of a Pinot whose jars do not say it."""

_MAIN_FILE: Final = f"{MAIN_CLASS.replace('.', '/')}.class"
_VERSIONS: Final = (
    # What Pinot itself shows as its version (`PinotVersion`); 0.11 does not have it.
    ("pinot-version.properties", re.compile(rb"^pinot\.version\s*=\s*(\d[\w.+-]*)\s*$", re.MULTILINE)),
    # Maven puts this into each jar, and it stays there when all jars are merged into `pinot-all`.
    (
        "META-INF/maven/org.apache.pinot/pinot-tools/pom.properties",
        re.compile(rb"^version\s*=\s*(\d[\w.+-]*)\s*$", re.MULTILINE),
    ),
)
_NAME: Final = re.compile(r"(?:\d{3}-)?pinot-[a-z]+-(\d[\w.+-]*?)(?:-jar-with-dependencies|-shaded)?\.jar")
_PROPERTIES_BYTES: Final = 1 << 16
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error)
_CLASS_FILE: Final = 0xCAFEBABE
_CLASSES_OF_JAVA_0: Final = 44
"""The major version of a class file minus its Java: 55 is Java 11, 69 is Java 25 (JVM specification, 4.1)."""


@dataclass(frozen=True, slots=True)
class PinotBuild:
    """A Pinot that can be started.

    :ivar jars: its class path.
    :ivar version: such as 1.5.1 or 1.6.0-SNAPSHOT, or `UNKNOWN`.
    :ivar java: the feature release of the oldest Java that runs it, such as 21.
    """

    jars: Sequence[Path]
    version: str
    java: int

    def require(self, java: Java) -> None:
        """:raises LocalStackError: that Java is too old for this Pinot."""
        if java.major < self.java:
            raise LocalStackError(
                f"Pinot {self.version} needs Java {self.java} or newer",
                why=f"{java.executable} is version {java.major}",
                hint=f"install a JDK {self.java} or newer and put it on PATH, or point JAVA_HOME at it",
            )


def jars_of(distribution: Path) -> list[Path]:
    """Return the jars of an unpacked distribution, plug-ins included."""
    return [*sorted((distribution / "lib").glob("*.jar")), *sorted((distribution / "plugins").rglob("*.jar"))]


def read_build(jars: Sequence[Path]) -> PinotBuild:
    """Return the Pinot of a class path.

    :raises ValueError: there is none; says why.
    :raises OSError: a jar cannot be read.
    """
    damaged = []
    # Those with Pinot in their names first: to look into hundreds of others takes seconds.
    for jar in sorted(jars, key=lambda jar: "pinot" not in jar.name):
        try:
            with zipfile.ZipFile(jar) as content:
                if (java := _java_of(content)) is not None:
                    return PinotBuild(jars, _version_in(content) or _version_of_name(jar), java)
        except _DAMAGED:
            damaged.append(jar.name)
    why = f"none of {len(jars)} jars has Pinot's main class {MAIN_CLASS}"
    raise ValueError(f"{why}; damaged: {', '.join(damaged)}" if damaged else why)


def _java_of(content: zipfile.ZipFile) -> int | None:
    """Return the Java that the main class was compiled for; None if it is not in this jar."""
    if _MAIN_FILE not in content.NameToInfo:
        return None
    with content.open(_MAIN_FILE) as file:
        magic, _, major = struct.unpack(">IHH", file.read(8))
    if magic != _CLASS_FILE:
        raise zipfile.BadZipFile("its main class is no class")
    return int(major) - _CLASSES_OF_JAVA_0


def _version_in(content: zipfile.ZipFile) -> str | None:
    for name, line in _VERSIONS:
        if name in content.NameToInfo:
            with content.open(name) as file:
                if (match := line.search(file.read(_PROPERTIES_BYTES))) is not None:
                    return match[1].decode("ascii")
    return None


def _version_of_name(jar: Path) -> str:
    match = _NAME.fullmatch(jar.name)
    return match[1] if match else UNKNOWN
