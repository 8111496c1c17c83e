"""Names of segments that come from a stream."""

from __future__ import annotations

import pytest

from pinot_assets.realtime.model.state import SegmentName, files_named, parse_name, upload_of


def test_a_name_tells_partition_sequence_and_minute() -> None:
    assert parse_name("clicks__3__14__20260202T0240Z") == SegmentName("clicks", 3, 14, 1_770_000_000_000)


@pytest.mark.parametrize("name", ["clicks_2026-01-01_0", "clicks__0__0__x", "clicks__0__20260202T0240Z", ""])
def test_other_names(name: str) -> None:
    assert parse_name(name) is None
    assert parse_name("clicks__0__0__20261302T0240Z") is None


@pytest.mark.parametrize(
    ("file", "segment"),
    [
        ("t__0__1__20260202T0240Z.tmp.b9f485c9-eb33", "t__0__1__20260202T0240Z"),
        ("t__0__1__20260202T0240Zb9f485c9-eb33-4259-9670-52232d4df2b3", "t__0__1__20260202T0240Z"),
        ("t__0__1__20260202T0240Z", None),
        ("t_2026.tmp.gz", None),
    ],
)
def test_files_that_are_uploads(file: str, segment: str | None) -> None:
    assert upload_of(file) == segment


def test_files_that_urls_name_as_a_store_lists_them() -> None:
    urls = ["s3://d/caf%C3%A9/caf%C3%A9__0.tmp.1", None, "", "http://c/segments/t/t__0"]
    assert files_named(urls) >= {"café__0.tmp.1", "t__0"}
