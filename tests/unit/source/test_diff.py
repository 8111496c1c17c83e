from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pinot_assets.snapshot.published_files import VERSIONS
from pinot_assets.snapshot.receipt import Fingerprint, SourceFile
from pinot_assets.source.diff import Diff, differing
from pinot_assets.source.diff import diff as compared
from pinot_assets.source.file_table import files_of, page_of


class Published(NamedTuple):
    fingerprint: Fingerprint
    sha256: str


MD5 = "9dd4e461268c8034f5c8564e155c67a6"
OTHER = "0cc175b9c0f1b6a831c399e269772661"


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def diff(
    listed: dict[str, SourceFile], ledger: dict[str, Published], sha256: Callable[[SourceFile], str]
) -> Diff:
    versions = {uri: file.fingerprint for uri, file in ledger.items()}
    return compared(listed, versions, lambda file: sha256(file) == ledger[file.uri].sha256)


def listing(**files: Fingerprint) -> dict[str, SourceFile]:
    return {uri: SourceFile(uri, print_) for uri, print_ in files.items()}


def never(file: SourceFile) -> str:
    raise AssertionError(f"{file.uri} was read")


def test_each_file_is_told_once_in_its_place() -> None:
    same, grown = Fingerprint(3, 10), Fingerprint(4, 11)
    found = diff(
        listing(b=same, a=same, c=grown),
        {"b": Published(same, "x"), "c": Published(same, "x"), "d": Published(same, "x")},
        never,
    )
    assert [f.uri for f in found.new] == ["a"]
    assert [f.uri for f in found.unchanged] == ["b"]
    assert [f.uri for f in found.rewritten] == ["c"]
    assert found.rewritten[0].fingerprint == grown
    assert found.deleted == ("d",)
    assert found.touched == ()


def test_e03_equal_content_under_a_new_mtime_is_touched() -> None:
    before = Published(Fingerprint(3, 10), sha(b"abc"))
    found = diff(listing(a=Fingerprint(3, 99)), {"a": before}, lambda _: sha(b"abc"))
    assert [f.fingerprint.mtime_us for f in found.touched] == [99]
    assert found.rewritten == ()


def test_other_content_of_the_same_size_is_rewritten() -> None:
    before = Published(Fingerprint(3, 10), sha(b"abc"))
    assert diff(listing(a=Fingerprint(3, 99)), {"a": before}, lambda _: sha(b"abd")).rewritten


def test_e03_an_equal_content_etag_needs_no_reading() -> None:
    for etag in (MD5, f"{MD5}-12"):
        before = Published(Fingerprint(3, 10, etag), sha(b"abc"))
        assert diff(listing(a=Fingerprint(3, 99, etag)), {"a": before}, never).touched


def test_e03_an_unequal_etag_proves_nothing() -> None:
    """Uploaded again in other parts, or encrypted: the MD5-like tag differs, the content does not."""
    before = Published(Fingerprint(3, 10, MD5), sha(b"abc"))
    for etag in (OTHER, f"{MD5}-2", None):
        assert diff(listing(a=Fingerprint(3, 99, etag)), {"a": before}, lambda _: sha(b"abc")).touched
        assert diff(listing(a=Fingerprint(3, 99, etag)), {"a": before}, lambda _: sha(b"xyz")).rewritten


def test_a_tag_that_is_not_made_of_content_proves_nothing() -> None:
    before = Published(Fingerprint(3, 10, "W/1"), sha(b"abc"))
    assert diff(listing(a=Fingerprint(3, 99, "W/1")), {"a": before}, lambda _: sha(b"abd")).rewritten


def test_the_version_id_alone_changes_nothing() -> None:
    """A listing does not know it, the HEAD that the receipt came from does."""
    before = Published(Fingerprint(3, 10, MD5, "v1"), sha(b"abc"))
    assert diff(listing(a=Fingerprint(3, 10, MD5)), {"a": before}, never).unchanged


def test_e04_equal_size_and_time_are_told_apart_by_the_etag_alone() -> None:
    before = Published(Fingerprint(3, 10, MD5), sha(b"abc"))
    assert diff(listing(a=Fingerprint(3, 10, OTHER)), {"a": before}, lambda _: sha(b"abd")).rewritten
    without_etag = Published(Fingerprint(3, 10), sha(b"abc"))
    assert diff(listing(a=Fingerprint(3, 10)), {"a": without_etag}, never).unchanged


CONTENTS = st.sampled_from([b"", b"a", b"b", b"aa", b"ab"])
# A version is content and time; the etag is honest (md5), absent, or a fresh one on each write (KMS).
FILES = st.dictionaries(st.sampled_from("abcdefg"), st.tuples(CONTENTS, st.integers(0, 2)))


