from __future__ import annotations

import http.server
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from pinot_assets.errors import (
    PinotError,
    PinotNotFound,
    PinotUnreachable,
    PushRefused,
    SwitchConflict,
    SwitchStateUnknown,
)
from pinot_assets.pinot import BasicAuth, PinotConnection, Timeouts, Tls, TokenAuth
from pinot_assets.pinot.client.http import (
    ATTEMPTS,
    CallKind,
    CutOff,
    HttpCall,
    HttpClient,
    NoConnection,
    NoRights,
    NotReady,
    UploadFailed,
    error_text,
)

URL = "http://127.0.0.1:9000"
WRITES = (CallKind.WRITE, CallKind.UPLOAD, CallKind.LINEAGE)


def call(kind: CallKind, deadline: float = 5.0) -> HttpCall:
    return HttpCall("GET" if kind is CallKind.READ else "POST", "/it", kind, deadline)


def door(
    answer: Callable[[httpx.Request], httpx.Response], auth: BasicAuth | TokenAuth | None = None
) -> HttpClient:
    return HttpClient(URL, PinotConnection(URL, auth=auth), httpx.MockTransport(answer))


class Failing:
    """Fails the first calls, then answers."""

    def __init__(self, error: type[httpx.TransportError], times: int) -> None:
        self.error, self.times, self.calls = error, times, 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error("it broke", request=request)
        return httpx.Response(200, text="done")


# --- what an answer means ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, CallKind.READ, PinotError),
        (400, CallKind.LINEAGE, PinotError),
        (400, CallKind.UPLOAD, PushRefused),
        (401, CallKind.UPLOAD, NoRights),
        (403, CallKind.READ, NoRights),
        (403, CallKind.UPLOAD, PushRefused),
        (404, CallKind.READ, PinotNotFound),
        (404, CallKind.LINEAGE, PinotNotFound),
        (409, CallKind.WRITE, PinotError),
        (409, CallKind.UPLOAD, PushRefused),
        (410, CallKind.UPLOAD, PushRefused),
        (412, CallKind.UPLOAD, PushRefused),
        (500, CallKind.READ, PinotError),
        (500, CallKind.WRITE, PinotError),
        (500, CallKind.UPLOAD, UploadFailed),
        (500, CallKind.LINEAGE, SwitchConflict),
        (502, CallKind.LINEAGE, CutOff),
        (503, CallKind.WRITE, CutOff),
        (504, CallKind.UPLOAD, SwitchStateUnknown),
        (502, CallKind.READ, PinotUnreachable),
        (503, CallKind.READ, NotReady),
    ],
)
def test_status_to_error(status: int, kind: CallKind, error: type[PinotError]) -> None:
    with (
        door(lambda _: httpx.Response(status, json={"code": status, "error": "the reason"})) as it,
        pytest.raises(PinotError) as caught,
    ):
        it.send(call(kind))
    assert type(caught.value) is error
    text = str(caught.value)
    assert "the reason" in text
    assert f"{URL}/it" in text
    assert str(status) in text


def test_a_redirect_is_not_followed_with_credentials() -> None:
    with (
        door(lambda _: httpx.Response(302, headers={"location": "http://elsewhere/"})) as it,
        pytest.raises(PinotError, match="302"),
    ):
        it.send(call(CallKind.READ))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"code":500,"error":"Segment: a does not exist"}', "Segment: a does not exist"),
        ('{"message":"Table x does not exist","status":404}', "Table x does not exist"),
        ('{"code": 5}', '{"code": 5}'),
        ('["a"]', '["a"]'),
        ("plain", "plain"),
        (
            "<html><head><title>Grizzly</title><style>a{}</style></head><body>Request <b>failed.</b></body>",
            "Request failed.",
        ),
        ("", ""),
    ],
)
def test_pinots_own_words(text: str, words: str) -> None:
    assert error_text(text) == words


