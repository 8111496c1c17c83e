"""`why`, `where`, `history` and `diff`, on snapshots that lie in a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.testing import CliRunner, Result

from pinot_assets.cli.commands import snapshots as receipts
from pinot_assets.cli.main import app
from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.stored_format import NEWEST
from pinot_assets.errors import PinotAssetsError
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.state import HoldEnd, Pointer
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output
from pinot_assets.source import Fingerprint, open_store


def file(name: str, version: str, session: str, segment: str, rows: int) -> PublishedFile:
    output = Output(segment, 77, rows, f"file:///t/{segment}.tar.gz", 10 * rows, "h", "m")
    uri = f"file:///in/[day]/{name}"
    return PublishedFile(uri, Fingerprint(1, 1), "5ha", rows, 0, session, (output,), version=version)


A1 = file("a.csv", "v1", "cp1-aaaaaa", "t__cp1-aaaaaa_1_0_0", 3)
A2 = file("a.csv", "v2", "cp2-bbbbbb", "t__cp2-bbbbbb_1_0_0", 5)
B1 = file("b.csv", "v1", "cp1-aaaaaa", "t__cp1-aaaaaa_1_1_0", 7)


@dataclass
class Store:
    """The session store of a table, as far as it is asked here."""

    at: Pointer

    def pointer(self) -> Pointer:
        return self.at


@dataclass
class Published:
    """A table with two snapshots, and the program's commands."""

    app: Typer
    staging: Staging
    store: Store

    def snapshot(self, seq: int, session: str, *files: PublishedFile, asked_by: str = "") -> None:
        snapshot = Snapshot(
            seq, "t_OFFLINE", session, "SYNC", f"entry-{seq}", self.store.at.current_snapshot, "", "",
            1_700_000_000_000 + seq * 60_000, files, {"summary": "12 of 12 replicas are ONLINE"},
            asked_by=asked_by, format=NEWEST,
        )  # fmt: skip
        self.store.at = replace(self.store.at, current_snapshot=self.staging.put_snapshot(snapshot))

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(self.app, words)

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json").stdout)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    store = Store(Pointer())
    published = Published(app, Staging(open_store(str(tmp_path / "staging"), {}, UNLIMITED)), store)

    @contextmanager
    def open_session_store(*_: object) -> Iterator[Store]:
        yield store

    @dataclass
    class Spec:
        name: str

    monkeypatch.setattr(receipts, "load_settings", lambda: None)
    monkeypatch.setattr(receipts, "open_session_store", open_session_store)
    monkeypatch.setattr(receipts, "open_staging", lambda spec: published.staging)
    monkeypatch.setattr(receipts, "one_table", lambda name, tables: Spec(name))
    return published


@pytest.fixture
def switched(table: Published) -> Published:
    table.snapshot(1, "cp1-aaaaaa", A1, B1)
    table.snapshot(2, "cp2-bbbbbb", A2, B1)
    return table


def test_why_a_segment_is_there(switched: Published) -> None:
    found = switched.json("why", "t__cp2-bbbbbb_1_0_0")
    assert found["file"] == "file:///in/[day]/a.csv"
    assert (found["version"], found["rows"], found["publishedBy"]) == ("v2", 5, "cp2-bbbbbb")
    assert (found["crc"], found["lineageEntry"], found["until"]) == (77, "entry-2", None)
    assert found["audit"] == "12 of 12 replicas are ONLINE"
    shown = switched.run("why", "t__cp2-bbbbbb_1_0_0").stdout
    assert "file:///in/[day]/a.csv" in shown


def test_why_a_segment_is_there_no_more(switched: Published) -> None:
    found = switched.json("why", "t__cp1-aaaaaa_1_0_0")
    assert found["replacedBy"] == "cp2-bbbbbb (SYNC)"
    assert found["until"] is not None


def test_a_switch_that_did_not_bring_a_segment_says_nothing_of_it(switched: Published) -> None:
    """The snapshot that published it is no longer kept: its entry and its audit are not known."""
    store = switched.staging.store
    [first] = [i.key for i in store.list("snapshots") if re.fullmatch(r"snapshots/1-.*\.json", i.key)]
    store.delete(first)
    found = switched.json("why", "t__cp1-aaaaaa_1_1_0")
    assert (found["publishedBy"], found["lineageEntry"], found["audit"]) == ("cp1-aaaaaa", None, None)


def test_what_a_driver_that_died_left_behind_is_no_switch(switched: Published) -> None:
    before = switched.store.at
    switched.snapshot(3, "cp3-cccccc", A2)  # written, and its driver died before it was the current one
    switched.store.at = before
    switched.snapshot(3, "cp3-cccccc", A2, B1)
    switched.snapshot(4, "cp4-dddddd", B1)
    assert [row["seq"] for row in switched.json("history", "t")] == [4, 3, 2, 1]
    assert [row["rows"] for row in switched.json("history", "t")] == [7, 12, 12, 10]


