"""A proxy before one HTTP server, which shows the gate each request that may change something."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from crash.gate import Gate

Names = Callable[[str, str], str | None]
"""Method and path → what the gate calls that effect, None when it changes nothing."""

Sees = Callable[[str, str, int], None]
"""Told of each request that was carried out: method, path, status."""

Reply = tuple[int, list[tuple[str, str]], bytes]


class HttpProxy(ThreadingHTTPServer):
    """See the module.

    :param target: base URL of the server.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, target: str, gate: Gate, names: Names, sees: Sees = lambda *_: None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        parts = urlsplit(target)
        assert parts.hostname is not None
        self.target = (parts.hostname, parts.port)
        self.gate, self.names, self.sees = gate, names, sees

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed, or a server: what the matrix does all the time."""


class _Handler(BaseHTTPRequestHandler):
    server: HttpProxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _relay(self) -> None:
        method, path = self.command, self.path
        headers = dict(self.headers.items())
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:
            self.close_connection = True
            return
        server = self.server

        def carry_out() -> Reply:
            upstream = http.client.HTTPConnection(*server.target)
            try:
                upstream.request(method, path, body, headers)
                reply = upstream.getresponse()
                content = reply.read()
            finally:
                upstream.close()
            server.sees(method, path, reply.status)
            return reply.status, reply.getheaders(), content

        effect = server.names(method, path)
        reply = carry_out() if effect is None else server.gate.pass_by(effect, carry_out)
        if reply is None:
            self.close_connection = True
            return
        self._answer(method, *reply)

    def _answer(self, method: str, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            whole = name.lower() not in ("connection", "transfer-encoding", "content-length")
            if whole or (method == "HEAD" and name.lower() == "content-length"):
                self.send_header(name, value)
        if method != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _relay

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def http_proxy(target: str, gate: Gate, names: Names, sees: Sees = lambda *_: None) -> Iterator[HttpProxy]:
    """A proxy before `target`, for the length of the block."""
    with HttpProxy(target, gate, names, sees) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
