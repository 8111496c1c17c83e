"""Whether a file was read again in a session that had it done (invariants I9, I13): the store tells."""

from __future__ import annotations

import re
import threading
from urllib.parse import unquote, urlsplit

from pinot_assets.ingest.contract.task_outputs import file_id

_PLAN = re.compile(r"/sessions/([^/]+)/plan-")
_RECEIPT = re.compile(r"/sessions/([^/]+)/files/([0-9a-f]{16})-")
_LOOK = re.compile(r"/sessions/[^/]+/files")


class Reads:
    """Sees all requests to the object store.

    A driver lists the receipts, and then builds what has none. A dead run's receipt that arrives after that
    look is news to nobody before the next one: what it stands for was read before the look, not since.

    :param bucket: where the files lie.
    :ivar again: reads that should not have been.
    """

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._lock = threading.Lock()
        self._session = ""
        self._written: set[tuple[str, str]] = set()
        self._done: set[tuple[str, str]] = set()
        self._read_since_look: set[str] = set()
        self.count = 0
        self.again: list[str] = []

    def see(self, method: str, path: str, status: int) -> None:
        """Take in one request that was carried out."""
        if status >= 300:
            return
        parts = urlsplit(path)
        key = unquote(parts.path)
        with self._lock:
            if method == "PUT":
                self._see_put(key)
            elif method == "GET" and _LOOK.search(unquote(parts.query)):
                self._done |= self._written
                self._read_since_look.clear()
            elif method == "GET" and key.startswith(f"/{self._bucket}/in/"):
                self._see_read("s3:/" + key)

    def _see_put(self, key: str) -> None:
        if plan := _PLAN.search(key):
            self._session = plan[1]
        elif receipt := _RECEIPT.search(key):
            session, file = receipt.groups()
            self._written.add((session, file))
            if file in self._read_since_look:
                self._done.add((session, file))

    def _see_read(self, uri: str) -> None:
        self.count += 1
        file = file_id(uri)
        self._read_since_look.add(file)
        if (self._session, file) in self._done:
            self.again.append(f"{uri} in {self._session}")
