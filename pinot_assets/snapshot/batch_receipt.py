"""The receipt of a batch of small files, whose rows are in one rows object.

A task that reads many small files writes one receipt for all that it has read since the last one. Rows object
and receipt have their hash in their names, so a task that runs twice never collides with itself
(docs/design/layout.md#session).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from typing import Final, Self

from pinot_assets.core.stored_format import Stored, marks, plain, structured
from pinot_assets.core.untrusted import fields_of_json
from pinot_assets.snapshot.receipt import Receipt

BATCHES: Final = "batches"
"""The folder of these receipts, below the session's."""
_KEY: Final = re.compile(rf"(?:.*/)?{BATCHES}/([0-9]+)-[0-9a-f]{{64}}\.json")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


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


@dataclass(frozen=True, slots=True)
class BatchReceipt(Stored):
    """What a task read since its last receipt.

    :ivar digest: hex digest of the rows object; "" if no file has a row.
    :ivar size: its bytes.
    :ivar token: its version as the staging area showed it; as long as it shows the same, its content need not
        be read again (rule R12).
    :ivar files: the receipts of the files, in the order of their rows.
    """

    digest: str
    size: int
    token: str
    files: tuple[Receipt, ...]

    @property
    def key(self) -> str:
        """Return its name below the session's folder."""
        sha256 = hashlib.sha256(self.to_bytes()).hexdigest()
        return f"{BATCHES}/{self.files[0].attempt}-{sha256}.json"

    def to_bytes(self) -> bytes:
        """Return JSON text with sorted keys."""
        files = [plain(replace(one, rows_object=""), self.format) for one in self.files]
        said = {"digest": self.digest, "size": self.size, "token": self.token, "files": files}
        return json.dumps(said | marks(self.format), sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, data: bytes, what: str = "the receipt of a batch") -> Self:
        """Read what `to_bytes` wrote.

        :param what: its address, for errors.
        :raises NeedsNewerRelease: its format is unknown to this release.
        :raises ValueError: it is not such a receipt, or its files do not share the rows object.
        """
        said = fields_of_json(data)
        batch = structured(cls, said, what)
        files = tuple(
            replace(one, rows_object=batch.digest if one.rows else "", format=batch.format)
            for one in batch.files
        )
        if batch.digest:
            rows_key(batch.digest)
        end = 0
        for one in files:
            if one.outputs or one.rows < 0 or one.first != end:
                raise ValueError(f"the rows of {one.uri} cannot be where it says")
            end += one.rows
        if bool(batch.digest) != bool(end):
            raise ValueError("it has rows without a rows object, or one without rows")
        return replace(batch, files=files)