def test_a_long_error_is_cut() -> None:
    with (
        door(lambda _: httpx.Response(500, json={"error": "x" * 100_000})) as it,
        pytest.raises(PinotError) as caught,
    ):
        it.send(call(CallKind.WRITE))
    assert len(str(caught.value)) < 1000


# --- what no answer means ----------------------------------------------------------------------------

NOT_SENT = [httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout]
LATE = [httpx.ReadTimeout, httpx.WriteTimeout]
BROKEN = [httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError]
SENT = [*LATE, *BROKEN]


@pytest.mark.parametrize("kind", CallKind)
@pytest.mark.parametrize("error", NOT_SENT)
def test_what_was_never_sent_was_not_done(kind: CallKind, error: type[httpx.TransportError]) -> None:
    failing = Failing(error, times=99)
    with door(failing) as it, pytest.raises(NoConnection, match="this call was not sent"):
        it.send(call(kind))
    assert failing.calls == ATTEMPTS


@pytest.mark.parametrize(
    ("asked", "hint"),
    [("http://controller:9000/", "PINOT_CONTROLLER_URL"), ("http://broker:8099", "can reach it")],
)
def test_where_nothing_listens_the_hint_is_about_that_address(asked: str, hint: str) -> None:
    connection = PinotConnection("http://controller:9000")
    transport = httpx.MockTransport(Failing(httpx.ConnectError, times=99))
    with HttpClient(asked, connection, transport) as it, pytest.raises(NoConnection) as caught:
        it.send(call(CallKind.QUERY))
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize("error", SENT)
def test_a_lost_answer_to_a_write_is_unknown_and_never_repeated(
    kind: CallKind, error: type[httpx.TransportError]
) -> None:
    """Only where the connection broke it may never have been heard, and may be sent again by who looked."""
    failing = Failing(error, times=1)
    with door(failing) as it, pytest.raises(SwitchStateUnknown) as caught:
        it.send(call(kind))
    assert failing.calls == 1
    assert isinstance(caught.value, CutOff) == (error in BROKEN)


@pytest.mark.parametrize("error", SENT)
def test_a_query_is_not_repeated_and_changes_nothing(error: type[httpx.TransportError]) -> None:
    failing = Failing(error, times=1)
    with door(failing) as it, pytest.raises(PinotUnreachable) as caught:
        it.send(call(CallKind.QUERY))
    assert failing.calls == 1
    assert not isinstance(caught.value, NoConnection)


@pytest.mark.parametrize("error", SENT)
def test_a_read_is_repeated(error: type[httpx.TransportError]) -> None:
    failing = Failing(error, times=ATTEMPTS - 1)
    with door(failing) as it:
        assert it.send(call(CallKind.READ)) == "done"
    failing = Failing(error, times=99)
    with door(failing) as it, pytest.raises(PinotUnreachable):
        it.send(call(CallKind.READ))
    assert failing.calls == ATTEMPTS


@pytest.mark.parametrize("kind", WRITES)
def test_a_write_is_repeated_only_while_it_was_not_sent(kind: CallKind) -> None:
    failing = Failing(httpx.ConnectError, times=ATTEMPTS - 1)
    with door(failing) as it:
        assert it.send(call(kind)) == "done"


# --- the deadline, on real sockets -------------------------------------------------------------------


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def trickling() -> Iterator[str]:
    """A server that answers one byte at a time, for ever."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"x")
                    self.wfile.flush()
                    time.sleep(0.02)
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
        yield url


class _serving:
    def __init__(self, server: http.server.HTTPServer, scheme: str = "http") -> None:
        self.server, self.scheme = server, scheme
        self.thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> str:
        self.thread.start()
        return f"{self.scheme}://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def blocked() -> Iterator[str]:
    """A server that takes two calls without an answer, as a controller whose ZooKeeper is away, and answers
    the third."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as kept:

        def serve() -> None:
            for _ in range(2):
                kept.enter_context(server.accept()[0])
            with server.accept()[0] as last:
                last.recv(4096)
                last.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


