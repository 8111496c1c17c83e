from __future__ import annotations

import io
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.snapshot.manifest import (
    MODES,
    Snapshot,
    SnapshotRef,
    header_from_bytes,
    header_to_bytes,
    snapshot_from,
)
from pinot_assets.snapshot.published_files import PublishedFile, PublishedFiles, files_to_parquet, versions_of
from pinot_assets.snapshot.receipt import Fingerprint, Output

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LONGS = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 2**62)
OUTPUTS = st.builds(
    Output,
    segment=TEXTS,
    crc=COUNTS,
    rows=COUNTS,
    tar_uri=TEXTS,
    tar_bytes=COUNTS,
    tar_sha256=TEXTS,
    metadata_uri=TEXTS,
    start_ms=st.none() | LONGS,
    end_ms=st.none() | LONGS,
)
FILES = st.builds(
    PublishedFile,
    uri=TEXTS,
    fingerprint=st.builds(
        Fingerprint, size=COUNTS, mtime_us=LONGS, etag=st.none() | TEXTS, version_id=st.none() | TEXTS
    ),
    sha256=TEXTS,
    rows=COUNTS,
    bad_rows=COUNTS,
    session=TEXTS,
    outputs=st.lists(OUTPUTS, max_size=3).map(tuple),
    version=st.text("0123456789abcdef", min_size=12, max_size=12),
    seconds=st.floats(0, 1e6),
)


@settings(deadline=None)
@given(st.lists(FILES, max_size=4).map(tuple))
def test_rows_survive_parquet(files: tuple[PublishedFile, ...]) -> None:
    data = files_to_parquet(files)
    read = PublishedFiles(data)
    assert len(read) == len(files)
    assert versions_of(read).equals(versions_of(files))
    assert read == files
    assert files_to_parquet(files) == data  # the hash in its name needs that


@settings(deadline=None)
@given(
    st.builds(
        Snapshot,
        seq=COUNTS,
        table=TEXTS,
        session=TEXTS,
        mode=st.sampled_from(sorted(MODES)),
        lineage_entry_id=TEXTS,
        parent=st.none() | st.builds(SnapshotRef, key=TEXTS, sha256=TEXTS),
        listing_digest=TEXTS,
        config_fingerprint=TEXTS,
        published_ms=COUNTS,
        files=st.just(()),
        audit=st.dictionaries(TEXTS, TEXTS | st.booleans() | COUNTS, max_size=3),
    )
)
def test_a_header_survives_json(snapshot: Snapshot) -> None:
    rows = SnapshotRef("snapshots/1.parquet", "ab")
    header = header_from_bytes(header_to_bytes(snapshot, rows))
    assert snapshot_from(header, snapshot.files) == snapshot
    assert header["files"] == {"key": rows.key, "sha256": rows.sha256}


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff"])
def test_other_bytes_are_no_header(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        header_from_bytes(data)


def test_the_ledger_is_the_newest_version_and_segments_are_all() -> None:
    def file(uri: str, n: int, *names: str) -> PublishedFile:
        outputs = tuple(Output(s, 1, 2, "", 1, "", "") for s in names)
        return PublishedFile(uri, Fingerprint(n, n), "", 2 * len(names), 0, "cp1-0", outputs)

    files = (file("a", 1, "a1"), file("b", 1), file("a", 2, "a2x", "a2y"))
    snapshot = Snapshot(1, "t", "cp1-0", "APPEND", "", None, "", "", 0, files)
    assert snapshot.ledger == {"a": files[2], "b": files[1]}
    assert list(snapshot.segments) == ["a1", "a2x", "a2y"]
    assert snapshot.rows == 6


def test_a_ledger_of_the_first_release_is_read() -> None:
    """It knew no version beside the fingerprint, and no seconds."""
    version = Fingerprint(3, 4, "e", None)
    file = PublishedFile("u", version, "sha", 1, 0, "cp1-000000", ())
    old = pq.read_table(io.BytesIO(files_to_parquet([file]))).drop_columns(["version", "seconds"])
    sink = io.BytesIO()
    pq.write_table(old, sink)
    (read,) = PublishedFiles(sink.getvalue())
    assert (read.version, read.seconds) == (version.token, 0.0)


def test_outputs_without_an_unpacked_size_are_read() -> None:
    output = Output("s", 1, 2, "u", 30, "h", "m", unpacked_bytes=99)
    file = PublishedFile("u", Fingerprint(3, 4), "sha", 1, 0, "cp1-000000", (output,))
    (new,) = PublishedFiles(files_to_parquet([file]))
    assert new.outputs[0].unpacked_bytes == 99
    rows = pq.read_table(io.BytesIO(files_to_parquet([file]))).to_pylist()
    del rows[0]["outputs"][0]["unpacked_bytes"]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    (old,) = PublishedFiles(sink.getvalue())
    assert (old.outputs[0].unpacked_bytes, old.outputs[0].loaded_bytes) == (0, 30)


def test_a_snapshot_stores_at_most_250_bytes_a_file() -> None:
    """docs/scale.md says so. Hashes and entity tags do not compress: 144 bytes of a file are such."""
    digits = Random(7)

    def row(number: int) -> PublishedFile:
        name, sha, tar = (f"{digits.getrandbits(bits):0{bits // 4}x}" for bits in (128, 256, 256))
        uri = f"s3://lake/events/day=2026-{number % 12 + 1:02}-01/part-{number:05}-{name}.parquet"
        segment = f"events__{sha[:16]}-{tar[:12]}__0__cp17-61f10e"
        staged = f"s3://staging/events_OFFLINE/segments/{segment}"
        output = Output(
            segment,
            digits.getrandbits(32),
            250_000,
            f"{staged}.tar.gz",
            9_000_000 + number,
            tar,
            f"{staged}.metadata.tar.gz",
            1_700_000_000_000 + number,
            1_700_000_100_000 + number,
        )
        version = Fingerprint(8_000_000 + number, 1_700_000_000_000_000 + number, name)
        return PublishedFile(uri, version, sha, 250_000, 0, "cp17-61f10e", (output,), sha[:12], 3.25)

    stored = files_to_parquet(map(row, range(10_000)))
    assert 150 <= len(stored) / 10_000 <= 250
