"""What `tables apply` shows of a published table: changes, reloads, and what queries see meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from fakes.pinot.memory import FakePinot
from fakes.pinot.staged import EMPTY
from fakes.spec_folder import Folder
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import tables as tables_commands
from pinot_assets.cli.main import app
from pinot_assets.core.json_object import JsonObject
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

Run = Callable[..., Result]


@pytest.fixture
def run(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Types `tables apply` where the table `flights` has three segments."""
    pinot = FakePinot()

    @contextmanager
    def open_pinot() -> Iterator[FakePinot]:
        yield pinot

    monkeypatch.setattr(tables_commands, "open_pinot", open_pinot)
    apply_plan(plan_apply(folder.load(), pinot), pinot)
    names = ["a", "b", "c"]
    outputs = [Output(name, 1, 9, f"file:///{name}", 1, "", f"file:///{name}.metadata") for name in names]
    pinot.push("flights", outputs, staged=EMPTY)

    def apply(*words: str) -> Result:
        return CliRunner().invoke(app, ["tables", "apply", *words, "--tables", str(folder.path)])

    return apply


def change(whole: JsonObject) -> None:
    whole["schema"]["dimensionFieldSpecs"].append({"name": "origin", "dataType": "STRING"})
    whole["table"]["tableIndexConfig"].update(invertedIndexColumns=["carrier"], sortedColumn=["carrier"])


def test_a_dry_run_shows_what_would_come_of_it(run: Run, folder: Folder) -> None:
    folder.spec(change=change)
    text = " ".join(run("--dry-run").output.split())
    assert "3 of 3 segments will be reloaded, at most 8 at a time: " in text
    assert "inverted index of carrier" in text
    assert "column origin" in text
    assert "meanwhile: until they are reloaded, 3 of 3 segments are left out of queries" in text
    assert 'rebuild: sortedColumn: not set → ["carrier"]: rows are sorted when a segment is built' in text


def test_a_yes_reloads(run: Run, folder: Folder) -> None:
    folder.spec(change=change)
    result = run("--yes")
    assert result.exit_code == 0
    assert "flights: servers have reloaded 3 of 3 segments" in result.output
    assert "will be reloaded" not in run("--dry-run").output


def test_other_programs_read_it(run: Run, folder: Folder) -> None:
    folder.spec(change=change)
    (values,) = json.loads(run("--dry-run", "--json").stdout)
    reasons = values["reload"].pop("reasons")
    assert values["reload"] == {"segments": 3, "of": 3}
    assert sorted(reasons) == ["column origin", "inverted index of carrier"]
    assert {(one["column"], one["setting"], one["verdict"]) for one in values["changes"]} == {
        ("", "sortedColumn", "rebuild"),
        ("carrier", "invertedIndexColumns", "reload"),
        ("origin", "column", "reload"),
    }
    assert len(values["meanwhile"]) == 1
