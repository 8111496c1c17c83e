from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pinot_assets.segment.values.hashing import (
    byte_array_hash,
    murmur2,
    murmur3_x64_32,
    murmur3_x64_128,
    murmur3_x86_32,
    string_hash,
)

TEXTS = [
    "", "a", "ab", "abc", "abcd", "abcdefg", "0123456789abcdef", "0123456789abcdefg", "äöü",
    "日本語のテキスト", "\U0001f600 and more than sixteen bytes", "ÿÿÿÿÿÿÿÿÿÿÿÿ",
]  # fmt: skip
# Recorded from Pinot 1.5.1's partition functions with 2^31 - 1 partitions, which keeps 31 bits of the hash.
PARTITIONS: list[tuple[str, Callable[[Any], Any], list[int]]] = [
    ("Murmur", murmur2,
     [275646681, 584102524, 316155434, 479470107, 823834100, 1801016473, 1438427052, 1165202807, 76569092,
      944925397, 321148605, 1808706011]),
    ("Murmur3", lambda texts: murmur3_x86_32(texts, 0),
     [0, 1009084850, 465557343, 870159354, 1139631978, 138189574, 919068895, 1655531113, 769542228,
      1345595378, 1600929734, 1231459136]),
    ("Murmur3, seed -7", lambda texts: murmur3_x86_32(texts, -7),
     [214441827, 1375118921, 570772097, 1737452744, 1563820874, 325761288, 26723744, 1348659071, 516213060,
      1052537860, 572351782, 142077383]),
    ("trap23 Murmur3 x64_32", lambda texts: murmur3_x64_32(texts, 0),
     [335748609, 1019845329, 958425624, 531560167, 1819097499, 1690601773, 750153368, 1711767115, 791482574,
      1876565514, 1899218881, 1749878583]),
    ("trap23 Murmur3 x64_32, seed -7", lambda texts: murmur3_x64_32(texts, -7),
     [409584088, 324688295, 494647476, 305992885, 1208566799, 801408258, 170365637, 485158593, 1882688552,
      1211386056, 579673961, 669171312]),
]  # fmt: skip
JAVA = [
    ("HashCode", string_hash,
     [0, 97, 3105, 96354, 2987074, 1206291356, 285443752, 258821823, 226986, 934492083,
      464172051, 346441920]),
    ("ByteArray", byte_array_hash,
     [1, 128, 4066, 126145, 3910595, 536518979, 1638753449, 738250530, 945728786, 1568844947, 490584734,
      1710365871]),
]  # fmt: skip
BLOOM = [
    (0, 0), (-8839064797231613815, -1822486391929534118), (-7815133031266706642, -1846855171832621907),
    (-5434086359492102041, 4297124817637354834), (-5153323217664422577, -1008737561076307851),
    (-6427428730009885543, 2034116554678188982), (5467490433528156583, -8663980805763692326),
    (-8200385122730116642, 576729866477728494), (5570846137179367207, -1164919838728355358),
    (-1669801486322365270, -6573876387757181794), (-1176467003525201135, 8276184172707850613),
    (-1780711166200255608, -8141375267188010501),
]  # fmt: skip


def binary(texts: list[str]) -> pa.LargeBinaryArray:
    return pa.array([text.encode("utf-8", "surrogatepass") for text in texts], pa.large_binary())


@pytest.mark.parametrize(("name", "function", "recorded"), PARTITIONS, ids=[name for name, *_ in PARTITIONS])
def test_trap23_murmur_is_pinots(name: str, function: Any, recorded: list[int]) -> None:
    assert ((function(binary(TEXTS)) & 0x7FFFFFFF) % (2**31 - 1)).tolist() == recorded


@pytest.mark.parametrize(("name", "function", "recorded"), JAVA, ids=[name for name, *_ in JAVA])
def test_hash_codes_are_javas(name: str, function: Any, recorded: list[int]) -> None:
    assert np.abs(function(binary(TEXTS)).view(np.int32)).tolist() == recorded


def test_the_hash_of_bloom_filters_is_guavas() -> None:
    high, low = murmur3_x64_128(binary(TEXTS))
    assert list(zip(high.view(np.int64).tolist(), low.view(np.int64).tolist(), strict=True)) == BLOOM


ALL = [function for _, function, _ in PARTITIONS + JAVA] + [lambda texts: murmur3_x64_128(texts)[0]]


@pytest.mark.parametrize("function", ALL)
def test_neither_company_nor_place_in_an_array_matters(function: Any) -> None:
    rng = np.random.default_rng(3)
    texts = ["é" * n if n % 3 else "x" * n for n in rng.integers(0, 40, 70_000)]
    together = function(binary(["before", *texts, "after"])[1:-1])
    shapes = sorted({*texts})
    alone = dict(zip(shapes, (function(binary([text]))[0] for text in shapes), strict=True))
    assert together.tolist() == [alone[text] for text in texts]


@pytest.mark.parametrize("function", ALL)
def test_no_text_has_no_hash(function: Any) -> None:
    assert len(function(binary([]))) == 0


@pytest.mark.parametrize("function", [function for function in ALL if function is not string_hash])
def test_any_bytes_are_hashed(function: Any) -> None:
    assert len(set(function(pa.array([b"\xed\xa0", b"\x80", b"\xff" * 17], pa.large_binary())).tolist())) == 3


def test_half_a_pair_is_a_unit_of_javas_hash_code() -> None:
    assert string_hash(binary(["ab\ud83d"])).tolist() == [(97 * 31 * 31 + 98 * 31 + 0xD83D) % 2**32]
