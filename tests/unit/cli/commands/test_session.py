"""`pinot-assets session`: what it tells of sessions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.tables import write_table
from typer.testing import CliRunner

from pinot_assets.cli.commands import session
from pinot_assets.session.values.state import Mode, ObjectRef, Session, State

SESSION = Session(
    "cp2-bbbbbb",
    2,
    Mode.SYNC,
    "f",
    1_600_000_000_000,
    ObjectRef("k", "0"),
    State.IN_PROGRESS,
    asked_by="ann@[host]",
)


@contextmanager
def no_driver(*_: Any) -> Iterator[Any]:
    raise AssertionError("to look needs no driver")
    yield


def shown(folder: Path, monkeypatch: pytest.MonkeyPatch, stored: Session, *words: str) -> str:
    store = SimpleNamespace(
        table="t", session_nodes=lambda: [stored.node], session=lambda _: stored, holder=lambda: None
    )

    @contextmanager
    def opened(*_: Any) -> Iterator[Any]:
        yield store

    monkeypatch.setattr(session, "open_session_store", opened)
    monkeypatch.setattr(session, "load_settings", lambda: None)
    spec = write_table(folder, "t")
    monkeypatch.setattr(session, "one_table", lambda name, tables: spec)
    monkeypatch.setattr(session, "open_driver", no_driver)
    return CliRunner().invoke(session.app, [*words, "t"]).stdout


@pytest.mark.parametrize("words", ["show", "list"])
def test_a_rollback_has_no_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    text = shown(tmp_path, monkeypatch, replace(SESSION, mode=Mode.ROLLBACK), words)
    assert "rollback" in text
    assert "attempt" not in text
    assert "never" not in text


def test_the_first_attempt_of_a_build_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = replace(SESSION, attempt_started_ms=1_700_000_000_000)
    assert "attempt    0, begun 2023-11-14" in shown(tmp_path, monkeypatch, begun, "show")
    assert "attempt 0, begun" in shown(tmp_path, monkeypatch, begun, "list")


def test_who_asked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "asked by   ann@[host]" in shown(tmp_path, monkeypatch, SESSION, "show")


def test_rebuild_asks_and_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rebuilt: list[str] = []

    @contextmanager
    def driver_of(spec: Any, what: str) -> Iterator[Any]:
        def rebuild() -> Any:
            rebuilt.append(what)
            return SimpleNamespace(session="cp7-aaaaaa")

        yield SimpleNamespace(rebuild=rebuild, notes=("as requested: the ledger is made again",))

    spec = write_table(tmp_path, "t")
    monkeypatch.setattr(session, "one_table", lambda name, tables: spec)
    monkeypatch.setattr(session, "open_driver", driver_of)
    app = session.app
    refused = CliRunner().invoke(app, ["rebuild", "t"], input="n\n")
    assert "drop its open session?" in refused.stdout
    assert (refused.exit_code, rebuilt) == (1, [])
    asks = CliRunner().invoke(app, ["rebuild", "t", "--json"])
    assert asks.exit_code == 1
    assert (
        str(asks.exception) == "with --json the command asks no question\n  → add --yes to do it"
    )  # it has no --dry-run
    done = CliRunner().invoke(app, ["rebuild", "t", "--yes"])
    assert (done.exit_code, done.stdout) == (0, "as requested: the ledger is made again\n")
    told = CliRunner().invoke(app, ["rebuild", "t", "--yes", "--json"])
    assert '"session": "cp7-aaaaaa"' in told.stdout
    assert rebuilt == ["session rebuild"] * 2
