"""The listing against the ledger: new, rewritten or deleted, with content deciding (edge cases E2, E3).

And a listing that takes several ticks of the files sensor. What a tick has listed is kept in the staging area
as an immutable part that names the one before; the sensor's cursor holds a bookmark: the newest part and its
checksum, and the key to go on behind. So daemons may restart, move and time out: a tick whose cursor was not
stored is repeated. Only a listing that has come to its end is an inventory (I12). What changes behind the
bookmark is found by the next sweep.

Only the cursor names the newest part, and nothing is published by what they say: what the sensor starts lists
anew. So each has a new name, which two sweeps never share, and a checksum that finds damage is enough.
"""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Final
from uuid import uuid4

from pinot_assets.core.stored_format import Open, plain, structured
from pinot_assets.core.text import plural
from pinot_assets.core.untrusted import listed as list_of
from pinot_assets.core.untrusted import reading
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import ListingFailed, SourceError
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.detect.observe import choice_of, judge_listing, list_source
from pinot_assets.session.values.plan import Changes
from pinot_assets.session.values.report import Progress
from pinot_assets.session.values.state import Mode, Session
from pinot_assets.snapshot.manifest import Snapshot, hashes_of, sha256_hex, versions_of
from pinot_assets.source import Inventory, Readiness, SourceFile, diff
from pinot_assets.source.allowed_places import require_all_data
from pinot_assets.source.diff import differing
from pinot_assets.source.file_table import FileTable, columns_of, files_of
from pinot_assets.source.listing import ListingPart, inventory_of, list_part, part_from_arrow, part_to_arrow
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.table_spec import TableSpec

OFTEN = 100_000
"""Objects between two signs that a listing goes on."""


def list_ready(context: TriggerContext, session: Session | None, current: Snapshot | None) -> Readiness:
    """List the input directory and judge what of it is there.

    :param session: the open one, whose files are known too.
    :raises ListingFailed: the listing did not complete, or an empty one is not to be believed.
    """
    inventory = list_source(context.spec, context.clients.source, _telling(context.progress))
    if not inventory.files and current and current.ledger and context.mode is not Mode.APPEND:
        _refuse_slip(context, current)
        _refuse_hasty(context)
    plan = context.staging.plan(session.plan) if session else None
    return judge_listing(context.spec, inventory, current, context.hold(), plan)


def _telling(progress: Progress) -> Callable[[int], None]:
    """Says now and then how far a long listing is."""
    said = 0

    def tell(listed: int) -> None:
        nonlocal said
        if listed // OFTEN > said // OFTEN:
            said = listed
            progress.note(f"listed {plural(listed, 'object')} so far")

    return tell


def changes_of(source: ObjectStore, inventory: Inventory, current: Snapshot | None) -> Changes:
    """Compare a listing with the ledger.

    :param inventory: what counts of it.
    :raises SourceError: a file's content had to be looked at and could not be.
    """
    files = current.files if current else ()
    hashes = cache(lambda: hashes_of(files))  # of a million files: read only where content decides

    def ask_if_same_content(file: SourceFile) -> bool:
        return source.sha256(source.key_of(file.uri)) == hashes()[file.uri]

    listed, published = differing(columns_of(inventory.files), versions_of(files))
    difference = diff(
        {file.uri: file for file in files_of(listed)},
        {file.uri: file.fingerprint for file in files_of(published)},
        ask_if_same_content,
    )
    return Changes(
        new=tuple(difference.new),
        rewritten=tuple(difference.rewritten),
        deleted=tuple(difference.deleted),
        touched={f.uri: f.fingerprint for f in difference.touched},
        listed=inventory.files,
        listing_digest=inventory.digest,
    )


def _refuse_hasty(context: TriggerContext) -> None:
    """An empty listing that is not to be believed: nothing asks for it, or a second look shows files."""
    where = context.clients.source.uri
    if context.spec.ingestion.empty_source_action == "REFUSE":
        raise ListingFailed(
            f"no file of {where} matches, but files of it are published",
            why="emptySourceAction is REFUSE",
            hint="if the table really is to become empty, set emptySourceAction: APPLY",
        )
    if not context.clients.source.exists_root():
        raise ListingFailed(
            f"{where} does not exist, but files of it are published",
            why="a missing directory is not an empty one",
            hint="mount it, or create it empty if the table really is to become empty",
        )
    wait = context.clients.waits.second_look
    context.note(f"{where} lists no file; looking again in {wait:.0f} s before anything is removed")
    context.clients.sleep(wait)
    second = list_source(context.spec, context.clients.source)
    if second.files:
        raise ListingFailed(
            f"{where} listed no file, then {len(second.files)}",
            why="the two listings disagree",
            hint="nothing was changed; the next trigger lists again",
        )


def _refuse_slip(context: TriggerContext, current: Snapshot) -> None:
    """Patterns that match nothing of a full directory, or another directory without a file, and that nothing
    was published by: likely a slip of the pen, so that only a written APPLY empties the table (E33).
    """
    ingestion = context.spec.ingestion
    if (
        "empty_source_action" in ingestion.model_fields_set
        or current.config_fingerprint == context.fingerprint
    ):
        return
    source = context.clients.source
    published = min(current.ledger)
    if (first := next(iter(source.list()), None)) is not None:
        why = f"there are files, {first.uri} for one, and files of it are published"
    elif not published.startswith(source.uri_of("")):
        why = f"published files lie elsewhere, {published} for one"
    else:
        return
    raise ListingFailed(
        f"no file of {source.uri} matches since the table spec was changed",
        why=why,
        hint="check inputDirURI and the patterns; to empty the table, write emptySourceAction: APPLY",
    )


_LOOKS: Final = 16
"""Requests at a time: one for each file that is gone."""


def with_folders(
    source: ObjectStore, changes: Changes, current: Snapshot | None, but: Collection[str] = ()
) -> Changes:
    """The changes; a file that became a folder is rewritten, not deleted: its build fails, its rows stay.

    :param current: the ledger; its version of the file is the planned one.
    :param but: files whose deletion is held back anyway.
    :raises SourceError: the source does not say.
    """
    gone = [uri for uri in changes.deleted if uri not in but]
    if current is None or not gone:
        return changes
    is_folder = in_threads(lambda uri: _ask_if_folder(source, uri), gone, _LOOKS, "folders")
    folders = {uri for uri, yes in zip(gone, is_folder, strict=True) if yes}
    if not folders:
        return changes
    files = {uri: SourceFile(uri, current.ledger[uri].fingerprint) for uri in sorted(folders)}
    return replace(
        changes,
        rewritten=(*changes.rewritten, *files.values()),
        deleted=tuple(uri for uri in changes.deleted if uri not in folders),
        listed={**changes.listed, **files},
    )


def _ask_if_folder(source: ObjectStore, uri: str) -> bool:
    try:
        key = source.key_of(uri)
    except SourceError:
        return False  # of another source, which the table spec named before
    return source.ask_if_folder(key)


# --- a listing that takes several ticks of the files sensor ------------------------------------------

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
    if (earlier := _up_to(mark, kept)) is None:
        # Cleared away, or another sensor of this table was done with them.
        return resume_listing(spec, source, kept, None, is_late)
    before, refs, first_hints = earlier
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
                hints = list_of(beside["hints"])
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
