from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.snapshot.receipt import ColumnFacts, Fingerprint, Output, Receipt, SegmentFacts

TEXTS = st.text(max_size=20)
COUNTS = st.integers(0, 2**62)
RECEIPTS = st.builds(
    Receipt,
    uri=TEXTS,
    ordinal=COUNTS,
    attempt=COUNTS,
    read=st.builds(Fingerprint, size=COUNTS, mtime_us=COUNTS, etag=st.none() | TEXTS),
    sha256=TEXTS,
    rows=COUNTS,
    bad_rows=COUNTS,
    outputs=st.lists(
        st.builds(
            Output,
            segment=TEXTS,
            crc=COUNTS,
            rows=COUNTS,
            tar_uri=TEXTS,
            tar_bytes=COUNTS,
            tar_sha256=TEXTS,
            metadata_uri=TEXTS,
            start_ms=st.none() | COUNTS,
            end_ms=st.none() | COUNTS,
        ),
        max_size=2,
    ).map(tuple),
    seconds=st.floats(0, 1e6),
    worker=TEXTS,
    tars=st.lists(TEXTS, max_size=2).map(tuple),
    rows_read=st.none() | COUNTS,
    rows_filtered=COUNTS,
    facts=st.lists(
        st.builds(
            SegmentFacts,
            rows=COUNTS,
            columns=st.lists(
                st.builds(
                    ColumnFacts, name=TEXTS, data_type=TEXTS, low=st.none() | TEXTS, high=st.none() | TEXTS
                ),
                max_size=2,
            ).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)


@settings(deadline=None)
@given(RECEIPTS)
def test_a_receipt_survives_json(receipt: Receipt) -> None:
    assert Receipt.from_bytes(receipt.to_bytes()) == receipt


def test_a_receipt_of_a_writer_that_told_no_unpacked_size_is_read() -> None:
    output = Output("s", 1, 2, "u", 30, "h", "m", unpacked_bytes=99)
    receipt = Receipt("f", 0, 0, Fingerprint(1, 1), "", 2, 0, (output,), 0.0, "w")
    new = receipt.to_bytes()
    (known,) = Receipt.from_bytes(new).outputs
    assert (known.unpacked_bytes, known.loaded_bytes) == (99, 99)
    old = json.loads(new)
    del old["outputs"][0]["unpacked_bytes"]
    (unknown,) = Receipt.from_bytes(json.dumps(old).encode()).outputs
    assert (unknown.unpacked_bytes, unknown.loaded_bytes) == (0, 30)
    assert unknown == known  # it is the same segment: what an older writer wrote first is obeyed


def test_a_receipt_of_a_writer_that_told_no_counts_is_read() -> None:
    receipt = Receipt("f", 0, 0, Fingerprint(1, 1), "", 2, 0, (), 0.0, "w", rows_read=2)
    old = json.loads(receipt.to_bytes())
    for key in ("rows_read", "rows_filtered", "facts"):
        del old[key]
    read = Receipt.from_bytes(json.dumps(old).encode())
    assert (read.rows_read, read.rows_filtered, read.facts) == (None, 0, ())


@settings(deadline=None)
@given(RECEIPTS, st.data())
def test_a_torn_receipt_is_never_taken_for_a_whole_one(receipt: Receipt, data: st.DataObject) -> None:
    whole = receipt.to_bytes()
    torn = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(ValueError, match=r".*"):
        Receipt.from_bytes(torn)
