"""Whether a file was read again in a session that had it done (invariants I9, I13): the store tells."""

from __future__ import annotations

import re
import threading
from urllib.parse import unquote, urlsplit

from pinot_assets.build.task import file_id

_PLAN = re.compile(r"/sessions/([^/]+)/plan-")
_RECEIPT = re.compile(r"/sessions/([^/]+)/files/([0-9a-f]{16})-")


class Reads:
    """Sees all requests to the object store.

    :param bucket: where the files lie.
    :ivar again: reads that should not have been.
    """

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._lock = threading.Lock()
        self._session = ""
        self._done: set[tuple[str, str]] = set()
        self.count = 0
        self.again: list[str] = []

    def see(self, method: str, path: str, status: int) -> None:
        """Take in one request that was carried out."""
        key = unquote(urlsplit(path).path)
        with self._lock:
            if method == "PUT" and status < 300:
                if plan := _PLAN.search(key):
                    self._session = plan[1]
                elif receipt := _RECEIPT.search(key):
                    self._done.add((receipt[1], receipt[2]))
            elif method == "GET" and key.startswith(f"/{self._bucket}/in/") and status < 300:
                self.count += 1
                uri = "s3:/" + key
                if (self._session, file_id(uri)) in self._done:
                    self.again.append(f"{uri} in {self._session}")
