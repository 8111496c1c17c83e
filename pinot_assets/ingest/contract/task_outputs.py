"""What a task leaves below its session's folder: names, versions as text, the count of cut values, signs of
life.

Spark tells a driver nothing of a Python task before its end. So a task that takes long leaves an object in
the session's folder whose name says how far it is; a listing reads all of them. A sign is given by work that
was done (a file copied, rows read, a segment written), never by a clock: a task that hangs leaves none.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Final, Self
from urllib.parse import parse_qsl, urlencode

import pyarrow as pa

from pinot_assets.core.stored_format import FIRST, Marks, Stored, marks
from pinot_assets.core.untrusted import read_json
from pinot_assets.errors import SourceError
from pinot_assets.segment.values.normalize import Cut
from pinot_assets.segment.write.segment import ColumnStats
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.source.object_store import ObjectStore

_RECEIPT = re.compile(r"-([0-9]+)\.json$")


def file_id(uri: str) -> str:
    """Sixteen hex digits that name a file in receipts."""
    return hashlib.sha256(uri.encode(errors="surrogateescape")).hexdigest()[:16]


def receipt_key(uri: str, read: Fingerprint, attempt: int) -> str:
    """Name of a receipt below the session's folder: the version *read* and the attempt (rule R12)."""
    return f"files/{file_id(uri)}-{read.token}-{attempt}.json"


def attempt_of(key: str) -> int:
    """The attempt in a receipt's name; 0 for what is no receipt."""
    match = _RECEIPT.search(key)
    return int(match[1]) if match else 0


def bad_rows_key(uri: str, read: Fingerprint, attempt: int) -> str:
    """Name of a file's quarantined rows below the session's folder."""
    return f"bad-rows/{file_id(uri)}-{read.token}-{attempt}.parquet"


CUT_VALUES = "cut"
"""Folder of what `cut_key` names."""


def cut_key(uri: str, read: Fingerprint, attempt: int) -> str:
    """Name of the count of a file's cut values below the session's folder."""
    return f"{CUT_VALUES}/{file_id(uri)}-{read.token}-{attempt}.json"


def version_text(read: Fingerprint) -> str:
    """A version for a segment's custom map, which takes no comma; `version_from_text` is the inverse."""
    return urlencode({name: value for name, value in read.to_json().items() if value is not None})


def version_from_text(text: str) -> Fingerprint:
    """Inverse of `version_text`.

    :raises ValueError: the text is not of a version.
    """
    values: dict[str, str] = dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True))
    try:
        size, mtime_us = int(values.pop("size")), int(values.pop("mtime_us"))
    except KeyError as error:
        raise ValueError(f"not a version: {text}") from error
    read = Fingerprint(size, mtime_us, values.pop("etag", None), values.pop("version_id", None))
    if values:
        raise ValueError(f"not a version: {text}")
    return read


@dataclass(frozen=True, slots=True)
class CutValues(Stored):
    """Of one file.

    :ivar columns: those that lost something, by name.
    """

    columns: Mapping[str, Cut]

    @classmethod
    def of(cls, segments: Iterable[Iterable[ColumnStats]], number: int = FIRST) -> Self:
        """Of the columns of all segments of the file.

        :param number: the format that it is written in.
        """
        cuts: dict[str, Cut] = {}
        for column in chain.from_iterable(segments):
            if any(column.cut):
                cuts[column.name] = cuts.get(column.name, Cut()) + column.cut
        return cls(cuts, format=number)

    def to_bytes(self) -> bytes:
        """JSON text, keys sorted."""
        columns = {
            name: {"nul": cut.at_nul, "maxLength": cut.at_length} for name, cut in self.columns.items()
        }
        value = {"columns": columns} | marks(self.format)
        return json.dumps(value, sort_keys=True, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "a count of cut values") -> Self:
        """Inverse of `to_bytes`; keys that are not known are left out: it is never written back.

        :param what: its address, for errors.
        :raises NeedsNewerRelease: it is of a format that this release does not know.
        :raises ValueError: the text is none.
        """
        try:
            value = read_json(data)
            number = Marks.of(value).require_known(what)
            columns = value["columns"].items()
            cuts = {name: Cut(int(c["nul"]), int(c["maxLength"])) for name, c in columns}
            return cls(cuts, format=number)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"no count of cut values: {error}") from error


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
        self._signs: frozenset[str] = frozenset()
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
            signs = frozenset(info.key for info in self._staging.list(self._folder))
        except SourceError as error:
            _LOG.warning("signs of life could not be read: %s", error)
            signs = self._signs
        fresh, self._signs = signs - self._signs, signs
        return _rows(signs, frozenset(done)) if moved or fresh else None


def _rows(keys: Iterable[str], done: frozenset[int]) -> int:
    """Of two tasks of one file (speculation) the one that is further counts."""
    furthest: dict[int, int] = {}
    for key in keys:
        ordinal, _, _, rows = (key.rsplit("/", 1)[1]).split("-")
        furthest[int(ordinal)] = max(furthest.get(int(ordinal), 0), int(rows))
    return sum(rows for ordinal, rows in furthest.items() if ordinal not in done)
