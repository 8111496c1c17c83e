"""Raw forward indexes taken apart, so that those whose compressed bytes differ can be compared."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import pyarrow as pa

_SNAPPY, _ZSTANDARD = 1, 2
_MARKER = 8


def assert_same_chunks(theirs: Mapping[str, bytes], ours: Mapping[str, bytes]) -> None:
    """All of two segments is equal, but that compressed chunks need only hold the same bytes.

    For Snappy, and for zstd where the two sides do not have the same release of it
    (docs/design/segment-format.md#s7-5).
    """
    assert ours["metadata.properties"].decode() == theirs["metadata.properties"].decode()
    text = ours["metadata.properties"].decode()
    lines = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    mine, pinots = _buffers(ours), _buffers(theirs)
    assert list(mine) == list(pinots)
    for key, buffer in mine.items():
        column = f"column.{key.rpartition('.')[0]}"
        if not key.endswith(".forward_index") or lines[f"{column}.hasDictionary"] == "true":
            assert buffer == pinots[key], key
            continue
        wide = lines[f"{column}.dataType"] in ("STRING", "JSON", "BYTES", "BIG_DECIMAL")
        dynamic = wide or lines[f"{column}.isSingleValues"] == "false"
        assert _chunks(buffer, dynamic) == _chunks(pinots[key], dynamic), key


def _buffers(files: Mapping[str, bytes]) -> dict[str, bytes]:
    lines = dict(line.split(" = ") for line in files["index_map"].decode().splitlines())
    found = {}
    for key, text in lines.items():
        if key.endswith(".startOffset"):
            name, start = key.removesuffix(".startOffset"), int(text)
            found[name] = files["columns.psf"][start + _MARKER : start + int(lines[f"{name}.size"])]
    return found


def _chunks(buffer: bytes, dynamic: bool) -> tuple[tuple[int, ...], list[int], list[bytes]]:
    """What the header says, the first row of each chunk where that is written, and the chunks unpacked."""
    version = int.from_bytes(buffer[:4], "big")
    if dynamic and version >= 4:
        header = struct.unpack_from(">iii", buffer)
        data = int.from_bytes(buffer[12:16], "big")
        heads = struct.unpack_from(f"<{(data - 16) // 4}I", buffer, 16)
        rows, starts = [*heads[::2]], [data + start for start in heads[1::2]]
        codec = header[2]
    else:
        header = struct.unpack_from(">iiiiiii", buffer)
        starts = [*struct.unpack_from(f">{header[1]}{'i' if version == 2 else 'q'}", buffer, 28)]
        rows, codec = [], header[5]
    ends = [*starts[1:], len(buffer)]
    return header, rows, [_unpacked(buffer[a:b], codec) for a, b in zip(starts, ends, strict=True)]


def _unpacked(chunk: bytes, codec: int) -> bytes:
    if codec == _ZSTANDARD:
        return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read())
    if codec != _SNAPPY:
        return chunk
    size = shift = 0
    for byte in chunk:  # the length, seven bits at a time
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return bytes(pa.Codec("snappy").decompress(chunk, size, asbytes=True))
