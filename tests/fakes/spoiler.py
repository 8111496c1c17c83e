"""A proxy before a server, which spoils chosen requests."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REFUSALS = {"say 503": (503, "SlowDown"), "say 507": (507, "InsufficientStorage")}
"""Faults that keep a request from the server: the status, and S3's word for it."""


class Spoiler(ThreadingHTTPServer):
    """A proxy before the S3 server. `spoil` sees each request and says what goes wrong with it."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, target: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target = target
        self.spoil: Callable[[str, str], str | None] = lambda method, path: None
        self.requests: list[str] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Spoiler
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def relay(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        fault = self.server.spoil(self.command, self.path)
        headers = dict(self.headers.items())
        if fault == "drop If-None-Match":
            headers = {name: value for name, value in headers.items() if name.lower() != "if-none-match"}
        body = self.rfile.read(int(headers.get("Content-Length") or headers.get("content-length") or 0))
        if fault in REFUSALS:
            self.refuse(*REFUSALS[fault])
            return
        if fault == "close at once":
            self.close_connection = True
            return
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.target)
        upstream.request(self.command, self.path, body, headers)
        reply = upstream.getresponse()
        content = reply.read()
        upstream.close()
        if fault == "lose the reply":
            self.close_connection = True
            return
        status = {"say 500": 500, "refuse": 403}.get(fault or "", reply.status)
        if fault == "refuse":
            # As S3 does, which repeats what was wrongly signed.
            signed = f"<AWSAccessKeyId>{headers.get('authorization')}</AWSAccessKeyId>"
            content = f"<Error><Code>SignatureDoesNotMatch</Code>{signed}</Error>".encode()
        self.send_response_only(status)
        length = str(len(content)) if self.command != "HEAD" else reply.headers["Content-Length"]
        for name, value in reply.getheaders():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if fault == "cut the body":
            content = content[: len(content) // 2]
            self.close_connection = True
        self.wfile.write(content)

    def refuse(self, status: int, code: str) -> None:
        content = f"<Error><Code>{code}</Code></Error>".encode() if self.command != "HEAD" else b""
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = relay

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def spoiler(target: int) -> Iterator[Spoiler]:
    """A proxy before `127.0.0.1:target`, for the length of the block."""
    with Spoiler(target) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
