"""Names of what a task leaves below its session's folder, and how a version is written as text."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import parse_qsl, urlencode

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
