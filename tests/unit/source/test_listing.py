from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import ListingFailed, SourceError
from pinot_assets.source.factory import open_store
from pinot_assets.source.file_table import Page
from pinot_assets.source.listing import Inventory, take_inventory
from pinot_assets.source.local_store import LocalObjectStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.csv", "d/b.csv", "d/c.json", "_SUCCESS", ".hidden.csv", ".git/x.csv", "d/half.csv.tmp"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "_temporary/0").mkdir(parents=True)
    (tmp_path / "_temporary/0/part.csv").write_text("x")
    return tmp_path


def names(folder: Path, **patterns: str) -> set[str]:
    store = open_store(str(folder), {}, UNLIMITED)
    return {store.key_of(uri) for uri in take_inventory(store, **patterns).files}


def test_without_patterns_all_but_what_writers_leave_around(folder: Path) -> None:
    assert names(folder) == {"a.csv", "d/b.csv", "d/c.json"}


def test_patterns_choose_by_the_whole_path(folder: Path) -> None:
    assert names(folder, include="glob:**/*.csv") == {"a.csv", "d/b.csv"}
    assert names(folder, include="glob:*.csv") == set()
    assert names(folder, include=f"glob:{folder}/*.csv") == {"a.csv"}
    assert names(folder, exclude="glob:**/d/**") == {"a.csv"}
    assert names(folder, include="glob:**/*.{csv,json}", exclude="regex:.*b[.]csv") == {"a.csv", "d/c.json"}


@pytest.mark.parametrize(
    ("include", "found"),
    [
        ("glob:**/_SUCCESS", {"_SUCCESS"}),
        ("glob:**/.*.csv", {".hidden.csv"}),
        ("glob:**/.git/*", {".git/x.csv"}),
        ("glob:**/*.tmp", {"d/half.csv.tmp"}),
        ("glob:**/_temporary/**", {"_temporary/0/part.csv"}),
        (r"regex:.*/\.[^/]*\.csv", {".hidden.csv"}),
        ("regex:.*/.*csv", {"a.csv", "d/b.csv"}),
    ],
)
def test_a_pattern_that_spells_a_hidden_name_gets_it(folder: Path, include: str, found: set[str]) -> None:
    assert names(folder, include=include) == found


def test_what_is_left_out_is_counted(folder: Path) -> None:
    inventory = take_inventory(open_store(str(folder), {}, UNLIMITED), include="glob:**/*.csv")
    assert len(inventory.files) == 2
    assert inventory.hidden == 3  # .hidden.csv, .git/x.csv, _temporary/0/part.csv
    assert inventory.skipped == 3  # c.json, _SUCCESS, half.csv.tmp


def take(folder: Path) -> Inventory:
    return take_inventory(open_store(str(folder), {}, UNLIMITED))


def test_the_digest_follows_names_and_versions(folder: Path) -> None:
    first = take(folder)
    assert take(folder).digest == first.digest
    seen = {first.digest}
    os.utime(folder / "a.csv", (1, 1))
    seen.add(take(folder).digest)
    (folder / "a.csv").rename(folder / "z.csv")
    seen.add(take(folder).digest)
    (folder / "z.csv").unlink()
    seen.add(take(folder).digest)
    assert len(seen) == 4


def test_a_listing_that_breaks_gives_no_inventory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = LocalObjectStore.pages

    def broken(self: LocalObjectStore, after: str = "") -> Iterator[Page]:
        yield next(whole(self, after))
        raise ListingFailed("cut")

    monkeypatch.setattr(LocalObjectStore, "pages", broken)
    with pytest.raises(ListingFailed):
        take(folder)


def test_a_bad_pattern_is_told_before_listing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="write glob:"):
        take_inventory(open_store(str(tmp_path / "gone"), {}, UNLIMITED), include="*.csv")


def test_an_empty_folder_is_an_empty_inventory(tmp_path: Path) -> None:
    assert take(tmp_path).files == {}
