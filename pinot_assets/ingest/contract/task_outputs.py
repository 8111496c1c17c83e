"""What a task leaves below its session's folder: object names, versions as text, counts of cut values, signs
of life.

Spark reports nothing about a Python task before its end. So a task that takes long writes an object into the
session's folder whose name holds its progress; one listing reads all of them. A task gives a sign only after
work (a file copied, rows read, a segment written), never by a clock: a task that hangs gives none.
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
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import parse_qsl, urlencode

import pyarrow as pa

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.stored_format import FIRST, Marks, Stored, marks
from pinot_assets.core.untrusted import fields_of_json
from pinot_assets.errors import SourceError
from pinot_assets.segment.values.normalize import Cut
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.source.object_store import ObjectStore

if TYPE_CHECKING:  # who reads what a task left writes no segment
    from pinot_assets.segment.write.segment import ColumnStats

_RECEIPT = re.compile(r"-([0-9]+)\.json$")


def file_id(uri: str) -> str:
    """Return sixteen hex digits that identify a file in the names of its objects."""
    return hashlib.sha256(uri.encode(errors="surrogateescape")).hexdigest()[:16]


def receipt_key(uri: str, read: Fingerprint, attempt: int) -> str:
    """Return a receipt's name below the session's folder: file, version *read* and attempt (rule R12)."""
    return f"files/{file_id(uri)}-{read.token}-{attempt}.json"


def attempt_of(key: str) -> int:
    """Return the attempt in a receipt's name; 0 if the name is not that of a receipt."""
    match = _RECEIPT.search(key)
    return int(match[1]) if match else 0


def bad_rows_key(uri: str, read: Fingerprint, attempt: int) -> str:
    """Return the name of the object with a file's bad rows, below the session's folder."""
    return f"bad-rows/{file_id(uri)}-{read.token}-{attempt}.parquet"


CUT_VALUES = "cut"
"""The folder of the objects that `cut_key` names."""


def cut_key(uri: str, read: Fingerprint, attempt: int) -> str:
    """Return the name of the object that counts a file's cut values, below the session's folder."""
    return f"{CUT_VALUES}/{file_id(uri)}-{read.token}-{attempt}.json"


def version_text(read: Fingerprint) -> str:
    """Return a version as text without commas, for a segment's custom map; inverse: `version_from_text`."""
    return urlencode({name: value for name, value in read.to_json().items() if value is not None})


def version_from_text(text: str) -> Fingerprint:
    """Return the version that `version_text` wrote.

    :raises ValueError: the text is not a version.
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
    """Counts of the cut values of one file.

    :ivar columns: by column name; only columns with cut values.
    """

    columns: Mapping[str, Cut]

    @classmethod
    def of(cls, segments: Iterable[Iterable[ColumnStats]], number: int = FIRST) -> Self:
        """Add up the cut values of all segments of one file.

        :param number: the format in which they will be stored.
        """
        cuts: dict[str, Cut] = {}
        for column in chain.from_iterable(segments):
            if any(column.cut):
                cuts[column.name] = cuts.get(column.name, Cut()) + column.cut
        return cls(cuts, format=number)

    def to_bytes(self) -> bytes:
        """Return JSON text, with sorted keys."""
        columns = {name: _counts(cut) for name, cut in self.columns.items()}
        value = {"columns": columns} | marks(self.format)
        return json.dumps(value, sort_keys=True, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "a count of cut values") -> Self:
        """Return what `to_bytes` wrote. Unknown keys are dropped, which is safe: it is never written back.

        :param what: address of the object, for errors.
        :raises NeedsNewerRelease: this release does not know the object's format.
        :raises ValueError: the text is not a count of cut values.
        """
        try:
            value = fields_of_json(data)
            number = Marks.of(value).require_known(what)
            columns = value["columns"].items()
            cuts = {
                name: Cut(int(c["nul"]), int(c["maxLength"]), int(c.get("time", 0))) for name, c in columns
            }
            return cls(cuts, format=number)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"no count of cut values: {error}") from error


def _counts(cut: Cut) -> JsonObject:
    counts = {"nul": cut.at_nul, "maxLength": cut.at_length}
    # Only if there are some: what a release before this key wrote stays byte for byte.
    return counts | ({"time": cut.out_of_time} if cut.out_of_time else {})


EVERY_S: Final = 15.0
"""Seconds between two signs, and between two looks of the driver. A sign costs two requests."""

_LOG = logging.getLogger(__name__)


class Heartbeat:
    """Leaves one task's signs of life while it works; at most one object at a time.

    :param staging: the session's folder.
    """

    def __init__(self, staging: ObjectStore, attempt: int, ordinal: int) -> None:
        self._staging = staging
        self._stem = f"moving/{attempt}/{ordinal}-{os.urandom(4).hex()}"
        self._rows = self._number = 0
        self._key: str | None = None
        self._last = time.monotonic()

    def worked(self, rows: int = 0) -> None:
        """Note that a piece of work is done; leave a sign if the last one is older than `EVERY_S`.

        :param rows: how many more rows are read.
        """
        self._rows += rows
        if time.monotonic() - self._last < EVERY_S:
            return
        self._number += 1
        before, self._key = self._key, f"{self._stem}-{self._number}-{self._rows}"
        try:
            self._staging.put_if_absent(self._key, b".")  # a store would check an empty object twice
            if before is not None:
                self._staging.delete(before)
        except SourceError as error:
            _LOG.warning("no sign of life could be written: %s", error)  # no reason to fail the file
        self._last = time.monotonic()

    def counted(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the same tables; count each as a piece of work."""
        for table in tables:
            self.worked(table.num_rows)
            yield table

    def close(self) -> None:
        """Delete the last sign: the task is over."""
        if self._key is not None:
            with suppress(SourceError):
                self._staging.delete(self._key)


class HeartbeatReader:
    """Reads the signs of life of all tasks, for the driver.

    :param staging: the session's folder.
    :param else_moved: whether work was done since its last call that no task gives a sign of.
    """

    def __init__(
        self, staging: ObjectStore, attempt: int, else_moved: Callable[[], bool] | None = None
    ) -> None:
        self._staging, self._folder = staging, f"moving/{attempt}"
        self._else_moved = else_moved
        self._signs: frozenset[str] = frozenset()
        self._last = time.monotonic()

    def look(self, done: Iterable[int]) -> int | None:
        """Return rows read of files not done; None if no work was seen, or if the last look is too recent.

        :param done: ordinals of the files that are done.
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
    """Sum the rows of files not done. If two tasks build one file (speculation), the further one counts."""
    furthest: dict[int, int] = {}
    for key in keys:
        ordinal, _, _, rows = (key.rsplit("/", 1)[1]).split("-")
        furthest[int(ordinal)] = max(furthest.get(int(ordinal), 0), int(rows))
    return sum(rows for ordinal, rows in furthest.items() if ordinal not in done)
