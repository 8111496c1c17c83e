"""Which listed files are there yet."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.source import Fingerprint, Inventory, SourceFile, open_store, take_inventory
from pinot_assets.source.readiness import Known, Readiness, Rules, Unready, judge_readiness, unready_words

NOW_S = 1_800_000_000
AGE = Rules(min_age_s=60)
MARKER = Rules(marker="_SUCCESS")


def listing(complete: Collection[str] = (), being_written: Collection[str] = (), **ages: float) -> Inventory:
    """`d/a=5`: `s3://in/d/a`, five seconds old; `__` stands for the slash."""
    files = {}
    for name, age in ages.items():
        uri = f"s3://in/{name.replace('__', '/')}"
        files[uri] = SourceFile(uri, Fingerprint(1, int((NOW_S - age) * 1e6)))
    marked, busy = (frozenset(f"s3://in/{d}" for d in ds) for ds in (complete, being_written))
    return Inventory(files, NOW_S * 1000, "all", complete=marked, being_written=busy)


def known(*names: str, published: Inventory | None = None) -> Known:
    """Files that the table knows; with `published`, in the versions of that listing."""
    uris = [f"s3://in/{name}" for name in names]
    versions = {
        uri: [published.files[uri].fingerprint] if published and uri in published.files else []
        for uri in uris
    }
    return Known(versions, frozenset(uris))


def shown(found: Readiness) -> tuple[list[str], list[str], list[str]]:
    """What counts, what comes later, what everything waits for: names."""
    sides = (found.counted.files, [u.uri for u in found.later], [u.uri for u in found.waiting])
    return tuple(sorted(uri.removeprefix("s3://in/") for uri in side) for side in sides)  # type: ignore[return-value]


# --- age -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "counts"),
    [
        (0, False),
        (59.9, False),
        (60, True),
        (1e6, True),
        (-1, False),
        (-59.9, False),
        (-60, True),
        (-1e9, True),
    ],
)
def test_a_new_file_counts_from_its_age_on(age: float, counts: bool) -> None:
    """One that a wrong clock dated far ahead must not be kept out until that day."""
    inventory = listing(a=age, old=1000)
    assert shown(judge_readiness(inventory, AGE, Known())) == (
        (["a", "old"], [], []) if counts else (["old"], ["a"], [])
    )


def test_without_rules_every_file_counts() -> None:
    inventory = listing(a=0, b=-5, d__c=1e6)
    assert judge_readiness(inventory, Rules(), known("a", "gone")) == Readiness(inventory, inventory)


def test_what_is_not_there_yet_is_not_in_the_digest() -> None:
    """So that the sensor sees a change when it is."""
    young = judge_readiness(listing(a=1, b=100), AGE, Known()).counted
    assert young.digest == judge_readiness(listing(a=2, b=100), AGE, Known()).counted.digest
    old = judge_readiness(listing(a=60, b=100), AGE, Known()).counted
    assert young.digest != old.digest


def test_a_known_file_that_is_young_and_rewritten_holds_everything_up() -> None:
    found = judge_readiness(listing(a=12, b=100, c=1), AGE, known("a", "b"))
    assert shown(found) == (["a", "b"], ["c"], ["a"])
    assert found.waiting == (Unready("s3://in/a", "is 12 s old, minFileAgeSec is 60"),)


def test_a_known_file_that_is_young_and_as_it_was_published_holds_nothing_up() -> None:
    """An age that is asked for after the fact, or a push without any."""
    inventory = listing(a=12)
    assert shown(judge_readiness(inventory, AGE, known("a", published=inventory))) == (["a"], [], [])


def test_deletions_need_no_age() -> None:
    assert shown(judge_readiness(listing(b=100), AGE, known("a", "b"))) == (["b"], [], [])


# --- marker --------------------------------------------------------------------------------------


def test_files_count_where_the_marker_lies_in_their_own_directory() -> None:
    inventory = listing(complete=["d"], a=0, d__b=0, d__e__c=0)
    assert shown(judge_readiness(inventory, MARKER, Known())) == (["d/b"], ["a", "d/e/c"], [])


def test_a_rewritten_file_without_marker_holds_everything_up() -> None:
    found = judge_readiness(listing(complete=["e"], d__a=0, e__b=0), MARKER, known("d/a", "e/b"))
    assert shown(found) == (["d/a", "e/b"], [], ["d/a"])
    assert found.waiting[0].why == "is in a directory without _SUCCESS"


def test_a_published_file_that_stays_as_it_is_needs_no_marker() -> None:
    inventory = listing(d__a=0)
    assert shown(judge_readiness(inventory, MARKER, known("d/a", published=inventory))) == (["d/a"], [], [])


def test_a_file_that_vanished_from_an_unfinished_directory_holds_everything_up() -> None:
    inventory = listing(d__b=0)
    found = judge_readiness(inventory, MARKER, known("d/a", "d/b", published=inventory))
    assert shown(found) == (["d/b"], [], ["d/a"])
    assert found.waiting[0].why == "was deleted from a directory that has other files and no _SUCCESS"


def test_a_file_that_vanished_from_a_finished_directory_is_deleted() -> None:
    inventory = listing(complete=["d"], d__b=0)
    assert shown(judge_readiness(inventory, MARKER, known("d/a", "d/b", published=inventory))) == (
        ["d/b"],
        [],
        [],
    )


def test_a_directory_that_vanished_is_deleted() -> None:
    inventory = listing(complete=["e"], e__b=0)
    assert shown(judge_readiness(inventory, MARKER, known("d/a", "e/b"))) == (["e/b"], [], [])


def test_a_directory_that_a_writer_has_emptied_and_is_at_is_not_deleted() -> None:
    """Spark's overwrite: everything gone, new files under `_temporary`, the marker last."""
    inventory = listing(complete=["e"], being_written=["d"], e__b=0)
    assert shown(judge_readiness(inventory, MARKER, known("d/a", "e/b"))) == (["e/b"], [], ["d/a"])


