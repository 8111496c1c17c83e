"""What a listing says about one file, and when two such sayings mean the same content.

The fingerprint wakes, content decides (edge case E3).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.stored_format import Open


@dataclass(frozen=True, slots=True)
class Fingerprint(Open):
    """The version of one file as its store reports it.

    :ivar size: bytes.
    :ivar mtime_us: last modification in microseconds since the epoch, as the store says; compared
        for equality (edge case E28), and for age only where `minFileAgeSec` asks for it. Whole seconds on
        S3, where a HEAD knows no more.
    :ivar etag: the store's entity tag without quotes, None on a local disk.
    :ivar version_id: the object version on a versioned bucket, else None. For people only: a listing
        does not tell it and a HEAD does, so it takes no part in equality or `token`.
    """

    size: int
    mtime_us: int
    etag: str | None = None
    version_id: str | None = field(default=None, compare=False)

    @property
    def token(self) -> str:
        """Twelve hex digits that name this version in receipts and plans."""
        text = json.dumps({"size": self.size, "mtime_us": self.mtime_us, "etag": self.etag}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def to_json(self) -> JsonObject:
        """Plain values: the columns of a plan and of a snapshot."""
        return {
            "size": self.size,
            "mtime_us": self.mtime_us,
            "etag": self.etag,
            "version_id": self.version_id,
        }

    @classmethod
    def of_row(cls, row: JsonMapping) -> Fingerprint:
        """That of such columns."""
        return cls(row["size"], row["mtime_us"], row["etag"], row["version_id"])


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """One listed file: its full URI (`file:///…`, `s3://bucket/key`) and its version."""

    uri: str
    fingerprint: Fingerprint
