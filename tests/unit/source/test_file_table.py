from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.snapshot.receipt import Fingerprint, SourceFile
from pinot_assets.source.file_table import FileTable, columns_of, files_of, page_of

A, B = (SourceFile(f"s3://b/{name}", Fingerprint(3, 5, name)) for name in "ab")
VERSIONS = st.builds(
    Fingerprint,
    st.integers(0, 2**60),
    st.integers(-(10**15), 10**15),
    st.none() | st.text("ab-1", max_size=4),
)
FILES = st.builds(SourceFile, st.text("a/%.Z~", min_size=1, max_size=4), VERSIONS)


@settings(deadline=None)
@given(st.lists(FILES), st.lists(FILES))
def test_files_by_uri_whatever_their_order(one: list[SourceFile], other: list[SourceFile]) -> None:
    expected = {file.uri: file for file in (*one, *other)}
    found = FileTable([page_of(one), page_of(other)])
    assert found == expected
    assert [*found] == sorted(expected)
    assert len(found) == len(expected)
    assert [*files_of(columns_of(expected))] == [*expected.values()]


@settings(deadline=None)
@given(st.lists(FILES, unique_by=lambda file: file.uri), st.lists(FILES, unique_by=lambda file: file.uri))
def test_equal_digests_are_equal_listings(one: list[SourceFile], other: list[SourceFile]) -> None:
    """However they are ordered and cut into pages; no etag and an empty one are the same."""
    digest = FileTable([page_of(one)]).digest
    half = len(one) // 2
    assert FileTable([page_of(one[half:]), page_of(one[:half])]).digest == digest
    told = [
        sorted((f.uri, f.fingerprint.size, f.fingerprint.mtime_us, f.fingerprint.etag or "") for f in files)
        for files in (one, other)
    ]
    assert (FileTable([page_of(other)]).digest == digest) == (told[0] == told[1])


def test_the_digest_is_that_of_uris_and_versions() -> None:
    """Sensors and snapshots keep it, so it stays the same from release to release."""
    uris, sizes, times, etags = b"s3://b/as3://b/b", (3, 3), (5, 5), b"ab"
    columns = (
        struct.pack("<2i", 8, 8),
        uris,
        struct.pack("<4q", *sizes, *times),
        struct.pack("<2i", 1, 1),
        etags,
    )
    assert FileTable([page_of([A, B])]).digest == hashlib.sha256(b"2\n" + b"".join(columns)).hexdigest()
    assert FileTable([]).digest == hashlib.sha256(b"0\n").hexdigest()


def test_equal_listings_are_equal() -> None:
    assert FileTable([page_of([A, B])]) == FileTable([page_of([B]), page_of([A])])
    assert FileTable([page_of([A])]) != FileTable([page_of([B])])


def test_a_file_that_is_not_listed_is_missing() -> None:
    with pytest.raises(KeyError):
        FileTable([page_of([A])])[B.uri]
