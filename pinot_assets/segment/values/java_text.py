"""Stored values as the texts that Java makes of them, for what Pinot hashes: partitions and bloom filters.

Texts are Arrow large_binary arrays of UTF-8. Half a surrogate pair stands in them as its own three bytes (see
`clean`), because Java's `String` keeps it; `as_utf8` makes the `?` of it that Java's encoder writes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.segment.column.decimals import Decimals
from pinot_assets.segment.column.text import java_double, java_float
from pinot_assets.segment.column.types import DataType

Numbers: TypeAlias = npt.NDArray[np.generic]
Values: TypeAlias = Numbers | Decimals | pa.LargeBinaryArray


def binary_buffers(texts: pa.LargeBinaryArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets (one more than texts) and bytes."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return ends, np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)


def has_halves(texts: pa.LargeBinaryArray) -> bool:
    """Whether a surrogate stands alone in some text (ED A0 to ED BF, impossible in true UTF-8)."""
    _, data = binary_buffers(texts)
    lead = np.flatnonzero(data[:-1] == 0xED)
    return bool((data[lead + 1] >= 0xA0).any())


def as_utf8(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The bytes that `String.getBytes(UTF_8)` gives: a lone surrogate becomes `?`."""
    if not has_halves(texts):
        return texts
    encoded = [data.decode("utf-8", "surrogatepass").encode("utf-8", "replace") for data in texts.to_pylist()]
    return pa.array(encoded, pa.large_binary())


def number_texts(numbers: Numbers) -> pa.LargeBinaryArray:
    """`Integer.toString`, `Long.toString`, `Float.toString` or `Double.toString` (JDK 19 and later).

    :param numbers: in their stored width, without NaN and -0.0.
    """
    texts = pa.array(numbers).cast(pa.large_string())
    if numbers.dtype.kind == "f":
        # Arrow finds the same shortest digits as Java, and lays them out alike between 1e-3 and 1e7 but for
        # the `.0` of whole numbers.
        whole = pc.invert(pc.match_substring(texts, "."))
        # Made here: Arrow's first scalar imports pandas, which the start of most commands can do without.
        point_zero = (pa.scalar(".0", pa.large_string()), pa.scalar("", pa.large_string()))
        texts = pc.if_else(whole, pc.binary_join_element_wise(texts, *point_zero), texts)
        size = np.abs(numbers)
        other = pa.array((size != 0) & ~((size >= 1e-3) & (size < 1e7)))
        java = java_float if numbers.dtype.itemsize == 4 else java_double
        others = [java(number) for number in pa.array(numbers).filter(other).to_pylist()]
        texts = pc.replace_with_mask(texts, other, pa.array(others, pa.large_string()))
    return texts.cast(pa.large_binary())


_HEX = np.frombuffer(b"".join(f"{byte:02x}".encode() for byte in range(256)), dtype=np.uint8).reshape(256, 2)


def hex_texts(values: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """Bytes as lower-case hex (`BytesUtils.toHexString`)."""
    ends, data = binary_buffers(values)
    digits = _HEX[data[ends[0] : ends[-1]]].tobytes()
    offsets = pa.py_buffer(((ends - ends[0]) * 2).tobytes())
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(values), [None, offsets, pa.py_buffer(digits)]
    )


def java_texts(data_type: DataType, values: Values) -> pa.LargeBinaryArray:
    """`toString` of a column's stored values (BOOLEAN as 0 and 1, TIMESTAMP in milliseconds)."""
    if isinstance(values, Decimals):
        # `str` of a Decimal follows the same standard as Java's BigDecimal.
        return pa.array([str(value).encode() for value in values.tolist()], pa.large_binary())
    if not isinstance(values, np.ndarray):
        return hex_texts(values) if data_type is DataType.BYTES else values
    return number_texts(values)


def plain_texts(data_type: DataType, values: Values) -> pa.LargeBinaryArray:
    """As `java_texts`, with BIG_DECIMAL as `toPlainString` gives it, without an exponent."""
    if isinstance(values, Decimals):
        return pa.array([f"{value:f}".encode() for value in values.tolist()], pa.large_binary())
    return java_texts(data_type, values)
