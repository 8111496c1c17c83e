"""Parts of the files sensor's listing, kept in the staging area until the rest is listed, too.

Only the sensor's cursor names the newest, each names the one before, and nothing is published by what they
say: what the sensor starts lists anew. So each has a new name, which two sweeps never share, and a checksum
that finds damage is enough.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from pinot_assets.core.stored_format import Open
from pinot_assets.errors import SourceError
from pinot_assets.source.object_store import ObjectStore

_FOLDER: Final = "listings"

PART_KEY: Final = re.compile(_FOLDER + r"/part-(?:[0-9a-f]{32}|[0-9a-f]{64})\.arrow")
"""Of a part; before, its name was its hash."""


@dataclass(frozen=True, slots=True)
class PartRef(Open):
    """Where a part lies.

    :ivar key: in the staging area.
    :ivar crc32: of what was written there.
    """

    key: str
    crc32: int


class KeptParts:
    """The parts in a staging area.

    :raises SourceError: from every method but `get`: the staging area cannot be asked, or refuses.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put(self, data: bytes) -> PartRef:
        """Keep one."""
        key = f"{_FOLDER}/part-{uuid4().hex}.arrow"
        self._store.put_if_absent(key, data)
        return PartRef(key, zlib.crc32(data))

    def get(self, ref: PartRef) -> bytes | None:
        """Read one back; None where it has gone, cannot be read or is not what was written."""
        try:
            data = self._store.read(ref.key)
        except SourceError:
            return None
        return data if zlib.crc32(data) == ref.crc32 else None

    def drop(self, refs: Iterable[PartRef]) -> None:
        """Those of a listing that has come to its end."""
        for ref in refs:
            self._store.delete(ref.key)

    def drop_old(self, before_ms: int) -> None:
        """Those that no cursor names any more, by their age."""
        for info in [*self._store.list(_FOLDER)]:
            if PART_KEY.fullmatch(info.key) and info.fingerprint.mtime_us < before_ms * 1000:
                self._store.delete(info.key)
