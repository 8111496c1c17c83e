"""A webhook on the loopback interface that answers as it is told."""

from __future__ import annotations

import http.server
import json
from collections.abc import Iterator
from contextlib import contextmanager

from fakes.listening import listening

from pinot_assets.core.json_object import JsonObject

SECRET = "T0KEN-s3cret"


class Hook:
    """What was posted, and how it will be answered.

    :ivar statuses: of the next answers; 200 when there are none left.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/services/{SECRET}"
        self.posted: list[JsonObject] = []
        self.statuses: list[int] = []


@contextmanager
def webhook() -> Iterator[Hook]:
    """One that listens."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == f"/services/{SECRET}"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = hook.statuses.pop(0) if hook.statuses else 200
            if status == 200:
                hook.posted.append(json.loads(body))
            self.send_response(status)
            self.send_header("Location", hook.url)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with listening(Handler) as port:
        hook = Hook(port)
        yield hook
