"""A kept part of a listing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pinot_assets.source.file_table import page_of
from pinot_assets.source.listing import ListingPart, part_from_arrow, part_to_arrow


def test_places_of_texts_that_point_outside_are_noticed() -> None:
    """Whoever may write to the staging area may write any bytes, and a checksum is theirs to make."""
    columns = page_of([]).schema
    texts = [pa.array(["s3://in/a"] if field.type == pa.string() else [1], field.type) for field in columns]
    data = bytearray(part_to_arrow(ListingPart(pa.table(texts, columns)), {}))
    assert part_from_arrow(bytes(data))[0].columns.num_rows == 1
    end = (9).to_bytes(4, "little")
    place = data.rindex(b"\0" * 4 + end, 0, data.index(b"s3://in/a")) + 4  # where the first text ends
    data[place : place + 4] = (2**31 - 1).to_bytes(4, "little")
    with pytest.raises(pa.ArrowInvalid):
        part_from_arrow(bytes(data))
