"""What a rollback holds back, from values alone: which versions, and what of it is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pinot_assets.session.values.hold import (
    NO_HOLD,
    HeldVersion,
    Hold,
    after_publishing,
    as_listed,
    hold_of,
    still_held,
)
from pinot_assets.session.values.plan import Changes
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Fingerprint, SourceFile
from pinot_assets.snapshot.recipes import StoredRecipe


def version(n: int, size: int = 5) -> Fingerprint:
    return Fingerprint(size, n)


def published(**files: int) -> Snapshot:
    """Files in the version of that number, of equal size; the content of 0 is not known."""
    rows = tuple(
        PublishedFile(uri, version(n), f"sha-{n}" if n else "", 1, 0, "cp1", ()) for uri, n in files.items()
    )
    return Snapshot(1, "t_OFFLINE", "cp1-aaaaaa", "SYNC", "entry", None, "", "", 0, rows)


def changes(rewritten: dict[str, Fingerprint], same: str = "", touched: str = "") -> Changes:
    files = {uri: SourceFile(uri, found) for uri, found in rewritten.items()}
    others = {uri: SourceFile(uri, version(1)) for uri in same + touched}
    return Changes(
        new=(),
        rewritten=tuple(files.values()),
        deleted=(),
        touched={uri: version(1) for uri in touched},
        listed={**files, **others},
        listing_digest="",
    )


def reads(sha256: str, read: list[str]) -> Callable[[SourceFile], str]:
    def sha256_of(file: SourceFile) -> str:
        read.append(file.uri)
        return sha256

    return sha256_of


def tokens(hold: Hold, uri: str = "a") -> list[str]:
    return [held.token for held in hold.versions_of(uri)]


def names(*numbers: int) -> list[str]:
    return [version(n).token for n in numbers]


def test_every_version_that_was_taken_back_is_held_and_that_of_the_source_first() -> None:
    first = hold_of(published(a=3), published(a=3), published(a=2))
    now = published(a=2, d=1)
    second = hold_of(now, now, published(a=1), first)
    assert (tokens(first), tokens(second), tokens(second, "d")) == (names(3), names(3, 2), names(1))
    assert second.files["a"] == version(3).token, "which is all that there is in format 1"


def test_a_version_with_the_content_that_comes_back_is_not_held() -> None:
    touched = PublishedFile("a", version(9), "sha-1", 1, 0, "cp1", ())
    now = Snapshot(2, "t", "cp2-aaaaaa", "SYNC", "", None, "", "", 0, (touched,))
    assert hold_of(now, now, published(a=1)).is_empty


def test_a_hold_ends_where_what_the_source_has_is_visible() -> None:
    hold = hold_of(published(a=3), published(a=2), published(a=1))
    assert tokens(hold) == names(3, 2)
    assert tokens(still_held(hold, published(a=2))) == names(3)
    assert still_held(hold, published(a=3)).is_empty
    assert tokens(still_held(hold, published(b=1))) == names(3, 2)


def test_content_decides_and_is_read_only_where_it_can() -> None:
    hold, read = hold_of(published(a=2), published(a=2), published(a=1)), list[str]()
    for found, sha256, held, looks in (
        (version(2), "", names(2), 0),
        (version(8), "sha-2", names(8), 1),
        (version(8), "another", names(2), 1),
        (version(8, size=6), "sha-2", names(2), 0),
    ):
        read.clear()
        assert tokens(as_listed(hold, changes({"a": found}), reads(sha256, read))) == held
        assert len(read) == looks
    unknown = hold_of(published(a=0), published(a=0), published(a=1))
    assert unknown.versions == {}
    assert as_listed(unknown, changes({"a": version(8)}), reads("", read)) == unknown


def test_a_hold_of_format_1_knows_tokens_alone() -> None:
    hold = Hold({"a": version(2).token}, ("p",))
    assert hold.holds(SourceFile("a", version(2)))
    assert as_listed(hold, changes({"a": version(8)}), reads("x", [])) == hold
    assert HeldVersion.read("of another shape") == HeldVersion("of")


def test_what_source_and_table_agree_on_again_is_let_go() -> None:
    hold = Hold({"a": version(2).token, "t": version(2).token, "gone": version(2).token}, ("p", "q"))
    found = as_listed(hold, changes({}, same="ap", touched="t"), reads("", []))
    assert (set(found.files), found.removals) == ({"t", "gone"}, ("q",))


def test_what_is_published_from_the_source_is_let_go() -> None:
    hold = Hold({"a": version(2).token, "b": version(2).token, "c": version(2).token}, ("p", "q", "r"))
    before, now = published(a=1, b=1, p=1, q=1, r=1), published(a=3, b=1, p=2, q=1)
    found = after_publishing(hold, before, now)
    assert (set(found.files), found.removals) == ({"b", "c"}, ("q",))
    assert after_publishing(NO_HOLD, None, now) == NO_HOLD


def revised(revision: int, **files: int) -> Snapshot:
    """As `published`, of files that this revision built."""
    made = published(**files)
    rows = tuple(replace(f, version=f.fingerprint.token, revision=revision) for f in made.files)
    return replace(made, files=rows, recipes=(StoredRecipe(revision, {}, {}),))


def test_a_rollback_over_a_rebuild_holds_rebuilds_and_another_one_does_not() -> None:
    old, rebuilt = revised(1, a=1, b=1), revised(2, a=1, b=1)
    held = hold_of(rebuilt, rebuilt, old)
    assert held == Hold({}, (), rebuilds=True)
    assert not held.is_empty
    assert not hold_of(old, old, revised(1, a=1)).rebuilds
    assert not hold_of(revised(2, a=2), revised(2, a=2), revised(1, a=1)).rebuilds
    assert hold_of(old, old, revised(1, a=1), held).rebuilds


def test_other_files_that_are_published_do_not_end_the_hold_of_a_rebuild() -> None:
    held = Hold({}, (), rebuilds=True)
    assert after_publishing(held, revised(1, a=1), revised(2, a=1, b=1)).rebuilds
    assert as_listed(held, changes({}, same="a"), reads("", [])).rebuilds
