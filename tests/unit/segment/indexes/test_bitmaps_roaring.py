from __future__ import annotations

import struct

import numpy as np
import pytest

from pinot_assets.segment.indexes.bitmaps import roaring


def decode(data: bytes) -> list[int]:
    """A plain reader of the portable format."""
    (cookie,) = struct.unpack_from("<I", data)
    count = (cookie >> 16) + 1 if cookie & 0xFFFF == 12347 else struct.unpack_from("<I", data, 4)[0]
    at, flags = (8, bytes(count)) if cookie == 12346 else (4 + (count + 7) // 8, data[4:])
    heads = [struct.unpack_from("<HH", data, at + 4 * i) for i in range(count)]
    at += 4 * count
    if cookie == 12346 or count >= 4:
        at += 4 * count
    rows: list[int] = []
    for i, (key, size) in enumerate(heads):
        if cookie != 12346 and flags[i // 8] >> i % 8 & 1:
            (runs,) = struct.unpack_from("<H", data, at)
            for start, more in struct.iter_unpack("<HH", data[at + 2 : at + 2 + 4 * runs]):
                rows += [(key << 16) + low for low in range(start, start + more + 1)]
            at += 2 + 4 * runs
        elif size + 1 > 4096:
            bits = np.unpackbits(np.frombuffer(data[at : at + 8192], np.uint8), bitorder="little")
            rows += ((key << 16) + np.flatnonzero(bits)).tolist()
            at += 8192
        else:
            rows += [(key << 16) + low for (low,) in struct.iter_unpack("<H", data[at : at + 2 * (size + 1)])]
            at += 2 * (size + 1)
    assert at == len(data)
    return rows


RNG = np.random.default_rng(8)


@pytest.mark.parametrize(
    "rows",
    [
        np.array([0]),
        np.array([65_535, 65_536]),
        np.arange(300_000),
        np.flatnonzero(RNG.random(300_000) < 0.01),
        np.flatnonzero(RNG.random(300_000) < 0.5),
        np.flatnonzero(np.repeat(RNG.random(700) < 0.5, 500)),
        np.arange(0, 8192, 2),
        np.arange(0, 8194, 2),
        np.concatenate((np.arange(70_000), np.arange(131_072, 400_000, 3))),
    ],
    ids=["one", "border", "all", "sparse", "dense", "runs", "4096", "4097", "mixed"],
)
def test_every_row_is_read_back(rows: np.ndarray) -> None:
    assert decode(roaring(rows.astype(np.uint32))) == rows.tolist()


def test_containers_take_the_smallest_form() -> None:
    assert len(roaring(np.arange(60_000, dtype=np.uint32))) == 4 + 1 + 4 + 2 + 4
    assert len(roaring(np.arange(0, 8192, 2, dtype=np.uint32))) == 8 + 4 + 4 + 8192
    assert len(roaring(np.arange(0, 60_000, 2, dtype=np.uint32))) == 8 + 4 + 4 + 8192


def test_a_run_must_be_strictly_smaller() -> None:
    assert struct.unpack_from("<I", roaring(np.arange(3, dtype=np.uint32))) == (12346,)
    assert struct.unpack_from("<I", roaring(np.arange(4, dtype=np.uint32))) == (12347,)
