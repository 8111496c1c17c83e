"""Exact decimals as Java's `BigDecimal` treats them (docs/design/segment-format.md#s5-2 and #s6-2).

Two arrays hold a column, so that the usual one, with digits that fit into 64 bits, needs no Python per value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_PLAIN = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)"
_DECIMAL = re.compile(_PLAIN + r"([eE][+-]?[0-9]{1,10})?")
_FAR = r"^\s*" + _PLAIN + r"[eE][+-]?0*[0-9]{5,}\s*$"
_JAVA_BLANKS = "".join(map(chr, range(0x21)))
_FITTING_DIGITS = 18
_FITTING_LENGTH = 38 - _FITTING_DIGITS  # longest text that a decimal128 can hold at any scale up to 18

MAX_SCALE = 32_767
"""Pinot stores the scale in 16 bits and silently loses higher bits."""
MAX_DIGITS = 10_000
"""Work on a number grows with the square of its digits: a million digits take minutes."""


@dataclass(frozen=True, slots=True)
class Decimals:
    """Decimals: each is its unscaled value divided by ten to the power of its scale.

    :ivar unscaled: 64-bit integers, or Python's (dtype object) where one does not fit.
    """

    unscaled: npt.NDArray[np.int64] | npt.NDArray[np.object_]
    scales: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scales)

    def __getitem__(self, place: int) -> Decimal:
        return Decimal(int(self.unscaled[place])).scaleb(-int(self.scales[place]), _EXACT)

    def tolist(self) -> list[Decimal]:
        """Return all values as Python decimals."""
        pairs = zip(self.unscaled.tolist(), self.scales.tolist(), strict=True)
        return [Decimal(unscaled).scaleb(-scale, _EXACT) for unscaled, scale in pairs]

    def with_last(self, value: Decimal) -> Decimals:
        """Return these decimals with one more at the end, which keeps its trailing zeros."""
        unscaled, scale = _parts(value)
        fits = -(2**63) <= unscaled < 2**63
        return Decimals(
            np.append(self.unscaled, np.array([unscaled], dtype=None if fits else object)),
            np.append(self.scales, scale),
        )

    def take(self, places: npt.NDArray[np.intp]) -> Decimals:
        """Return the decimals at some indices."""
        return Decimals(self.unscaled[places], self.scales[places])

    def keys(self) -> npt.NDArray[np.int64] | npt.NDArray[np.object_]:
        """Return values that compare as the decimals do."""
        shift = int(self.scales.max()) - self.scales
        if self.unscaled.dtype != object and shift.max() <= _FITTING_DIGITS:
            factors = 10**shift
            if (np.abs(self.unscaled.astype(np.float64)) * factors).max() < 2.0**62:
                return self.unscaled * factors
        return _objects(self.tolist())

    def serialized(self) -> pa.LargeBinaryArray:
        """Return scale (two bytes), then unscaled value in the fewest bytes (`BigDecimalUtils.serialize`)."""
        if self.unscaled.dtype == object:
            pairs = zip(self.unscaled.tolist(), self.scales.tolist(), strict=True)
            return pa.array([_serialized(*pair) for pair in pairs], pa.large_binary())
        magnitude = self.unscaled ^ (self.unscaled >> 63)
        limits = np.array([1 << bits for bits in range(7, 63, 8)])
        lengths = 1 + np.searchsorted(limits, magnitude, "right")
        cells = np.empty((len(self), 10), dtype=np.uint8)
        cells[:, :2] = self.scales.astype(">i2").view(np.uint8).reshape(-1, 2)
        cells[:, 2:] = self.unscaled.astype(">i8").view(np.uint8).reshape(-1, 8)
        kept = np.arange(10) >= 10 - lengths[:, np.newaxis]
        kept[:, :2] = True
        ends = np.concatenate(([0], np.cumsum(lengths + 2)))
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(cells[kept])]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self), buffers)


Numbers: TypeAlias = npt.NDArray[np.generic]
Values: TypeAlias = Numbers | Decimals | pa.LargeBinaryArray
"""The array types that hold a column's values."""


def parse_decimal(text: str) -> Decimal:
    """Return `new BigDecimal(text)`, with its trailing zeros.

    :raises ValueError: not a decimal number, one of too many digits, or a scale that Pinot cannot store.
    """
    if len(text) > MAX_DIGITS:
        mantissa = re.split("[eE]", text, maxsplit=1)[0]
        if sum(map(str.isdigit, mantissa)) > MAX_DIGITS:
            raise ValueError(f"a decimal number has more than {MAX_DIGITS:,} digits")
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f"{text[:50]!r} is not a decimal number")
    value = Decimal(text)
    _check_scale(np.array([_parts(value)[1]]))
    return value if value else value.copy_abs()  # Java has no negative zero


