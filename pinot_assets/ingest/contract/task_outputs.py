"""What a task leaves below its session's folder: names, versions as text, the count of cut values."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import parse_qsl, urlencode

from pinot_assets.core.stored_format import FIRST, Marks, Stored, marks
from pinot_assets.core.untrusted import read_json
from pinot_assets.segment.values.truncation import Cut
from pinot_assets.segment.write.segment import ColumnStats
from pinot_assets.snapshot.fingerprint import Fingerprint

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
        found: dict[str, Cut] = {}
        for columns in segments:
            for column in columns:
                if any(column.cut):
                    found[column.name] = found.get(column.name, Cut()) + column.cut
        return cls(found, format=number)

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
