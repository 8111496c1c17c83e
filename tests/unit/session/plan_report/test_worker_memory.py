from __future__ import annotations

from pinot_assets.session.plan_report.worker_memory import MOST_BYTES, BuildEstimate, estimate_build
from pinot_assets.table_spec.blocks.ingestion import DEFAULT_SEGMENT_BYTES, FileIngestion

MB = 1 << 20


def ingestion(**keys: object) -> FileIngestion:
    block = {"inputDirURI": "/in", "inputFormat": "csv", "output.segment.dir.uri": "/out", **keys}
    return FileIngestion.model_validate(block)


def estimate(files: list[tuple[str, int]], **keys: object) -> BuildEstimate:
    found = estimate_build(ingestion(**keys), files)
    assert found is not None
    return found


def test_by_default_files_of_any_size_keep_a_worker_below_a_gigabyte() -> None:
    found = estimate([("a.csv", 50_000 * MB), ("b.csv", 1), ("empty.csv", 0)])
    assert found.files == 2
    assert found.segments == 50_000 * MB // DEFAULT_SEGMENT_BYTES + 1 + (
        50_000 * MB % DEFAULT_SEGMENT_BYTES > 0
    )
    assert found.worker_bytes < MOST_BYTES
    assert not found.is_large
    assert "estimated" in found.text
    assert "2 files as about" in found.text


def test_a_larger_size_of_the_users_is_what_a_worker_needs() -> None:
    found = estimate([("a.csv", 4000 * MB)], desiredSegmentSize="1g")
    assert found.segments == 4
    assert found.is_large
    assert found.worker_bytes > 2 * 1024 * MB
    assert estimate([("a.csv", 4 * MB)], desiredSegmentSize="1g").is_large is False, "the file is small"


def test_rows_alone_do_not_say_how_many_segments_and_the_largest_file_says_the_most() -> None:
    found = estimate([("a.csv", 500 * MB), ("b.csv", 5 * MB)], maxNumRecordsPerSegment="1000000")
    assert found.segments is None
    assert found.is_large
    assert "up to" in found.text
    assert "estimated" in found.text


def test_packed_files_have_more_rows_than_bytes() -> None:
    plain, packed = estimate([("a.csv", 512 * MB)]), estimate([("a.csv.GZ", 512 * MB)])
    assert plain.segments is not None
    assert packed.segments == 4 * plain.segments
    assert estimate([("a.parquet", 512 * MB)], inputFormat="parquet") == packed


def test_nothing_is_expected_of_no_rows() -> None:
    assert estimate_build(ingestion(), [("empty.csv", 0)]) is None
