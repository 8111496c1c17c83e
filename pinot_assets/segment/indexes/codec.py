"""Compression of one chunk of a raw forward index (docs/design/segment-format.md#s7-5).

LZ4 and GZIP give the bytes of Pinot's libraries. Snappy and zstd give valid blocks whose bytes follow the
library's version; Pinot reads them all the same.
"""

from __future__ import annotations

import struct
import zlib

import pyarrow as pa

from pinot_assets.segment.column.encoding import Codec

_IDS = {Codec.PASS_THROUGH: 0, Codec.SNAPPY: 1, Codec.ZSTANDARD: 2, Codec.LZ4: 3, Codec.GZIP: 5}
_LZ4_LENGTH_PREFIXED = 4
_LZ4 = pa.Codec("lz4_raw")
_SNAPPY = pa.Codec("snappy")
_ZSTANDARD = pa.Codec("zstd", compression_level=3)
_GZIP_LEVEL = 6


def codec_id(codec: Codec, *, little_endian: bool) -> int:
    """The number that stands for the codec in a header (`ChunkCompressionType`).

    :param little_endian: whether the chunks are those of versions 4 and 5 of variable width, where LZ4
        carries its length.
    """
    return _LZ4_LENGTH_PREFIXED if codec is Codec.LZ4 and little_endian else _IDS[codec]


def compressed(codec: Codec, chunk: bytes, *, little_endian: bool) -> bytes:
    """One chunk as it is stored."""
    length = struct.pack("<i" if little_endian else ">i", len(chunk))
    match codec:
        case Codec.PASS_THROUGH:
            return chunk
        case Codec.LZ4:
            block = _bytes(_LZ4, chunk)
            return length + block if little_endian else block
        case Codec.GZIP:
            # A zlib stream in spite of the name. isal and zlib-ng pack differently from Java's zlib.
            return zlib.compress(chunk, _GZIP_LEVEL) + length
        case Codec.SNAPPY:
            return _bytes(_SNAPPY, chunk)
        case Codec.ZSTANDARD:
            return _bytes(_ZSTANDARD, chunk)


def _bytes(library: pa.Codec, chunk: bytes) -> bytes:
    packed: bytes = library.compress(chunk, asbytes=True)
    return packed
