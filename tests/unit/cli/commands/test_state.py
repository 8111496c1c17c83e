"""`pinot-assets state`: what it tells of formats, and what it changes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.project import ROOT
from fakes.stores.memory import new_memory
from fakes.tables import write_table
from fakes.zookeeper.memory import FakeZooKeeper
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import state
from pinot_assets.core.stored_format import NEWEST, RELEASES
from pinot_assets.errors import NeedsNewerRelease, NodeUnreadable
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.state import (
    Mode,
    ObjectRef,
    Pointer,
    Session,
    pointer_to_bytes,
    session_to_bytes,
)


class StoredTable:
    """A table's nodes and staging area, and the commands on them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.zookeeper, self.staging = FakeZooKeeper(), Staging(new_memory())
        self.client = self.zookeeper.client()
        self.store = SessionStore(self.client, "pinot", "t_OFFLINE")  # type: ignore[arg-type]
        self.upgraded = 0
        self._spec = write_table(folder, "t")

        @contextmanager
        def opened(*_: Any) -> Iterator[SessionStore]:
            yield self.store

        monkeypatch.setattr(state, "open_session_store", opened)
        monkeypatch.setattr(state, "open_staging", lambda _: self.staging)
        monkeypatch.setattr(state, "load_settings", lambda: None)

    def has(self, pointer: Pointer, *sessions: Session, **more: str) -> None:
        self.client.ensure_path(self.store.path)
        record = json.loads(pointer_to_bytes(pointer))
        record["simpleFields"] |= more
        self.client.set(self.store.path, json.dumps(record).encode())
        for session in sessions:
            self.client.create(f"{self.store.path}/{session.node}", session_to_bytes(session))

    def run(self, *words: str, answer: str = "") -> Result:
        @contextmanager
        def driver(*_: Any) -> Iterator[StoredTable]:
            yield self

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(state, "one_table", lambda name, tables: self._spec)
            patch.setattr(state, "open_driver", driver)
            return CliRunner().invoke(state.app, [*words, "t"], input=answer)

    def upgrade(self) -> bool:
        self.upgraded += 1
        return True


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredTable:
    return StoredTable(tmp_path, monkeypatch)


SESSION = Session("cp1-00000a", 1, Mode.SYNC, "fp", 5, ObjectRef("plan", "ab"))


def test_show_tells_the_format_and_what_it_needs(stored: StoredTable) -> None:
    stored.has(Pointer(active_session="cp1"), SESSION)
    text = stored.run("show").stdout
    assert "1: what the next session writes" in text
    assert "pointer of format 1, session of format 1" in text
    assert "pinot-assets 0.1.0 or newer" in text
    told = json.loads(stored.run("show", "--json").stdout)
    assert (told["format"], told["needs"], told["newestKnown"]) == (1, "0.1.0", NEWEST)
    assert [(one["kind"], one["format"], one["known"]) for one in told["objects"]] == [
        ("pointer", 1, True),
        ("session", 1, True),
    ]


def test_show_tells_of_state_that_only_a_newer_release_reads(stored: StoredTable) -> None:
    stored.has(Pointer(), SESSION, format="9", needs="4.5.6")
    shown = stored.run("show")
    assert shown.exit_code == 0
    assert "pinot-assets 4.5.6 or newer" in shown.stdout
    assert "of format 9: this release does nothing here" in shown.stdout
    told = json.loads(stored.run("show", "--json").stdout)
    assert (told["format"], told["needs"], told["readable"]) == (9, "4.5.6", False)


def test_a_table_without_state_begins_in_the_newest_format(stored: StoredTable) -> None:
    assert f"the first session writes format {NEWEST}" in stored.run("show").stdout
    assert json.loads(stored.run("show", "--json").stdout)["format"] is None
    assert f"its first session writes format {NEWEST}" in stored.run("upgrade").stdout
    assert not stored.upgraded


@pytest.mark.parametrize(
    ("words", "answer", "upgraded"),
    [((), "y\n", 1), ((), "n\n", 0), (("--yes",), "", 1), (("--dry-run",), "", 0)],
)
def test_upgrade_says_what_it_means_and_asks(
    stored: StoredTable, words: tuple[str, ...], answer: str, upgraded: int
) -> None:
    stored.has(Pointer(), SESSION)
    done = stored.run("upgrade", *words, answer=answer)
    assert f"t: from format 1 to {NEWEST}" in done.stdout
    assert f"pinot-assets before {RELEASES[NEWEST]} then stops at t" in done.stdout
    assert stored.upgraded == upgraded
    assert done.exit_code == (1 if answer == "n\n" else 0)


def test_upgrade_as_json_asks_nothing(stored: StoredTable) -> None:
    stored.has(Pointer())
    assert "asks no question" in str(stored.run("upgrade", "--json").exception)
    told = json.loads(stored.run("upgrade", "--json", "--dry-run").stdout)
    assert told == {"table": "t", "from": 1, "to": NEWEST, "due": True, "upgraded": False}
    assert not stored.upgraded
    assert json.loads(stored.run("upgrade", "--json", "--yes").stdout)["upgraded"] is True


def test_what_is_upgraded_is_left_alone(stored: StoredTable) -> None:
    stored.has(Pointer(format=NEWEST))
    assert "nothing to do" in stored.run("upgrade").stdout
    assert not stored.upgraded


def test_upgrade_refuses_what_it_does_not_know(stored: StoredTable) -> None:
    stored.has(Pointer(), format="9", needs="4.5.6")
    assert isinstance(stored.run("upgrade", "--yes").exception, NeedsNewerRelease)
    assert not stored.upgraded


def test_the_newest_format_needs_no_release_after_this_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    newest = [int(part) for part in RELEASES[NEWEST].split(".")]
    assert newest <= [int(part) for part in project["version"].split(".")]


@pytest.mark.parametrize("words", [("show",), ("show", "--json"), ("upgrade",), ("upgrade", "--yes")])
@pytest.mark.parametrize("data", [b"[1]", b"{}", b'{"simpleFields": {"format": "two"}}'])
def test_a_damaged_pointer_is_no_table_without_state(
    stored: StoredTable, words: tuple[str, ...], data: bytes
) -> None:
    stored.client.ensure_path(stored.store.path)
    stored.client.set(stored.store.path, data)
    refused = stored.run(*words)
    assert isinstance(refused.exception, NodeUnreadable)
    assert "has no state yet" not in refused.output
    assert not stored.upgraded
