"""The receipt of a batch of files, whose rows are in one rows object; in several, if it is one large file.

A task that reads many small files writes one receipt for all that it has read since the last one. Rows object
and receipt have their hash in their names, so a task that runs twice never collides with itself
(docs/design/layout.md#session).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.core.stored_format import WITH_PACKS, Stored, added, marks, plain, structured
from pinot_assets.core.untrusted import fields_of_json, typed
from pinot_assets.snapshot.receipt import Receipt, RowsChunk

BATCHES: Final = "batches"
"""The folder of these receipts, below the session's."""
_KEY: Final = re.compile(rf"(?:.*/)?{BATCHES}/([0-9]+)-[0-9a-f]{{64}}\.json")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_CHUNKS: Final = "chunks"


def attempt_of_batch(key: str) -> int | None:
    """Return the attempt in the name of a batch's receipt; None if it is not one."""
    match = _KEY.fullmatch(key)
    return int(match[1]) if match else None


def rows_key(digest: str) -> str:
    """Return the key of a rows object in the staging area.

    :raises ValueError: the digest is none.
    """
    if not _SHA256.fullmatch(digest):
        raise ValueError(f"{digest} is not the name of a rows object")
    return f"rows/{digest}.parquet"


class StoredRows(NamedTuple):
    """One rows object.

    :ivar token: its version as the staging area showed it.
    """

    digest: str
    size: int
    token: str


@dataclass(frozen=True, slots=True)
class BatchReceipt(Stored):
    """The files whose rows are in the same rows objects: several small files, or one large file of a table
    with cells. Small files that wait in memory get a later receipt.

    :ivar digest: hex digest of the rows object; "" if no file has a row.
    :ivar size: its bytes.
    :ivar token: its version as the staging area showed it; as long as it shows the same, its content need not
        be read again (rule R12).
    :ivar files: the receipts of the files, in the order of their rows.
    :ivar objects: the rows objects of a table with cells, which has the other three fields empty. There are
        several if a file was too large for one.
    """

    digest: str
    size: int
    token: str
    files: tuple[Receipt, ...]
    objects: tuple[StoredRows, ...] = field(default=(), metadata=added(WITH_PACKS))

    @property
    def stored_rows(self) -> tuple[StoredRows, ...]:
        """Return the rows objects that have the rows of its files."""
        return (StoredRows(self.digest, self.size, self.token),) if self.digest else self.objects

    def stored(self) -> tuple[str, bytes]:
        """Return its name below the session's folder, and its bytes."""
        data = self.to_bytes()
        return f"{BATCHES}/{self.files[0].attempt}-{hashlib.sha256(data).hexdigest()}.json", data

    def to_bytes(self) -> bytes:
        """Return JSON text with sorted keys. A piece names its chunk by its number in a common list."""
        chunks = [*dict.fromkeys(piece.chunk for one in self.files for piece in one.pieces)]
        number = {chunk: n for n, chunk in enumerate(chunks)}
        files: list[JsonValue] = []
        for one in self.files:
            pieces = [[number[piece.chunk], piece.first, piece.rows] for piece in one.pieces]
            stored = typed(plain(replace(one, rows_object="", pieces=()), self.format), dict)
            files.append({**stored, "pieces": pieces} if pieces else stored)
        said: JsonObject = {"digest": self.digest, "size": self.size, "token": self.token, "files": files}
        if self.objects:
            said |= {"objects": [[*one] for one in self.objects], _CHUNKS: [[*chunk] for chunk in chunks]}
        return json.dumps(said | marks(self.format), sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "the receipt of a batch") -> Self:
        """Read what `to_bytes` wrote.

        :param what: its address, for errors.
        :raises NeedsNewerRelease: its format is unknown to this release.
        :raises ValueError: it is not such a receipt, or its rows cannot be where it says.
        """
        said = fields_of_json(data)
        if "objects" in said:
            said = _with_whole_pieces(said)
        batch = structured(cls, said, what)
        files = tuple(
            replace(one, rows_object=batch.digest if one.rows else "", format=batch.format)
            for one in batch.files
        )
        for stored in batch.stored_rows:
            rows_key(stored.digest)
        _require_order(files, {stored.digest for stored in batch.stored_rows})
        if bool(batch.stored_rows) != any(one.rows for one in files):
            raise ValueError("it has rows without a rows object, or one without rows")
        return replace(batch, files=files)


def _with_whole_pieces(said: JsonObject) -> JsonObject:
    """Return the fields with each chunk where a piece has its number; a file without rows has no pieces.

    :raises ValueError: a number is none of a chunk.
    """
    try:
        chunks = dict(enumerate(said.pop(_CHUNKS)))
        files = [
            {**file, "pieces": [[chunks[number], *at] for number, *at in file.get("pieces", ())]}
            for file in said["files"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("its pieces name chunks that it does not list") from error
    return {**said, "files": files}


def _require_order(files: Iterable[Receipt], digests: Collection[str]) -> None:
    """Check that the pieces of files lie one after the other, without a gap.

    :raises ValueError: they do not, or have not as many rows as their file.
    """
    ends = Counter[RowsChunk]()
    for one in files:
        good = one.is_placed and not one.outputs and (one.rows == 0) == (not one.places)
        for chunk, first, rows in one.places:
            good &= chunk.rows_object in digests and first == ends[chunk]
            ends[chunk] += rows
        if not good:
            raise ValueError(f"the rows of {one.uri} cannot be where it says")
