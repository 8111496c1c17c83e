"""Answers of servers. Real ones, and those that Pinot itself writes: contract and oracle tests."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.data_table import read_data_table


def text(value: str) -> bytes:
    return struct.pack(">i", len(value.encode())) + value.encode()


def payload(
    version: int,
    columns: list[tuple[str, str]],
    rows: list[bytes],
    dictionary: bytes = b"",
    metadata: bytes = b"",
) -> bytes:
    schema = struct.pack(">i", len(columns))
    schema += b"".join(text(name) for name, _ in columns) + b"".join(text(kind) for _, kind in columns)
    sections = [struct.pack(">i", 0), dictionary, schema, b"".join(rows), b""]
    header, at = struct.pack(">3i", version, len(rows), len(columns)), 13 * 4
    for section in sections:
        header += struct.pack(">2i", at, len(section))
        at += len(section)
    return header + b"".join(sections) + struct.pack(">i", len(metadata)) + metadata


def test_version_3_has_texts_by_column_and_wide_floats() -> None:
    texts = struct.pack(">i", 1) + text("carrier") + struct.pack(">2i", 1, 7) + text("UA")
    row = struct.pack(">if4xq", 7, 0.5, -1)
    found = read_data_table(payload(3, [("carrier", "STRING"), ("f", "FLOAT"), ("n", "LONG")], [row], texts))
    assert found.rows == (("UA", 0.5, -1),)


def test_version_4_has_texts_of_all_columns_and_narrow_floats() -> None:
    texts = struct.pack(">i", 2) + text("AA") + text("UA")
    row = struct.pack(">iif", 1, 0, 0.5)
    found = read_data_table(payload(4, [("a", "STRING"), ("b", "STRING"), ("f", "FLOAT")], [row], texts))
    assert found.rows == (("UA", "AA", 0.5),)


def test_an_object_is_not_read() -> None:
    found = read_data_table(payload(4, [("avg", "OBJECT"), ("n", "INT")], [struct.pack(">8xi", 3)]))
    assert found.rows == ((None, 3),)


def test_metadata_of_a_later_release_hides_nothing_that_stands_before_it() -> None:
    told = struct.pack(">i", 3) + struct.pack(">2i", 5, 2) + struct.pack(">i", 999) + b"?" * 8
    found = read_data_table(payload(4, [("n", "INT")], [struct.pack(">i", 1)], metadata=told))
    assert found.segments_queried == 2
    assert found.total_docs is None
    assert found.groups_cut  # it may say so behind


def test_what_is_said_in_one_byte_hides_nothing_either() -> None:
    """`sorted`, from 1.4 on, is the one entry of that width."""
    told = struct.pack(">i", 2) + struct.pack(">ib", 38, 1) + struct.pack(">2i", 5, 2)
    found = read_data_table(payload(4, [("n", "INT")], [struct.pack(">i", 1)], metadata=told))
    assert (found.segments_queried, found.groups_cut) == (2, False)


def test_segments_without_a_column_of_the_query() -> None:
    told = struct.pack(">5i", 2, 5, 9, 21, 4)
    found = read_data_table(payload(4, [("n", "INT")], [struct.pack(">i", 1)], metadata=told))
    assert (found.segments_queried, found.segments_invalid) == (9, 4)


@pytest.mark.parametrize("version", [2, 5])
def test_a_version_that_is_not_known_is_named(version: int) -> None:
    with pytest.raises(PinotError, match=f"DataTable of version {version}"):
        read_data_table(payload(version, [], []))


WHOLE = payload(
    4,
    [("a", "STRING"), ("n", "LONG")],
    [struct.pack(">iq", 0, 5)],
    struct.pack(">i", 1) + text("é"),
    struct.pack(">3i", 1, 5, 1),
)


@given(st.integers(0, len(WHOLE) - 1))
def test_an_answer_that_was_cut_short_is_refused(length: int) -> None:
    with pytest.raises(PinotError):
        read_data_table(WHOLE[:length])


@given(st.binary(max_size=200) | st.binary(max_size=40).map(lambda end: struct.pack(">i", 4) + end))
def test_bytes_that_are_no_answer_are_refused_or_read(data: bytes) -> None:
    found: Any = None
    try:
        found = read_data_table(data)
    except PinotError:
        return
    assert len(found.rows) < 1000


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_a_damaged_byte_ends_in_nothing_but_an_error_of_ours(place: int, value: int) -> None:
    damaged = WHOLE[:place] + bytes([value]) + WHOLE[place + 1 :]
    with suppress(PinotError):
        read_data_table(damaged)
