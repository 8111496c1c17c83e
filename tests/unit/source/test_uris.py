from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.errors import SourceError
from pinot_assets.source.uris import check_key, join_uri, key_below, parse_root


@pytest.mark.parametrize(
    ("written", "uri"),
    [
        ("/data/in", "file:///data/in"),
        ("/data//in/./", "file:///data/in"),
        ("/data/50% #1", "file:///data/50%25%20%231"),
        ("file:///data/in/", "file:///data/in"),
        ("file:/data/in", "file:///data/in"),
        ("FILE://localhost/data", "file:///data"),
        ("file:///data/a%20b", "file:///data/a%20b"),
        ("file:///data/a b", "file:///data/a%20b"),
        ("file:///data/%C3%BC", "file:///data/%C3%BC"),
        ("file:///data/ü", "file:///data/%C3%BC"),
        ("file:///", "file:///"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3a://bucket/in/", "s3://bucket/in"),
        ("gs://bucket/in/", "gs://bucket/in"),
        ("abfss://raw@lake.dfs.core.windows.net/", "abfss://raw@lake.dfs.core.windows.net"),
        ("abfs://raw@lake.dfs.core.windows.net/a b", "abfss://raw@lake.dfs.core.windows.net/a%20b"),
        ("s3://bucket/in/dt=2024-01-01,x", "s3://bucket/in/dt=2024-01-01%2Cx"),
    ],
)
def test_a_folder_has_one_spelling(written: str, uri: str) -> None:
    assert parse_root(written).uri == uri
    assert parse_root(uri).uri == uri


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("data/in", "neither a URI nor an absolute path"),
        ("hdfs://x/y", "scheme hdfs"),
        ("file://data/in", "host name"),
        ("file:///data/../in", "'..'"),
        ("s3://bucket/a//b", "empty or '.' segment"),
        ("s3://bucket/./b", "empty or '.' segment"),
        ("s3:///in", "no bucket"),
        ("gs://", "it names no bucket"),
        ("s3://b/x", "no bucket can have the name between // and the next /"),
        ("s3://my bucket/x", "no bucket can have the name between // and the next /"),
        ("gs://bucket/../b", "'..'"),
        ("abfss://lake.dfs.core.windows.net/in", "no container and account"),
        ("abfss://raw@lake/x", "no container and account"),
        ("abfss://raw@lake:key@x.dfs.core.windows.net/x", "no container and account"),
        ("s3://bucket/a?b", "%3F"),
        ("s3://bucket/a#1", "%23"),
    ],
)
def test_what_is_ambiguous_is_refused(written: str, why: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_root(written)
    assert why in str(caught.value)


def test_keys_in_a_uri_are_not_shown() -> None:
    for uri in ("s3://AKIAEXAMPLE:s3cret@bucket/in", "gs://k:s3cret@b/in", "abfss://k:s3cret@b/in"):
        with pytest.raises(SourceError) as caught:
            parse_root(uri)
        assert "s3cret" not in str(caught.value)


SEGMENTS = st.binary(min_size=1, max_size=12).map(os.fsdecode)
KEYS = st.lists(
    SEGMENTS.filter(lambda s: "/" not in s and "\0" not in s and s not in (".", "..")), min_size=1, max_size=3
).map("/".join)


@given(KEYS, st.sampled_from(["file:///data", "file:///", "s3://bucket", "gs://bucket/in"]))
def test_a_key_survives_its_uri_whatever_its_bytes(key: str, root: str) -> None:
    uri = join_uri(root, key)
    assert uri.isascii()
    assert " " not in uri
    assert key_below(root, uri) == key


@pytest.mark.parametrize("uri", ["file:///database/a", "file:///data", "file:///data/", "s3://data/a"])
def test_a_foreign_uri_has_no_key(uri: str) -> None:
    with pytest.raises(SourceError, match="not below"):
        key_below("file:///data", uri)


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/..", "./a", "a\0b"])
def test_what_could_leave_the_root_is_no_key(key: str) -> None:
    with pytest.raises(SourceError, match="cannot be a key"):
        check_key(key)
