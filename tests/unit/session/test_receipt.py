from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.session.receipt import Output, Receipt
from pinot_assets.source.fingerprint import Fingerprint

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
)


@settings(deadline=None)
@given(RECEIPTS)
def test_a_receipt_survives_json(receipt: Receipt) -> None:
    assert Receipt.from_bytes(receipt.to_bytes()) == receipt


@settings(deadline=None)
@given(RECEIPTS, st.data())
def test_a_torn_receipt_is_never_taken_for_a_whole_one(receipt: Receipt, data: st.DataObject) -> None:
    whole = receipt.to_bytes()
    torn = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(ValueError, match=r".*"):
        Receipt.from_bytes(torn)