@given(FILES, FILES, st.sampled_from(["md5", "none", "kms"]))
def test_content_decides(
    before: dict[str, tuple[bytes, int]], after: dict[str, tuple[bytes, int]], kind: str
) -> None:
    def version(content: bytes, time: int, side: str) -> Fingerprint:
        salt = f"{side}{time}".encode() if kind == "kms" else b""
        etag = None if kind == "none" else hashlib.md5(content + salt).hexdigest()
        # Without an etag, the same size and time with other content cannot be seen (edge case E4).
        mtime = time if kind != "none" else time + (0 if side == "before" else 100)
        return Fingerprint(len(content), mtime, etag)

    read: list[str] = []

    def content_sha256(file: SourceFile) -> str:
        read.append(file.uri)
        return sha(after[file.uri][0])

    found = diff(
        listing(**{uri: version(*file, "after") for uri, file in after.items()}),
        {uri: Published(version(*file, "before"), sha(file[0])) for uri, file in before.items()},
        content_sha256,
    )
    both = before.keys() & after.keys()
    equal = {uri for uri in both if before[uri][0] == after[uri][0]}
    assert {f.uri for f in found.new} == after.keys() - before.keys()
    assert set(found.deleted) == before.keys() - after.keys()
    assert {f.uri for f in found.rewritten} == both - equal
    assert {f.uri for f in (*found.unchanged, *found.touched)} == equal
    assert len(read) == len(set(read))
    assert all(len(before[uri][0]) == len(after[uri][0]) for uri in read)


VERSION = st.builds(Fingerprint, st.integers(0, 2), st.integers(0, 1), st.sampled_from([None, "", MD5]))
URIS = st.sampled_from("abcde")


def ledger_of(rows: list[tuple[str, Fingerprint]]) -> pa.Table:
    values = [{"uri": uri, **version.to_json()} for uri, version in rows]
    return pa.Table.from_pylist(values, schema=VERSIONS)


@settings(deadline=None)
@given(
    st.dictionaries(URIS, VERSION),
    st.lists(st.tuples(URIS, VERSION)),
    st.sampled_from([1, 2, 1000]),
    st.booleans(),
)
@example({"a": Fingerprint(1, 0, MD5)}, [("a", Fingerprint(1, 0, OTHER))], 1, True)  # the etag alone
@example({"a": Fingerprint(1, 0, MD5)}, [("a", Fingerprint(1, 1, MD5))], 1, True)
@example({"a": Fingerprint(1, 0, None)}, [("a", Fingerprint(2, 0, None))], 1, True)
def test_what_differs_is_what_the_diff_tells(
    listed: dict[str, Fingerprint], ledger: list[tuple[str, Fingerprint]], stretch: int, in_order: bool
) -> None:
    if in_order:  # as this release writes it; the newest of a URI is the last
        ledger.sort(key=itemgetter(0))
    files = listing(**dict(sorted(listed.items())))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys.modules[differing.__module__], "_STRETCH", stretch)
        left, others = differing(page_of(files.values()), ledger_of(ledger))
    seen, known = ({file.uri: file for file in files_of(side)} for side in (left, others))
    assert (len(seen), len(known)) == (left.num_rows, others.num_rows)

    newest = dict(ledger)
    whole = compared(files, newest, lambda _: False)
    part = compared(seen, {uri: file.fingerprint for uri, file in known.items()}, lambda _: False)
    assert (part.new, part.rewritten, part.deleted) == (whole.new, whole.rewritten, whole.deleted)
    assert part.touched == whole.touched
    assert part.unchanged == ()


def test_a_million_rows_are_not_looked_up_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only stretches that differ are; here one URI is gone from the ledger and one is new in it."""
    rows = [(f"{n:05}", Fingerprint(n, n, None)) for n in range(5000)]
    looked_up: list[int] = []
    index_in = pc.index_in

    def counting(uris: pa.ChunkedArray, **others: Any) -> pa.ChunkedArray:
        looked_up.append(len(uris))
        return index_in(uris, **others)

    monkeypatch.setattr(pc, "index_in", counting)
    listed = page_of([SourceFile(uri, version) for uri, version in rows[:2500] + rows[2501:]])
    left, others = differing(listed, ledger_of(rows[:4200] + rows[4201:]))
    assert left.column("uri").to_pylist() == ["04200"]
    assert others.column("uri").to_pylist() == ["02500"]
    assert 0 < sum(looked_up) <= 2 * 1000
