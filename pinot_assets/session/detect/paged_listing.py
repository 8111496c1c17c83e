"""A listing that takes several ticks of the files sensor.

What a tick has listed is kept in the staging area as an immutable part that names the one before; the
sensor's cursor holds a bookmark: the newest part and its checksum, and the key to go on behind. So daemons
may restart, move and time out: a tick whose cursor was not stored is repeated. Only a listing that has come
to its end is an inventory (I12). What changes behind the bookmark is found by the next sweep.

Only the cursor names the newest part, and nothing is published by what they say: what the sensor starts lists
anew. So each has a new name, which two sweeps never share, and a checksum that finds damage is enough.
"""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Final
from uuid import uuid4

from pinot_assets.core.stored_format import Open, plain, structured
from pinot_assets.core.text import plural
from pinot_assets.core.untrusted import listed, reading
from pinot_assets.errors import SourceError
from pinot_assets.session.detect.observe import choice_of
from pinot_assets.snapshot.manifest import sha256_hex
from pinot_assets.source import Inventory
from pinot_assets.source.file_table import FileTable
from pinot_assets.source.listing import inventory_of, list_part
from pinot_assets.source.listing_part import ListingPart, part_from_arrow, part_to_arrow
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.policy import require_all_data
from pinot_assets.table_spec import TableSpec

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


KEPT_S: Final = 24 * 3600
"""After which a part that no sweep took away is taken for one that nobody will."""


@dataclass(frozen=True, slots=True)
class ListingCursor(Open):
    """How far a listing has come.

    :ivar of: what is listed, as `listing_of` tells it.
    :ivar after: the key to go on behind.
    :ivar objects: how many were listed, chosen or not.
    :ivar part: key of the newest part in the staging area.
    :ivar crc32: of that part.
    """

    of: str
    after: str
    objects: int
    part: str
    crc32: int

    @classmethod
    def read(cls, value: object) -> ListingCursor | None:
        """One of plain values; None for what is no bookmark."""
        try:
            return structured(cls, value, "a bookmark")
        except ValueError:
            return None

    @property
    def ref(self) -> PartRef:
        """The newest part."""
        return PartRef(self.part, self.crc32)

    def __str__(self) -> str:
        return f"listed {plural(self.objects, 'object')} so far, up to {self.after}; goes on at the next tick"


@dataclass(frozen=True, slots=True)
class CompleteListing:
    """A listing that has come to its end.

    :ivar parts: what was kept of it, to be dropped when it is made use of.
    :ivar hints: what was given to its first part.
    """

    inventory: Inventory
    parts: tuple[PartRef, ...] = ()
    hints: tuple[str, ...] = ()


def listing_of(spec: TableSpec) -> str:
    """Twelve hex digits of what is listed: another directory or pattern makes another listing."""
    return sha256_hex(json.dumps([spec.input_uri(), asdict(choice_of(spec))]).encode())[:12]


def resume_listing(
    spec: TableSpec,
    source: ObjectStore,
    kept: KeptParts,
    mark: ListingCursor | None,
    is_late: Callable[[], bool],
    hints: tuple[str, ...] = (),
) -> ListingCursor | CompleteListing:
    """List on from a bookmark, to the end or as far as there is time.

    A listing that ends before it gets late leaves the staging area alone. One whose parts have gone begins
    anew.

    :param mark: None to begin; one of another listing counts as none.
    :param hints: kept with a listing that begins here, and given back at its end.
    :raises ListingFailed: this stretch broke off; the bookmark still stands.
    :raises SourceError: the staging area does not take or give a part; or a file is no data.
    """
    of = listing_of(spec)
    if mark is not None and mark.of != of:
        mark = None
    began_ms = time.time_ns() // 1_000_000
    pages = source.pages(mark.after if mark else "")
    part = list_part(source.uri, pages, choice_of(spec), is_late)
    require_all_data(FileTable([part.columns]), spec.policy)
    if part.last:
        beside = {"before": plain(mark.ref) if mark else None, "hints": hints}
        ref = kept.put(part_to_arrow(part, beside))
        if mark is None:
            kept.drop_old(began_ms - KEPT_S * 1000)
        objects = part.columns.num_rows + part.skipped + part.hidden + (mark.objects if mark else 0)
        return ListingCursor(of, part.last, objects, ref.key, ref.crc32)
    if mark is None:
        return CompleteListing(inventory_of([part], began_ms), (), hints)
    if (
        found := _up_to(mark, kept)
    ) is None:  # cleared away, or another sensor of this table was done with them
        return resume_listing(spec, source, kept, None, is_late)
    before, refs, first_hints = found
    return CompleteListing(inventory_of([*before, part], began_ms), refs, first_hints)


def _up_to(
    mark: ListingCursor, kept: KeptParts
) -> tuple[list[ListingPart], tuple[PartRef, ...], tuple[str, ...]] | None:
    """All parts up to a bookmark, the first one first; where they lie; the hints of the first.

    None where one of them has gone.
    """
    parts: list[ListingPart] = []
    refs: list[PartRef] = []
    hints: tuple[str, ...] = ()
    ref: PartRef | None = mark.ref
    while ref is not None:
        if (data := kept.get(ref)) is None:
            return None
        try:
            with reading(ref.key, SourceError):
                part, beside = part_from_arrow(data, ref.key)
                hints = listed(beside["hints"])
                name = beside["before"]
                before = structured(PartRef, name, "the name of a listing's part") if name else None
        except SourceError:
            return None
        parts.insert(0, part)
        refs.append(ref)
        if before in refs:  # else it would go round for ever
            return None
        ref = before
    return parts, tuple(refs), hints
