"""Rows of a plan whose version is the published one: they replace what they built before, in append too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pinot_assets.session.decide.next_plan import new_plan, reconcile
from pinot_assets.session.stores.plan_parquet import plan_from_parquet, plan_to_parquet
from pinot_assets.session.values.plan import (
    Changes,
    Plan,
    RowStatus,
    published_files,
    segments_from,
    superseded,
    with_receipts,
)
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Fingerprint, Output, Receipt, SourceFile
from pinot_assets.snapshot.recipes import StoredRecipe

REPLACING = [Mode.APPEND, Mode.SYNC]


def version(n: int) -> Fingerprint:
    return Fingerprint(10 + n, n)


def receipt(uri: str, ordinal: int, n: int = 1, session: str = "new") -> Receipt:
    name = f"{session}.{uri}.{n}"
    output = Output(name, 1, 3, f"file:///{name}", 9, "sha", f"file:///{name}.meta")
    return Receipt(uri, ordinal, 0, version(n), f"sha-{uri}-{n}", 3, 0, (output,), 0.1, "w/1")


def published(uri: str, n: int = 1, revision: int = 1) -> PublishedFile:
    return PublishedFile.from_receipt(receipt(uri, 0, n, "old"), "cp1-0", revision)


def snapshot(*files: PublishedFile) -> Snapshot:
    return Snapshot(1, "t_OFFLINE", "cp1-0", "SYNC", "e", None, "d", "f", 0, files)


def changes(rebuilds: Sequence[str], **listed: int) -> Changes:
    files = {uri: SourceFile(uri, version(n)) for uri, n in listed.items()}
    return Changes((), (), (), {}, files, "digest", tuple(files[uri] for uri in rebuilds))


def built(plan: Plan, *receipts: Receipt) -> Plan:
    return with_receipts(plan, {r.ordinal: (f"files/{r.uri}", r) for r in receipts})


@pytest.mark.parametrize("mode", REPLACING)
def test_a_file_that_is_built_again_replaces_its_published_segments(mode: Mode) -> None:
    current = snapshot(published("a"), published("b"))
    plan = built(new_plan("cp2-0", mode, changes("a", a=1, b=1)), receipt("a", 0))
    assert segments_from(plan, current, frozenset(current.segments)) == ("old.a.1",)
    after = published_files(plan, {0: receipt("a", 0)}, current, 2)
    assert [(f.uri, f.session, f.revision) for f in after] == [("a", "cp2-0", 2), ("b", "cp1-0", 1)]


def test_in_append_the_older_versions_of_such_a_file_stay() -> None:
    current = snapshot(published("a", 1), published("a", 2))
    plan = built(new_plan("cp2-0", Mode.APPEND, changes("a", a=2)), receipt("a", 0, 2))
    assert segments_from(plan, current, frozenset(current.segments)) == ("old.a.2",)
    after = published_files(plan, {0: receipt("a", 0, 2)}, current, 2)
    assert [f.outputs[0].segment for f in after] == ["old.a.1", "new.a.2"]


def test_in_append_a_file_that_is_rewritten_before_it_is_read_is_added() -> None:
    """The task read another version than planned (R12): append takes no rows away for it."""
    current = snapshot(published("a", 1))
    plan = built(new_plan("cp2-0", Mode.APPEND, changes("a", a=1)), receipt("a", 0, 2))
    assert segments_from(plan, current, frozenset(current.segments)) == ()
    assert len(published_files(plan, {0: receipt("a", 0, 2)}, current, 2)) == 2


@pytest.mark.parametrize("mode", REPLACING)
def test_a_file_that_was_only_touched_is_built_again_in_its_place(mode: Mode) -> None:
    current = snapshot(published("a", 1))
    seen = replace(changes("a", a=2), touched={"a": version(2)})
    plan = built(new_plan("cp2-0", mode, seen), receipt("a", 0, 2))
    assert [file.uri for file in superseded(plan, current)] == ["a"]
    (after,) = published_files(plan, {0: receipt("a", 0, 2)}, current, 2)
    assert (after.fingerprint, after.revision) == (version(2), 2)


@pytest.mark.parametrize("mode", REPLACING)
def test_an_attempt_goes_on_with_files_that_are_still_to_be_built_again(mode: Mode) -> None:
    before = new_plan("cp2-0", mode, changes("ab", a=1, b=1, c=1))
    again = reconcile(before, changes("ab", a=1, b=1, c=1), {0: ("files/a", receipt("a", 0))})
    assert [(r.uri, r.status) for r in again.rows] == [("a", RowStatus.DONE), ("b", RowStatus.BUILD)]
    left = reconcile(before, changes("", a=1, b=1, c=1), {})
    assert {r.status for r in left.rows} == {RowStatus.GONE}


def test_a_swap_that_only_remembers_replaces_nothing() -> None:
    plan = Plan("cp2-0", 0, Mode.SWAP, (), (), {"a": version(2)}, "d")
    assert superseded(plan, snapshot(published("a"))) == []


def test_a_plan_keeps_its_recipe_in_format_2() -> None:
    recipe = StoredRecipe(0, {"filter": "a = 1"}, {"columns": {}}, "2", "0.11")
    plan = replace(new_plan("cp2-0", Mode.SYNC, changes("a", a=1)), recipe=recipe)
    for number, kept in ((1, None), (2, recipe)):
        data = plan_to_parquet(replace(plan, format=number))
        assert plan_from_parquet(data) == replace(plan, format=number, recipe=kept)
    again = reconcile(plan, changes("a", a=1), {})
    assert again.recipe == recipe
