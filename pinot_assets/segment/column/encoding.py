"""How a column is stored: with a dictionary or raw (docs/design/segment-format.md#s6-2, #s6-3 and #s7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Codec(StrEnum):
    """How a chunk of a raw forward index is compressed (`ChunkCompressionType`)."""

    PASS_THROUGH = "PASS_THROUGH"
    SNAPPY = "SNAPPY"
    ZSTANDARD = "ZSTANDARD"
    LZ4 = "LZ4"
    GZIP = "GZIP"


@dataclass(frozen=True, slots=True)
class RawFormat:
    """How a forward index without dictionary is written (`ForwardIndexConfig`).

    :ivar version: version of the file, fall-backs done.
    :ivar derive_docs: whether `target_bytes` rules the rows of a chunk in versions 2 and 3.
    """

    codec: Codec = Codec.LZ4
    version: int = 4
    derive_docs: bool = False
    target_bytes: int = 1 << 20
    target_docs: int = 1000


@dataclass(frozen=True, slots=True)
class Optimize:
    """When a column with dictionary is stored raw all the same (`optimizeDictionary`).

    :ivar size_ratio: fixed width: raw when its bytes are at most this share of those with a dictionary.
    :ivar cardinality_ratio: variable width: raw when distinct values are at least this share of the rows.
    """

    size_ratio: float = 0.85
    cardinality_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one column is stored.

    :ivar optimize: None where the values have no say.
    :ivar variable_length: whether a dictionary of variable width is asked for.
    :ivar entry_dictionary: whether the rows of a multi-value column get a dictionary of their own.
    :ivar raw: how it is written if it has no dictionary.
    """

    has_dictionary: bool = True
    optimize: Optimize | None = None
    variable_length: bool = False
    entry_dictionary: bool = False
    raw: RawFormat = field(default_factory=RawFormat)
