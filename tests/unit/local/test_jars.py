"""Where the class paths come from."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from fakes.toy_stack import write_distribution

from pinot_assets.errors import LocalStackError
from pinot_assets.local import jars


def test_pinot_home_gives_its_own_jars_plugins_included(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_distribution(tmp_path, "1.3.0")
    monkeypatch.setenv("PINOT_HOME", str(tmp_path))
    found = jars.class_path("pinot", cache=tmp_path / "unused")
    assert [jar.name for jar in found] == [
        "pinot-all-1.3.0-jar-with-dependencies.jar",
        "pinot-s3-1.3.0-shaded.jar",
    ]
    assert jars.find_pinot(cache=tmp_path / "unused").version == "1.3.0"
    assert jars.is_at_hand("pinot", cache=tmp_path / "unused")


def test_a_pinot_home_without_pinot_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "other-1.0.jar").touch()
    monkeypatch.setenv("PINOT_HOME", str(tmp_path))
    with pytest.raises(LocalStackError, match="has no Apache Pinot") as raised:
        jars.class_path("pinot")
    assert str(tmp_path) in raised.value.what
    assert "damaged: other-1.0.jar" in str(raised.value.why)


def test_a_release_is_taken_from_the_cache_and_pinot_home_goes_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PINOT_HOME", raising=False)
    assert not jars.is_at_hand("pinot", "1.5.1", cache=tmp_path)
    write_distribution(tmp_path / "pinot" / "apache-pinot-1.5.1-bin", "1.5.1")
    assert jars.is_at_hand("pinot", "1.5.1", cache=tmp_path)
    assert not jars.is_at_hand("kafka", "1.5.1", cache=tmp_path)
    assert jars.find_pinot("1.5.1", cache=tmp_path).version == "1.5.1"
    write_distribution(tmp_path / "own", "1.6.0-SNAPSHOT")
    monkeypatch.setenv("PINOT_HOME", str(tmp_path / "own"))
    assert jars.find_pinot("1.5.1", cache=tmp_path).version == "1.6.0-SNAPSHOT"


def test_a_release_in_the_cache_that_was_damaged_says_what_to_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PINOT_HOME", raising=False)
    folder = tmp_path / "pinot" / "apache-pinot-1.5.1-bin"
    (folder / "lib").mkdir(parents=True)
    with pytest.raises(LocalStackError, match="has no Apache Pinot") as raised:
        jars.find_pinot("1.5.1", cache=tmp_path)
    assert str(folder) in raised.value.what
    assert "delete that folder" in str(raised.value.hint)


def test_the_pom_has_the_release_that_is_named() -> None:
    versions = {element.text for element in ET.parse(jars.pom("pinot")).iterfind("dependencies//version")}
    assert versions == {jars.MAVENS_PINOT}


@pytest.mark.parametrize("name", ["pinot", "kafka", "s3"])
def test_the_poms_pin_a_release_of_everything(name: str) -> None:
    versions = [element.text or "" for element in ET.parse(jars.pom(name)).iterfind("dependencies//version")]
    assert versions
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