def is_storable(text: str) -> bool:
    """Whether a text is a decimal number that Pinot can store."""
    try:
        _check_scale(np.array([_parts(_stripped(text))[1]]))
    except ValueError:
        return False
    return True


def unstorable(texts: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the decimal numbers with more digits, or another scale, than can be stored.

    :param texts: may include texts that are no numbers; whether those are in the mask is undefined.
    """
    mask = np.zeros(len(texts), dtype=bool)
    if (pc.max(pc.binary_length(texts)).as_py() or 0) > MAX_DIGITS:
        digits = pc.replace_substring_regex(texts, r"[eE].*|[^0-9eE]", "")
        mask |= pc.fill_null(pc.greater(pc.binary_length(digits), MAX_DIGITS), False).to_numpy()
    # With so few digits, only an exponent of five digits or more makes the scale exceed its range.
    far = pc.fill_null(pc.match_substring_regex(texts, _FAR), False).to_numpy().astype(bool) & ~mask
    places = np.flatnonzero(far)
    if len(places):
        values = texts.take(pa.array(places)).to_pylist()
        mask[places[[not is_storable(value.strip()) for value in values]]] = True
    return mask


def stored_decimals(values: pa.Array) -> Decimals:
    """Return decimals as Pinot stores them: trailing zeros stripped, zero with scale 0.

    :param values: integers, decimals or texts, none of them null.
    :raises ValueError: a text is no decimal number, has too many digits or a scale that Pinot cannot store.
    """
    if (decimals := _fitting(values)) is None:
        parts = [_parts(_stripped(value)) for value in values.to_pylist()]
        decimals = Decimals(
            _objects([unscaled for unscaled, _ in parts]), np.array([s for _, s in parts], dtype=np.int64)
        )
    else:
        decimals = _without_zeros(decimals)
    _check_scale(decimals.scales)
    return decimals


def _fitting(values: pa.Array) -> Decimals | None:
    """Return the values in 64 bits, with trailing zeros; None if one is too large or written oddly."""
    if len(values) == 0:
        return Decimals(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    if pt.is_integer(values.type):
        values = values.cast(pa.decimal128(20, 0))
    elif not pt.is_decimal(values.type):
        if not pc.all(pc.match_substring_regex(values, f"^{_PLAIN}$")).as_py():
            return None
        point = pc.find_substring(values, ".")
        digits = pc.subtract(pc.subtract(pc.binary_length(values), point), 1)
        scale = pc.max(pc.if_else(pc.less(point, 0), 0, digits)).as_py()
        if scale > _FITTING_DIGITS or pc.max(pc.binary_length(values)).as_py() > _FITTING_LENGTH:
            return None
        values = values.cast(pa.decimal128(38, scale))
    if values.type.bit_width > 128:
        return None
    values = values.cast(pa.decimal128(38, values.type.scale))
    words = np.frombuffer(values.buffers()[1], dtype="<i8").reshape(-1, 2)
    low, high = words[values.offset : values.offset + len(values)].T
    if (high != low >> 63).any():
        return None
    return Decimals(low.astype(np.int64), np.full(len(values), values.type.scale, dtype=np.int64))


def _without_zeros(decimals: Decimals) -> Decimals:
    unscaled, scales = decimals.unscaled.copy(), np.where(decimals.unscaled == 0, 0, decimals.scales)
    places = np.flatnonzero(unscaled)
    while len(places := places[unscaled[places] % 10 == 0]):
        unscaled[places] //= 10
        scales[places] -= 1
    return Decimals(unscaled, scales)


def _stripped(value: Decimal | int | str) -> Decimal:
    number = parse_decimal(value.strip(_JAVA_BLANKS)) if isinstance(value, str) else Decimal(value)
    return number.normalize(_EXACT) if number else Decimal(0)


def _parts(value: Decimal) -> tuple[int, int]:
    """Return unscaled value and scale."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)  # neither infinite nor NaN
    return int(value.scaleb(-exponent, _EXACT)), -exponent


def _serialized(unscaled: int, scale: int) -> bytes:
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    return scale.to_bytes(2, "big", signed=True) + unscaled.to_bytes(length, "big", signed=True)


def _check_scale(scales: npt.NDArray[np.int64]) -> None:
    if (np.abs(scales) > MAX_SCALE).any():
        raise ValueError(f"a scale beyond {MAX_SCALE} cannot be stored")


def _objects(values: list[int] | list[Decimal]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