def test_where_a_deletion_does_nothing_it_holds_nothing_up() -> None:
    appended = Known({"s3://in/d/a": []})
    assert shown(judge_readiness(listing(complete=["e"], d__b=0, e__c=0), MARKER, appended)) == (
        ["e/c"],
        ["d/b"],
        [],
    )


# --- everything at once --------------------------------------------------------------------------


def test_a_table_is_not_emptied_while_its_files_are_replaced() -> None:
    found = judge_readiness(listing(b=1), AGE, known("a"))
    assert shown(found) == ([], ["b"], ["b"])


def test_an_empty_listing_is_an_empty_listing() -> None:
    """Whoever lists looks twice; there is nothing to wait for here."""
    assert shown(judge_readiness(listing(), Rules(60, "_SUCCESS"), known("a", "d/b"))) == ([], [], [])


def test_it_is_told_how_many_the_first_and_why() -> None:
    files = [Unready("s3://in/a", "is 3 s old, minFileAgeSec is 60"), Unready("s3://in/b", "x")]
    assert unready_words(files) == "2 files are not ready (s3://in/a is 3 s old, minFileAgeSec is 60)"
    assert unready_words(files[1:]) == "1 file is not ready (s3://in/b x)"


NAMES = st.sampled_from(["a", "d/a", "d/b", "e/a"])


@given(
    st.dictionaries(NAMES, st.floats(-200, 200)),
    st.frozensets(st.sampled_from(["d", "e"])),
    st.dictionaries(NAMES, st.booleans()),
    st.booleans(),
)
def test_nothing_that_is_known_ever_looks_deleted(ages, complete, table, asks_marker) -> None:  # type: ignore[no-untyped-def]
    """A listed file is left out only when the table does not know it; a known one counts or holds up."""
    inventory = listing(complete=complete, **{name.replace("/", "__"): age for name, age in ages.items()})
    published = [name for name, as_listed in table.items() if as_listed]
    knows = known(*table, published=inventory)
    for name in set(table) - set(published):
        knows.versions[f"s3://in/{name}"] = []  # type: ignore[index]
    found = judge_readiness(inventory, Rules(60, "_SUCCESS" if asks_marker else None), knows)
    left_out = inventory.files.keys() - found.counted.files.keys()
    assert not left_out & knows.versions.keys()
    assert left_out == {u.uri for u in found.later}
    ready = {u for u in found.counted.files if u not in {w.uri for w in found.waiting}}
    for uri in ready - {f"s3://in/{name}" for name in published}:
        age = NOW_S - inventory.files[uri].fingerprint.mtime_us / 1e6
        assert abs(age) >= 60 - 1e-3
        assert not asks_marker or uri.rpartition("/")[0] in inventory.complete


# --- in a real directory ---------------------------------------------------------------------------


def test_markers_and_writers_are_seen_in_a_listing(tmp_path: Path) -> None:
    for name in ("d/a.csv", "d/_SUCCESS", "e/_temporary/0/_temporary/x/part.csv", "f/b.csv", "done"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    store = open_store(str(tmp_path), {}, UNLIMITED)
    inventory = take_inventory(store, marker="_SUCCESS")
    assert inventory.complete == {store.uri_of("d")}
    assert inventory.being_written == {store.uri_of("e")}
    assert {store.key_of(uri) for uri in inventory.files} == {"d/a.csv", "f/b.csv", "done"}
    marked = take_inventory(store, marker="done", include="glob:**/{d*,*.csv}", exclude="glob:**/done")
    assert marked.complete == {store.uri}
    assert {store.key_of(uri) for uri in marked.files} == {"d/a.csv", "f/b.csv"}
