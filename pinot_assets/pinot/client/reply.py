"""The body of a reply, unpacked a MiB at a time.

httpx's own decoders unpack a chunk whole, however large it becomes, and packings within packings as often as
the reply says.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

import httpx

ACCEPTED: Final = "gzip"
"""What a server may pack with; sent as Accept-Encoding."""

_EITHER: Final = zlib.MAX_WBITS | 32  # of gzip and zlib, as the stream says
_STEP: Final = 1 << 20


class BadReply(Exception):
    """The body is packed in a way that was not asked for, or is torn."""


def unpacked(response: httpx.Response) -> Iterator[bytes]:
    """The body in chunks of at most a MiB. Stop whenever enough of it is there.

    :raises BadReply: it cannot be unpacked.
    :raises httpx.TransportError: it did not come to its end.
    """
    packing = response.headers.get("content-encoding", "identity").strip().lower()
    assert isinstance(response.stream, httpx.SyncByteStream)
    if packing in ("", "identity"):
        yield from response.stream
    elif packing in ("gzip", "x-gzip", "deflate"):
        yield from _inflated(response.stream)
    else:
        raise BadReply(f"its body is packed with {packing!r}, and {ACCEPTED} was asked for")


def _inflated(packed: Iterable[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_EITHER)
    try:
        for chunk in packed:
            yield unpacker.decompress(chunk, _STEP)
            while unpacker.unconsumed_tail:
                yield unpacker.decompress(unpacker.unconsumed_tail, _STEP)
        while rest := unpacker.decompress(b"", _STEP):
            yield rest
    except zlib.error as error:
        raise BadReply(f"its body cannot be unpacked: {error}") from error
    if not unpacker.eof:
        raise BadReply("its packed body is torn")
