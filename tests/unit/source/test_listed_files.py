from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.source.fingerprint import Fingerprint, SourceFile
from pinot_assets.source.listed_files import ListedFiles, columns_of, files_of, page_of

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
    found = ListedFiles([page_of(one), page_of(other)])
    assert found == expected
    assert [*found] == sorted(expected)
    assert len(found) == len(expected)
    assert [*files_of(columns_of(expected))] == [*expected.values()]


@settings(deadline=None)
@given(st.lists(FILES, unique_by=lambda file: file.uri))
def test_the_digest_is_that_of_uris_and_versions(files: list[SourceFile]) -> None:
    digest = hashlib.sha256()
    for file in sorted(files):
        version = file.fingerprint
        digest.update(f"{file.uri}\t{version.size}\t{version.mtime_us}\t{version.etag or ''}\n".encode())
    assert ListedFiles([page_of(files)]).digest == digest.hexdigest()


def test_equal_listings_are_equal() -> None:
    assert ListedFiles([page_of([A, B])]) == ListedFiles([page_of([B]), page_of([A])])
    assert ListedFiles([page_of([A])]) != ListedFiles([page_of([B])])


def test_a_file_that_is_not_listed_is_missing() -> None:
    with pytest.raises(KeyError):
        ListedFiles([page_of([A])])[B.uri]
