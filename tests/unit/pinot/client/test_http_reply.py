"""What is read of a reply, however large it says or becomes."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import httpx
import pytest

from pinot_assets.core.untrusted import ERROR_BYTES, REPLY
from pinot_assets.errors import PinotError, PinotUnreachable, SwitchConflict, SwitchStateUnknown
from pinot_assets.pinot import PinotConnection
from pinot_assets.pinot.client.http import CallKind, HttpCall, HttpClient

URL = "http://127.0.0.1:9000"
BOMB = gzip.compress(b"0" * (32 << 20))


@pytest.fixture(autouse=True)
def _one_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REPLY.variable, "1")


class _Body(httpx.SyncByteStream):
    def __init__(self, content: bytes) -> None:
        self.content, self.read = content, 0

    def __iter__(self) -> Iterator[bytes]:
        for at in range(0, len(self.content), 65536):
            self.read += 1
            yield self.content[at : at + 65536]


def send(content: bytes, packing: str = "", status: int = 200, kind: CallKind = CallKind.READ) -> str:
    headers = {"Content-Encoding": packing} if packing else {}

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["Accept-Encoding"] == "gzip"
        return httpx.Response(status, headers=headers, stream=_Body(content))

    method = "GET" if kind is CallKind.READ else "POST"
    with HttpClient(URL, PinotConnection(URL), httpx.MockTransport(answer)) as door:
        return door.send(HttpCall(method, "/it", kind, 20.0))


@pytest.mark.parametrize(
    ("packing", "pack"),
    [
        ("", bytes),
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
    ],
)
def test_a_reply_up_to_the_limit_is_read_whole(packing: str, pack: Callable[[bytes], bytes]) -> None:
    whole = b"0123456789abcdef" * 65536
    assert send(pack(whole), packing).encode() == whole
    with pytest.raises(
        PinotError, match=r"cannot be read: it is larger than 1 MiB.*\n.*PINOT_ASSETS_MAX_REPLY_MIB"
    ):
        send(pack(whole + b"!"), packing)


def test_a_bomb_is_left_before_it_is_in_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(PinotError, match="cannot be read"):
            send(BOMB, "gzip")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("packing", ["br", "zstd", "gzip, gzip", "gzip,br"])
def test_what_was_not_asked_for_is_not_unpacked(packing: str) -> None:
    with pytest.raises(PinotError, match="compressed with"):
        send(BOMB, packing)


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"x" * 100_000)[:-20], b""])
def test_a_torn_packing_is_no_answer_that_can_be_read(content: bytes) -> None:
    with pytest.raises(PinotError, match="cannot be read"):
        send(content, "gzip")


@pytest.mark.parametrize("kind", [CallKind.WRITE, CallKind.UPLOAD, CallKind.LINEAGE])
def test_a_write_whose_answer_is_not_read_may_have_happened(kind: CallKind) -> None:
    with pytest.raises(SwitchStateUnknown):
        send(BOMB, "gzip", kind=kind)
    with pytest.raises(SwitchStateUnknown):
        send(b"no gzip", "gzip", kind=kind)


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, CallKind.READ, PinotError),
        (503, CallKind.READ, PinotUnreachable),
        (500, CallKind.LINEAGE, SwitchConflict),
    ],
)
def test_of_a_refusal_only_the_beginning_is_read(
    status: int, kind: CallKind, error: type[PinotError]
) -> None:
    said = b"because " + b"x" * (64 << 20)
    with pytest.raises(error, match="because xxx"):
        send(said, status=status, kind=kind)
    with pytest.raises(error, match="because xxx"):
        send(gzip.compress(said), "gzip", status=status, kind=kind)
    assert len(said) > ERROR_BYTES
