"""A Pushgateway on the loopback interface: keeps the newest group of each path, as a real one does on PUT."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from fakes.listening import listening
from prometheus_client.parser import text_string_to_metric_families

Numbers = dict[tuple[str, ...], float]
"""Name, then the values of the labels in the order of their names → value."""


def numbers(text: str) -> Numbers:
    """Every sample of an exposition; no two may be the same."""
    found: Numbers = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, *(sample.labels[name] for name in sorted(sample.labels)))
            assert key not in found, key
            found[key] = sample.value
    return found


class Gateway:
    """What was pushed, and how it answers.

    :ivar groups: path → its samples.
    :ivar headers: of the newest push.
    :ivar status: of its answers.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.groups: dict[str, Numbers] = {}
        self.headers: dict[str, str] = {}
        self.status = 200
        self.answers = threading.Event()
        self.answers.set()


@contextmanager
def pushgateway() -> Iterator[Gateway]:
    """One that listens."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            gateway.answers.wait(30)
            gateway.headers = dict(self.headers.items())
            if gateway.status == 200:
                gateway.groups[self.path] = numbers(body.decode())
            self.send_response(gateway.status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with listening(Handler) as port:
        gateway = Gateway(port)
        try:
            yield gateway
        finally:
            gateway.answers.set()