def test_no_more_is_read_than_is_shown(switched: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    switched.snapshot(3, "cp3-cccccc", A2)
    switched.snapshot(4, "cp4-dddddd", B1)
    read: list[str] = []
    snapshot = switched.staging.snapshot
    monkeypatch.setattr(switched.staging, "snapshot", lambda ref: read.append(ref.key) or snapshot(ref))
    assert len(switched.json("history", "t", "--newest", "2")) == 2
    assert [key.partition("-")[0] for key in read] == ["snapshots/4", "snapshots/3", "snapshots/2"]


@pytest.mark.parametrize(
    ("segment", "reason"),
    [
        ("flights_2013", "not a segment of this project"),
        ("t__cp9-cccccc_1_0_0", "no kept snapshot of t names"),
    ],
)
def test_a_segment_that_no_snapshot_names(switched: Published, segment: str, reason: str) -> None:
    error = switched.run("why", segment).exception
    assert isinstance(error, PinotAssetsError)
    assert reason in str(error)


def test_where_a_file_went(switched: Published) -> None:
    newer, older = switched.json("where", "t", "a.csv")
    assert (newer["segments"], newer["until"]) == (["t__cp2-bbbbbb_1_0_0"], None)
    assert (older["segments"], older["replacedBy"]) == (["t__cp1-aaaaaa_1_0_0"], "cp2-bbbbbb (SYNC)")
    error = switched.run("where", "t", "c.csv").exception
    assert isinstance(error, PinotAssetsError)
    assert "2 snapshots are kept" in str(error)


def test_what_each_switch_changed(switched: Published) -> None:
    newer, older = switched.json("history", "t")
    counts = ("filesAdded", "filesRewritten", "filesRemoved", "segmentsAdded", "segmentsRemoved", "rowsMore")
    assert [newer[key] for key in counts] == [0, 1, 0, 1, 1, 2]
    assert [older[key] for key in counts] == [2, 0, 0, 2, 0, 10]
    assert len(switched.json("history", "t", "--newest", "1")) == 1
    assert newer["publishedAt"] == "2023-11-14T22:15:20Z"
    assert switched.run("history", "t").stdout.splitlines() == [
        "seq  session     mode  published (UTC)      files     segments  rows      asked by",
        "2    cp2-bbbbbb  SYNC  2023-11-14 22:15:20  +0 ~1 -0  +1 -1     12 (+2)   -",
        "1    cp1-aaaaaa  SYNC  2023-11-14 22:14:20  +2 ~0 -0  +2 -0     10 (+10)  -",
    ]


def test_who_asked_for_each_switch_and_for_the_end_of_a_hold(switched: Published) -> None:
    switched.snapshot(3, "cp3-cccccc", B1, asked_by="ann@[host]")
    ended = HoldEnd(3, 1_700_000_200_000, "bob@[host]")
    switched.store.at = replace(switched.store.at, hold_ended=ended)
    rows = switched.json("history", "t")
    assert [row["askedBy"] for row in rows] == ["ann@[host]", None, None]
    assert [row["holdEndedBy"] for row in rows] == ["bob@[host]", None, None]
    assert [row["holdEndedAt"] for row in rows] == ["2023-11-14T22:16:40Z", None, None]
    lines = switched.run("history", "t").stdout.splitlines()
    assert [line.split()[-1] for line in lines[1:4]] == ["ann@[host]", "-", "-"]
    assert lines[4:] == ["the hold of cp3 was ended by bob@[host] at 2023-11-14 22:16:40 UTC"]


def test_a_table_that_was_never_published(table: Published) -> None:
    assert "never been published" in table.run("history", "t").stdout
    assert table.json("history", "t") == []
    for words in (["why", "t__cp1-aaaaaa_1_0_0"], ["where", "t", "a.csv"], ["diff", "t", "1"]):
        error = table.run(*words).exception
        assert isinstance(error, PinotAssetsError)
        assert "never been published" in str(error)


def test_what_lies_between_two_states(switched: Published) -> None:
    switched.snapshot(3, "cp3-cccccc", B1)
    found = switched.json("diff", "t", "1", "2")
    assert found["files"] == {"added": [], "removed": [], "rewritten": ["file:///in/[day]/a.csv"]}
    assert (found["segmentsTo"], found["segmentsFrom"]) == (["t__cp2-bbbbbb_1_0_0"], ["t__cp1-aaaaaa_1_0_0"])
    assert switched.json("diff", "t", "cp1-aaaaaa")["files"]["removed"] == ["file:///in/[day]/a.csv"]
    assert switched.json("diff", "t") == switched.json("diff", "t", "2")
    shown = switched.run("diff", "t", "1").stdout
    assert "- file:///in/[day]/a.csv (3 rows)" in shown
    error = switched.run("diff", "t", "9").exception
    assert isinstance(error, PinotAssetsError)
    assert "no snapshot 9" in str(error)


def test_what_a_driver_that_died_left_is_no_history(switched: Published) -> None:
    current = switched.store.at
    switched.snapshot(3, "cp3-cccccc", A1)
    switched.store.at = current
    assert [row["seq"] for row in switched.json("history", "t")] == [2, 1]
