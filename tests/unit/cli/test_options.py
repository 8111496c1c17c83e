"""A command that names a table works on that one, whatever is wrong with the files of others."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.processes.middles import MIDDLES
from fakes.realtime.specs import write_realtime_table
from fakes.tables import write_table
from typer.main import get_command
from typer.testing import CliRunner, Result

from pinot_assets.cli import main
from pinot_assets.cli.options import one_table, realtime_table
from pinot_assets.errors import SpecError
from tools.docs.cli_page import commands

ONE_TABLE = (
    "run flights",
    "rebuild flights --dry-run",
    "compact flights --dry-run",
    "status flights",
    "plan flights",
    "watch flights --once",
    "snapshots flights",
    "rollback flights --dry-run",
    "resume flights",
    "session list flights",
    "session show flights",
    "session clear flights",
    "history flights",
    "diff flights 1 2",
    "where flights F1.csv",
    "why flights__cp1-0a1b2c_0_0_0",
    "gc flights",
    "forget flights --dry-run",
    "metrics flights --once",
    "partitions show flights",
    "partitions migrate flights",
    "session rebuild flights --yes",
    "state show flights",
    "state upgrade flights --yes",
)
OF_REALTIME = tuple(middle.words for name, middle in MIDDLES.items() if name.startswith("realtime "))
ELSEWHERE = {"tables apply"}
"""In `tests/unit/cli/commands/test_tables.py`."""


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two good tables, one with a typo, one that is no YAML; and no Pinot anywhere."""
    write_realtime_table(tmp_path)
    write_table(tmp_path, "flights")
    good = (tmp_path / "tables" / "flights.yaml").read_text()
    typo = good.replace("flights", "trains").replace("inputFormat: csv", "inputFormat: cvs")
    (tmp_path / "tables" / "trains.yaml").write_text(typo)
    (tmp_path / "tables" / "ships.yaml").write_text("[")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    for name in ("PINOT_CONTROLLER_URL", "PINOT_ZOOKEEPER", "PINOT_ASSETS_TABLES"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "tables"


def call(words: str) -> Result:
    return CliRunner().invoke(main.app, words.split())


def test_every_command_that_names_a_table_is_here() -> None:
    naming = {
        " ".join(path)
        for path, command in commands(get_command(main.app))
        if {p.name for p in command.params if p.param_type_name == "argument"} & {"table", "tables", "names"}
    }
    tried = {
        name for name in naming for words in (*ONE_TABLE, *OF_REALTIME) if f"{words} ".startswith(f"{name} ")
    }
    assert naming - tried == ELSEWHERE


@pytest.mark.parametrize("words", [*ONE_TABLE, *OF_REALTIME])
def test_no_other_file_stops_it(words: str) -> None:
    result = call(words)
    assert not isinstance(result.exception, SpecError), result.exception
    told = [str(result.exception), result.stderr, result.stdout]
    assert any("there is no Pinot to connect to" in text for text in told), "it came as far as Pinot"


@pytest.mark.parametrize("words", [words.replace("flights", "trains") for words in ONE_TABLE[:3]])
def test_its_own_file_does_and_is_told_alone(words: str) -> None:
    error = call(words).exception
    assert isinstance(error, SpecError)
    assert "trains.yaml" in str(error)
    assert "fileIngestion.inputFormat" in str(error)
    assert "ships.yaml" not in str(error)


def test_each_other_file_is_one_line_on_standard_error(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert one_table("flights").name == "flights"
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [line.partition(".yaml:")[0] for line in lines] == [
        f"warning: left out: {tables / name}" for name in ("ships", "trains")
    ]
    assert "fileIngestion.inputFormat" in lines[1]


def test_a_realtime_table_beside_them(tables: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SpecError, match=r"ships\.yaml"):
        realtime_table("ships", tables)
    (tables / "trains.yaml").unlink()
    (tables / "ships.yaml").unlink()
    write_realtime_table(tables.parent)
    (tables / "ships.yaml").write_text("[")
    spec = realtime_table("clicks", tables)
    assert spec is not None
    assert realtime_table("flights", tables) is None
    assert "ships.yaml:1" in capsys.readouterr().err
