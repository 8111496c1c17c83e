"""`pinot-assets metrics`: printed once, written to a file, refused. Served it is on a real Pinot."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from fakes.monitoring.pushgateway import numbers
from fakes.tables import write_table
from typer.testing import CliRunner, Result

from pinot_assets.cli import main
from pinot_assets.cli.commands.metrics import address_of, follow
from pinot_assets.errors import PinotAssetsError, SpecError
from pinot_assets.metrics.collector import Collector, ScrapePart
from pinot_assets.metrics.family import Sample
from pinot_assets.metrics.session import OPEN


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables, and no Pinot anywhere."""
    write_table(tmp_path, "flights")
    write_table(tmp_path, "trains")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(tmp_path / "home"))
    for name in ("PINOT_CONTROLLER_URL", "PINOT_ZOOKEEPER", "PINOT_ASSETS_TABLES"):
        monkeypatch.delenv(name, raising=False)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main.app, ["metrics", *arguments])


def test_once_prints_what_can_be_said_of_tables_that_cannot_be_read() -> None:
    result = call("--once")
    assert result.exit_code == 0
    found = numbers(result.stdout)
    assert [found["pinot_assets_up", "session", table] for table in ("flights", "trains")] == [0, 0]
    assert found["pinot_assets_health_check_unknown", "replicas_and_crc", "flights"] == 1
    assert ("pinot_assets_source_files", "flights") not in found, "what nobody knows is no number"
    assert "flights, session: there is no Pinot to connect to" in result.stderr


def test_a_table_whose_spec_is_wrong_is_down_and_the_others_are_told(tmp_path: Path) -> None:
    (tmp_path / "tables" / "trains.yaml").write_text("[")
    result = call("--once")
    assert result.exit_code == 1
    found = numbers(result.stdout)
    assert found["pinot_assets_up", "spec", "trains"] == 0
    assert found["pinot_assets_health_check_unknown", "replicas_and_crc", "flights"] == 1
    assert "trains, spec: left out: tables/trains.yaml:1" in result.stderr.replace(f"{tmp_path}/", "")
    assert call("flights", "--once").exit_code == 0


def test_only_the_tables_that_are_named() -> None:
    assert "flights" not in call("trains", "--once").stdout
    assert isinstance(call("planes", "--once").exception, SpecError)


def test_a_table_that_is_named_twice_is_looked_at_once() -> None:
    found = call("flights", "flights_OFFLINE", "flights", "--once")
    assert found.exit_code == 0, found.exception
    assert found.stdout.count('pinot_assets_up{part="session",table="flights"}') == 1


def test_a_textfile_is_written_whole(tmp_path: Path) -> None:
    assert call("--once", "--textfile", str(tmp_path / "t.prom")).stdout == ""
    assert numbers((tmp_path / "t.prom").read_text())["pinot_assets_up", "session", "flights"] == 0
    refused = call("--once", "--textfile", str(tmp_path / "none" / "t.prom")).exception
    assert isinstance(refused, PinotAssetsError)
    assert "t.prom cannot be written: No such file or directory" in str(refused)


def test_a_textfile_is_written_again_and_again_and_trouble_with_it_ends_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    collector, stopped = Collector(said.append), threading.Event()
    folder = tmp_path / "node_exporter"
    folder.mkdir()
    file = folder / "t.prom"

    def look() -> list[Sample]:
        if file.exists() and ("pinot_assets_session_open", "t") in numbers(file.read_text()):
            if said:
                stopped.set()  # it has been written, could not be, and is written again
            elif folder.exists():
                folder.rename(tmp_path / "away")
        elif said and not folder.exists():
            folder.mkdir()
        return [OPEN.of(1, "t")]

    follow(collector, [([ScrapePart("t", "session", look)], 0.02)], file, stopped)
    assert set(said) == {f"{file} cannot be written: No such file or directory"}


def test_addresses() -> None:
    assert address_of("127.0.0.1:9469") == ("127.0.0.1", 9469)
    assert address_of("[::1]:0") == ("::1", 0)
    for wrong in ("9469", "host", "host:", ":1", "host:x", "host:70000", "host:²", f"host:{'9' * 5000}"):
        with pytest.raises(PinotAssetsError, match="is not an address to listen on"):
            address_of(wrong)


def test_an_address_that_cannot_be_listened_on() -> None:
    refused = call("--listen", "192.0.2.1:9469").exception
    assert isinstance(refused, PinotAssetsError)
    assert "192.0.2.1:9469 cannot be used to listen" in str(refused)


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".org"])
def test_a_host_that_is_no_name(host: str) -> None:
    refused = call("--listen", f"{host}:9469").exception
    assert isinstance(refused, PinotAssetsError)
    assert f"{host}:9469 cannot be used to listen" in str(refused)


def test_help_teaches() -> None:
    text = " ".join(call("--help").output.split())
    for words in ("127.0.0.1:9469", "--once", "--textfile", "answered from memory", "pinot_assets_up"):
        assert words in text