def test_a_read_that_got_no_answer_in_time_is_repeated(blocked: str) -> None:
    with HttpClient(blocked, PinotConnection(blocked)) as it:
        assert it.send(call(CallKind.READ, deadline=0.3)) == "done"


@pytest.mark.parametrize("server", ["silent", "trickling"])
def test_the_deadline_holds_for_the_whole_call(server: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(server)
    started = time.monotonic()
    with HttpClient(url, PinotConnection(url)) as it, pytest.raises(SwitchStateUnknown):
        it.send(call(CallKind.LINEAGE, deadline=0.3))
    assert time.monotonic() - started < 2.0


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with HttpClient(url, PinotConnection(url)) as it, pytest.raises(PinotUnreachable):
        it.send(call(CallKind.LINEAGE))


# --- credentials and TLS -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("auth", "header"),
    [(BasicAuth("ada", "s3cret"), "Basic YWRhOnMzY3JldA=="), (TokenAuth("s3cret"), "Bearer s3cret")],
)
def test_credentials_are_sent_and_never_told(auth: BasicAuth | TokenAuth, header: str) -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers["Authorization"])
        return httpx.Response(500, text=f"who is {request.headers['Authorization']} with s3cret?")

    with door(answer, auth) as it, pytest.raises(PinotError) as caught:
        it.send(call(CallKind.WRITE))
    assert seen == [header]
    assert "s3cret" not in str(caught.value)
    assert header.partition(" ")[2] not in str(caught.value)


def test_no_credentials_no_header(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login ada password s3cret\n")
    monkeypatch.setenv("NETRC", str(netrc))

    def answer(request: httpx.Request) -> httpx.Response:
        assert "Authorization" not in request.headers
        return httpx.Response(200, text="done")

    with door(answer) as it:
        assert it.send(call(CallKind.READ)) == "done"


@pytest.fixture
def https(certificate: tuple[Path, Path]) -> Iterator[str]:
    """A TLS server that wants a client certificate."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"OK")

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.load_verify_locations(certificate[0])
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with _serving(server, "https") as url:
        yield url


def test_tls_with_our_own_authority_and_client_certificate(
    https: str, certificate: tuple[Path, Path]
) -> None:
    cert, key = map(str, certificate)
    tls = Tls(ca_bundle=cert, client_cert=cert, client_key=key)
    with HttpClient(https, PinotConnection(https, tls=tls)) as it:
        assert it.send(call(CallKind.READ)) == "OK"


@pytest.mark.parametrize("with_authority", [True, False])
def test_tls_that_does_not_fit_is_no_connection(
    https: str, certificate: tuple[Path, Path], with_authority: bool
) -> None:
    # Without the authority we refuse the server; without a client certificate the server refuses us.
    tls = Tls(ca_bundle=str(certificate[0])) if with_authority else Tls()
    connection = PinotConnection(https, tls=tls, timeouts=Timeouts(call=2))
    with HttpClient(https, connection) as it, pytest.raises(PinotUnreachable):
        it.send(call(CallKind.READ))


# --- JSON --------------------------------------------------------------------------------------------


def test_an_empty_reply_is_none() -> None:
    with door(lambda _: httpx.Response(200, text=" ")) as it:
        assert it.send_json(call(CallKind.READ)) is None
        assert it.send_fields(call(CallKind.READ)) == {}


def test_a_reply_that_is_no_object_is_refused_where_one_is_read() -> None:
    with door(lambda _: httpx.Response(200, text='{"a": 1}')) as it:
        assert it.get_fields("/x") == {"a": 1}
    for text in ("[]", "[1]", "0", '""', "false"):
        with (
            door(lambda _, text=text: httpx.Response(200, text=text)) as it,
            pytest.raises(PinotError, match="did not answer with a JSON object"),
        ):
            it.send_fields(call(CallKind.READ))


def test_what_is_not_json_is_told() -> None:
    with (
        door(lambda _: httpx.Response(200, text="<html>login</html>")) as it,
        pytest.raises(PinotError, match="did not answer with JSON"),
    ):
        it.send_json(call(CallKind.READ))
