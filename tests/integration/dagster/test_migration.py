"""`pinot-assets partitions migrate`: the same files under other keys, and nothing looks missing."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from fakes.locations.code_location import LocationTable
from fakes.tables import SYNC, write_table
from typer.testing import CliRunner

from pinot_assets.assets.history import TableHistory
from pinot_assets.assets.partitions import ALL_FILES
from pinot_assets.cli.main import app

pytestmark = pytest.mark.integration


@pytest.fixture
def cli(table: LocationTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Commands in the folder of the table, on an instance of their own."""
    home = tmp_path / "dagster"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return CliRunner()


def test_a_table_is_spread_anew_and_back(table: LocationTable, cli: CliRunner) -> None:
    table.write(F1="a b", F2="c")
    table.publish()
    with dg.DagsterInstance.get() as instance:
        history = TableHistory(instance, table.spec)

        def migrate(*options: str) -> str:
            result = cli.invoke(app, ["partitions", "migrate", table.name, *options])
            assert result.exit_code == 0, result.output
            return result.stdout

        assert "3 partitions are added, 0 are removed" in migrate()
        assert history.partitions() == {"F1.csv", "F2.csv", ALL_FILES}
        assert history.materialized().keys() == history.partitions()

        write_table(table.folder, table.name, SYNC | {"maxFilePartitions": "1"})
        assert "by directory → by directory: 1 partition is added, 2 are removed" in migrate("--plan")
        assert history.partitions() == {"F1.csv", "F2.csv", ALL_FILES}
        migrate()
        assert history.partitions() == {"dir:.", ALL_FILES}
        assert history.materialized().keys() >= history.partitions()
        shown = cli.invoke(app, ["partitions", "show", table.name]).stdout
        assert shown == "2 files in 2 partitions (`all files` is one of them), by directory\n"

        write_table(table.folder, table.name, SYNC)
        assert "by directory → by file: 2 partitions are added, 1 is removed" in migrate()
        assert history.partitions() == {"F1.csv", "F2.csv", ALL_FILES}
        assert [*history.observations(history.observed())] == []
    assert table.shown() == ["a", "b", "c"]


def test_without_a_dagster_it_says_what_to_do(
    table: LocationTable, cli: CliRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DAGSTER_HOME")
    monkeypatch.setenv("PINOT_ASSETS_HOME", str(tmp_path / "nowhere"))
    result = cli.invoke(app, ["partitions", "show", table.name])
    assert result.exit_code == 1
    assert "DAGSTER_HOME" in str(result.exception)
