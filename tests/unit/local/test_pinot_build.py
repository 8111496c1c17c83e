"""Which Pinot a set of jars is, whatever its files are called, and which Java it needs."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from fakes.apache_site import MAIN, pinot_jar

from pinot_assets.core.this_machine import Java
from pinot_assets.errors import LocalStackError
from pinot_assets.local import jars
from pinot_assets.local.pinot_build import MAIN_CLASS, UNKNOWN, PinotBuild, jars_of, read_build


def put(folder: Path, files: dict[str, bytes]) -> list[Path]:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return [folder / name for name in files]


def another_jar(**entries: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as jar:
        for name, content in entries.items():
            jar.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("jar", "inside", "version"),
    [
        ("pinot-all-1.5.1-jar-with-dependencies.jar", "1.5.1", "1.5.1"),
        ("pinot-all-1.6.0-SNAPSHOT-jar-with-dependencies.jar", "1.6.0-SNAPSHOT", "1.6.0-SNAPSHOT"),
        ("000-pinot-tools-0.11.0.jar", "0.11.0", "0.11.0"),
        ("server.jar", "1.4.0-acme.7", "1.4.0-acme.7"),
        ("pinot-all-1.2.0-jar-with-dependencies.jar", None, "1.2.0"),
        ("pinot-all-1.6.0-SNAPSHOT-jar-with-dependencies.jar", None, "1.6.0-SNAPSHOT"),
        ("pinot-tools-1.6.0-20260821.101010-3.jar", None, "1.6.0-20260821.101010-3"),
        ("pinot-all-1.6.0-SNAPSHOT-shaded.jar", None, "1.6.0-SNAPSHOT"),
        ("pinot-all.jar", "${project.version}", UNKNOWN),
        ("server.jar", None, UNKNOWN),
    ],
)
def test_the_version_is_in_the_jar_or_else_in_its_name(
    tmp_path: Path, jar: str, inside: str | None, version: str
) -> None:
    build = read_build(put(tmp_path, {"other-9.jar": another_jar(a=b""), jar: pinot_jar(inside)}))
    assert build.version == version
    assert [path.name for path in build.jars] == ["other-9.jar", jar], "the class path keeps its order"


def test_what_pinot_shows_as_its_version_goes_before_mavens(tmp_path: Path) -> None:
    content = io.BytesIO(pinot_jar("1.5.1"))
    with zipfile.ZipFile(content, "a") as jar:
        jar.writestr("pinot-version.properties", "# of acme\npinot.version=1.5.1-acme-2\n")
    assert read_build(put(tmp_path, {"a.jar": content.getvalue()})).version == "1.5.1-acme-2"


@pytest.mark.parametrize("java", [8, 11, 17, 21, 25])
def test_the_java_is_what_the_main_class_was_compiled_for(tmp_path: Path, java: int) -> None:
    """Other classes may be older: Pinot's jars for other programs are."""
    older = {
        "pinot-spi-1.6.0.jar": another_jar(**{"org/apache/pinot/spi/A.class": b"\xca\xfe\xba\xbe\0\0\0\x37"})
    }
    build = read_build(put(tmp_path, older | {"pinot-all-1.6.0.jar": pinot_jar("1.6.0", java)}))
    assert build.java == java


def test_an_old_java_is_refused_with_the_one_that_is_needed() -> None:
    build = PinotBuild([], "1.6.0-SNAPSHOT", 25)
    build.require(Java(Path("/jdk/bin/java"), 25))
    with pytest.raises(LocalStackError, match=r"Pinot 1\.6\.0-SNAPSHOT needs Java 25 or newer") as raised:
        build.require(Java(Path("/jdk/bin/java"), 17))
    assert raised.value.why == "/jdk/bin/java is version 17"
    assert "install a JDK 25" in str(raised.value.hint)


def test_jars_without_pinot_are_refused_and_damaged_ones_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none of 0 jars has Pinot's main class"):
        read_build([])
    whole = pinot_jar("1.5.1")
    class_file = whole.replace(b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf")
    jars = put(tmp_path, {"pinot-all-1.5.1.jar": whole[:-40], "empty.jar": b"", "class.jar": class_file})
    with pytest.raises(ValueError, match=r"damaged: pinot-all-1\.5\.1\.jar, empty\.jar, class\.jar$"):
        read_build(jars)


def test_a_distribution_has_its_plug_ins_after_its_own_jars(tmp_path: Path) -> None:
    names = [
        "lib/b.jar",
        "lib/a.jar",
        "plugins/x/p/p.jar",
        "plugins-external/q.jar",
        "lib/readme",
        "bin/c.jar",
    ]
    put(tmp_path, dict.fromkeys(names, b""))
    found = [path.relative_to(tmp_path).as_posix() for path in jars_of(tmp_path)]
    assert found == ["lib/a.jar", "lib/b.jar", "plugins/x/p/p.jar"]


def test_the_main_class_is_the_one_of_the_fake() -> None:
    assert MAIN_CLASS.replace(".", "/") + ".class" == MAIN


@pytest.mark.integration
def test_mavens_pinot_says_what_it_is() -> None:
    build = jars.find_pinot()
    assert (build.version, build.java) == (jars.MAVENS_PINOT, 11)
