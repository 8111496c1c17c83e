"""Where the class paths come from."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pinot_assets.errors import LocalStackError
from pinot_assets.local import jars


def distribution(home: Path, *names: str) -> Path:
    for name in names:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    return home


def test_pinot_home_gives_its_own_jars_plugins_included(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = distribution(
        tmp_path,
        "lib/pinot-all-1.3.0-jar-with-dependencies.jar",
        "plugins/pinot-file-system/pinot-s3/pinot-s3-1.3.0-shaded.jar",
        "plugins/readme.txt",
    )
    monkeypatch.setenv("PINOT_HOME", str(home))
    found = jars.class_path("pinot", cache=tmp_path / "unused")
    assert [jar.name for jar in found] == [
        "pinot-all-1.3.0-jar-with-dependencies.jar",
        "pinot-s3-1.3.0-shaded.jar",
    ]
    assert jars.pinot_version(found) == "1.3.0"
    assert jars.is_at_hand("pinot", cache=tmp_path / "unused")


@pytest.mark.parametrize(
    ("jar", "version"),
    [
        ("005-pinot-spi-0.11.0.jar", "0.11.0"),
        ("pinot-spi-1.5.1.jar", "1.5.1"),
        ("pinot-all-1.2.0-jar-with-dependencies.jar", "1.2.0"),
        ("pinot-core-1.2.0.jar", "unknown"),
    ],
)
def test_the_version_is_read_off_the_jars(jar: str, version: str) -> None:
    assert jars.pinot_version([Path("/jars/other-9.jar"), Path("/jars") / jar]) == version


def test_a_pinot_home_without_pinot_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINOT_HOME", str(distribution(tmp_path, "lib/other-1.0.jar")))
    with pytest.raises(LocalStackError, match="has no Apache Pinot") as raised:
        jars.class_path("pinot")
    assert str(tmp_path) in raised.value.what


@pytest.mark.parametrize("name", ["pinot", "kafka", "s3"])
def test_the_poms_pin_a_release_of_everything(name: str) -> None:
    versions = [element.text or "" for element in ET.parse(jars.pom(name)).iterfind("dependencies//version")]
    assert versions
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
