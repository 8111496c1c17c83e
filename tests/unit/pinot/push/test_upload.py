from __future__ import annotations

import gzip
import io
import tarfile

import pyarrow as pa
import pytest

from pinot_assets.core.untrusted import ENTRY_BYTES
from pinot_assets.pinot.push.upload import Announced, batch_tar
from pinot_assets.segment import SegmentSpec, build_segment, metadata_tar

SCHEMA = {"schemaName": "t", "dimensionFieldSpecs": [{"name": "v", "dataType": "STRING"}]}


def announced(name: str) -> tuple[Announced, dict[str, bytes]]:
    spec = SegmentSpec.from_pinot(SCHEMA, {"tableName": "t"}, write_for="0.11")
    segment = build_segment(
        pa.table({"v": ["a"]}), spec, name=name, table_name="t", creation_time_ms=1, now_ms=1, custom={}
    )
    return Announced(name, metadata_tar(segment), f"s3://b/{name}.tar.gz"), dict(segment.files)


def unpacked(tar: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(tar), mode="r:gz") as opened:
        files = {}
        for entry in opened:
            content = opened.extractfile(entry)
            assert content is not None
            files[entry.name] = content.read()
        return files


def test_everything_pinot_looks_for() -> None:
    (one, ours), (two, theirs) = announced("one"), announced("zwei_ü")
    assert unpacked(batch_tar([one, two])) == {
        "one.creation.meta": ours["creation.meta"],
        "one.metadata.properties": ours["metadata.properties"],
        "zwei_ü.creation.meta": theirs["creation.meta"],
        "zwei_ü.metadata.properties": theirs["metadata.properties"],
        "all_segments_metadata": "one\ns3://b/one.tar.gz\nzwei_ü\ns3://b/zwei_ü.tar.gz\n".encode(),
    }


def test_the_same_batch_is_the_same_bytes() -> None:
    one, _ = announced("one")
    assert batch_tar([one]) == batch_tar([one])


def test_torn_metadata_names_its_segment() -> None:
    good, _ = announced("good")
    for torn in (b"", b"no tar", good.metadata_tar[:-30], good.metadata_tar[:40]):
        with pytest.raises(ValueError, match="bad: its metadata tar"):
            batch_tar([good, Announced("bad", torn, "s3://b/bad")])


def test_a_tar_without_what_pinot_needs_is_torn() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("bad/creation.meta"))
    with pytest.raises(ValueError, match=r"lacks 'metadata\.properties'"):
        batch_tar([Announced("bad", out.getvalue(), "s3://b/bad")])


@pytest.mark.parametrize("name", ["bad/creation.meta", "bad/other"])
def test_an_entry_of_a_metadata_tar_is_no_larger_than_one_is_read(name: str) -> None:
    """Whoever may write to the staging area makes one of a few kilobytes unpack to any size."""
    size = ENTRY_BYTES + 1
    entry = tarfile.TarInfo(name)
    entry.size = size
    bomb = gzip.compress(entry.tobuf() + bytes(1 << 20), 1)
    with pytest.raises(ValueError, match="an entry is larger than 128 MiB"):
        batch_tar([Announced("bad", bomb, "s3://b/bad")])


def test_a_metadata_tar_of_many_entries_is_not_read_to_its_end() -> None:
    one = tarfile.TarInfo("bad/creation.meta").tobuf()
    with pytest.raises(ValueError, match="more than 16 entries"):
        batch_tar([Announced("bad", gzip.compress(one * 1000, 1), "s3://b/bad")])


def test_a_long_header_of_a_metadata_tar_is_not_read() -> None:
    header = tarfile.TarInfo("bad")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    with pytest.raises(ValueError, match="a header of 1073741824 bytes"):
        batch_tar([Announced("bad", gzip.compress(header.tobuf() + bytes(1 << 20), 1), "s3://b/bad")])


@pytest.mark.parametrize(("name", "uri"), [("a\nb", "u"), ("a", "u\nv"), ("a", "u\rv")])
def test_a_line_break_would_shift_the_list(name: str, uri: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        batch_tar([Announced(name, b"", uri)])
