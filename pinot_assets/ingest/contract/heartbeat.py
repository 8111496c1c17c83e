"""Signs of life of the files that are being built, from the tasks to the driver.

Spark tells a driver nothing of a Python task before its end. So a task that takes long leaves an object in
the session's folder whose name says how far it is; a listing reads all of them. A sign is given by work that
was done (a file copied, rows read, a segment written), never by a clock: a task that hangs leaves none.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

import pyarrow as pa

from pinot_assets.errors import SourceError
from pinot_assets.source.object_store import ObjectStore

EVERY_S: Final = 15.0
"""A sign costs two requests, and the driver looks as often."""

_LOG = logging.getLogger(__name__)


class Heartbeat:
    """What one task leaves behind while it works; no more than one object at a time.

    :param staging: the session's folder.
    """

    def __init__(self, staging: ObjectStore, attempt: int, ordinal: int) -> None:
        self._staging = staging
        self._stem = f"moving/{attempt}/{ordinal}-{os.urandom(4).hex()}"
        self._rows = self._number = 0
        self._key: str | None = None
        self._last = time.monotonic()

    def worked(self, rows: int = 0) -> None:
        """A piece of work is done.

        :param rows: so many more are read.
        """
        self._rows += rows
        if time.monotonic() - self._last < EVERY_S:
            return
        self._number += 1
        before, self._key = self._key, f"{self._stem}-{self._number}-{self._rows}"
        try:
            self._staging.put_if_absent(self._key, b".")  # an empty one would be looked at twice
            if before is not None:
                self._staging.delete(before)
        except SourceError as error:
            _LOG.warning("no sign of life could be left: %s", error)  # no reason to fail the file
        self._last = time.monotonic()

    def counted(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The same tables, each a piece of work."""
        for table in tables:
            self.worked(table.num_rows)
            yield table

    def close(self) -> None:
        """The task is over."""
        if self._key is not None:
            with suppress(SourceError):
                self._staging.delete(self._key)


class HeartbeatReader:
    """What the driver sees of them.

    :param staging: the session's folder.
    :param else_moved: whether work was done since it was last asked of which tasks tell nothing.
    """

    def __init__(
        self, staging: ObjectStore, attempt: int, else_moved: Callable[[], bool] | None = None
    ) -> None:
        self._staging, self._folder = staging, f"moving/{attempt}"
        self._else_moved = else_moved
        self._seen: frozenset[str] = frozenset()
        self._last = time.monotonic()

    def look(self, done: Iterable[int]) -> int | None:
        """Rows read of files that are not done, None when no work was seen since the last look.

        :param done: ordinals of files that are.
        """
        if time.monotonic() - self._last < EVERY_S:
            return None
        self._last = time.monotonic()
        moved = self._else_moved is not None and self._else_moved()
        try:
            seen = frozenset(info.key for info in self._staging.list(self._folder))
        except SourceError as error:
            _LOG.warning("signs of life could not be read: %s", error)
            seen = self._seen
        fresh, self._seen = seen - self._seen, seen
        return _rows(seen, frozenset(done)) if moved or fresh else None


def _rows(keys: Iterable[str], done: frozenset[int]) -> int:
    """Of two tasks of one file (speculation) the one that is further counts."""
    furthest: dict[int, int] = {}
    for key in keys:
        ordinal, _, _, rows = (key.rsplit("/", 1)[1]).split("-")
        furthest[int(ordinal)] = max(furthest.get(int(ordinal), 0), int(rows))
    return sum(rows for ordinal, rows in furthest.items() if ordinal not in done)
