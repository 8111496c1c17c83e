"""Compare the listing with the ledger: new, rewritten or deleted files, by content (edge cases E2, E3).

Also list a large source over several ticks of the files sensor. Each tick stores what it listed in the
staging area, as an immutable part that names the part before. The sensor's cursor holds a bookmark: the
newest part, its checksum, and the key after which to continue. So daemons may restart, move and time out: a
tick whose cursor was not stored is repeated. Only a complete listing is an inventory (I12). The next one
finds what changed before the bookmark.

Only the cursor names the newest part. No part is ever published, since the run that the sensor starts lists
again. So a new random name per part, never shared by two listings, and a checksum against damage are enough.
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
from pinot_assets.session.values.progress import Progress, RunPhase
from pinot_assets.session.values.state import Mode, Session
from pinot_assets.snapshot.manifest import Snapshot, sha256_hex
from pinot_assets.snapshot.published_files import hashes_of, versions_of
from pinot_assets.source import Inventory, Readiness, SourceFile, diff
from pinot_assets.source.allowed_places import require_all_data
from pinot_assets.source.diff import differing
from pinot_assets.source.file_table import FileTable, columns_of, files_of
from pinot_assets.source.listing import ListingPart, inventory_of, list_part, part_from_arrow, part_to_arrow
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.table_spec import TableSpec

OFTEN = 100_000
"""Number of objects between two notes on the progress of a listing."""


def list_ready(context: TriggerContext, session: Session | None, current: Snapshot | None) -> Readiness:
    """List the input directory and judge which files are ready.

    :param session: the open session, whose files count as known, too.
    :raises ListingFailed: the listing did not complete, or it is empty and that is not credible.
    """
    context.progress.begin(RunPhase.LIST)
    inventory = list_source(context.spec, context.clients.source, _telling(context.progress))
    if not inventory.files and current and current.ledger and context.mode is not Mode.APPEND:
        _refuse_slip(context, current)
        _refuse_hasty(context)
    plan = context.staging.plan(session.plan) if session else None
    return judge_listing(context.spec, inventory, current, context.hold(), plan)


def _telling(progress: Progress) -> Callable[[int], None]:
    """Return a callback that reports the progress of a listing, with a note every `OFTEN` objects."""
    said = 0

    def tell(listed: int) -> None:
        nonlocal said
        progress.advance(listed)
        if listed // OFTEN > said // OFTEN:
            said = listed
            progress.note(f"listed {plural(listed, 'object')} so far")

    return tell


def changes_of(source: ObjectStore, inventory: Inventory, current: Snapshot | None) -> Changes:
    """Compare a listing with the ledger.

    :param inventory: the listed files that count (the ready ones).
    :raises SourceError: the content of a file had to be read and could not be.
    """
    files = current.files if current else ()
    hashes = cache(lambda: hashes_of(files))  # of a million files: read only if content must be compared

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
    """Refuse an empty listing if the spec says so, the directory is missing, or a second one has files."""
    where = context.clients.source.uri
    if context.spec.ingestion.empty_source_action == "REFUSE":
        raise ListingFailed(
            f"no file of {where} matches, but files of it are published",
            why="emptySourceAction is REFUSE",
            hint="if the table should become empty, set emptySourceAction: APPLY",
        )
    if not context.clients.source.exists_root():
        raise ListingFailed(
            f"{where} does not exist, but files of it are published",
            why="a missing directory is not treated as an empty one",
            hint="mount it, or create it empty if the table should become empty",
        )
    wait = context.clients.waits.second_look
    context.note(f"{where} has no file; listing it again in {wait:.0f} s before anything is removed")
    context.clients.sleep(wait)
    second = list_source(context.spec, context.clients.source)
    if second.files:
        raise ListingFailed(
            f"{where} had no file, then {len(second.files):,}",
            why="the two listings differ",
            hint="nothing was changed; the next trigger lists again",
        )


def _refuse_slip(context: TriggerContext, current: Snapshot) -> None:
    """Refuse patterns that match no file of a full directory, or a new directory without a file, if the table
    spec changed since the last publication. It is likely a mistake; only a written APPLY empties it (E33).
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
        why = f"the source has files, such as {first.uri}, and files of it are published"
    elif not published.startswith(source.uri_of("")):
        why = f"published files are at another place, such as {published}"
    else:
        return
    raise ListingFailed(
        f"no file of {source.uri} matches since the table spec was changed",
        why=why,
        hint="check inputDirURI and the patterns; to empty the table, write emptySourceAction: APPLY",
    )


_LOOKS: Final = 16
"""Requests at the same time; each file that is gone needs one."""


def with_folders(
    source: ObjectStore, changes: Changes, current: Snapshot | None, but: Collection[str] = ()
) -> Changes:
    """Return the changes with files that became folders rewritten, not deleted: their build fails, rows stay.

    :param current: the ledger; its version of such a file becomes the planned one.
    :param but: files whose deletion a rollback holds back anyway.
    :raises SourceError: the source does not answer.
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
        return False  # a file of the source that the table spec named before
    return source.ask_if_folder(key)


# --- a listing that takes several ticks of the files sensor ------------------------------------------

_FOLDER: Final = "listings"

PART_KEY: Final = re.compile(_FOLDER + r"/part-(?:[0-9a-f]{32}|[0-9a-f]{64})\.arrow")
"""Key of a part; in older releases its name was a SHA-256 hash."""


@dataclass(frozen=True, slots=True)
class PartRef(Open):
    """Names a stored part of a listing.

    :ivar key: in the staging area.
    :ivar crc32: of the stored bytes.
    """

    key: str
    crc32: int


class KeptParts:
    """The stored parts of listings in a staging area.

    :raises SourceError: from every method but `get`: the staging area does not answer, or refuses.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put(self, data: bytes) -> PartRef:
        """Store a part under a new name."""
        key = f"{_FOLDER}/part-{uuid4().hex}.arrow"
        self._store.put_if_absent(key, data)
        return PartRef(key, zlib.crc32(data))

    def get(self, ref: PartRef) -> bytes | None:
        """Read a part; None if it is gone, cannot be read or is damaged."""
        try:
            data = self._store.read(ref.key)
        except SourceError:
            return None
        return data if zlib.crc32(data) == ref.crc32 else None

    def drop(self, refs: Iterable[PartRef]) -> None:
        """Delete the parts of a listing that is complete."""
        for ref in refs:
            self._store.delete(ref.key)

    def drop_old(self, before_ms: int) -> None:
        """Delete parts older than `before_ms` (epoch milliseconds): no cursor names them any more."""
        for info in [*self._store.list(_FOLDER)]:
            if PART_KEY.fullmatch(info.key) and info.fingerprint.mtime_us < before_ms * 1000:
                self._store.delete(info.key)


KEPT_S: Final = 24 * 3600
"""Age in seconds from which a part counts as left over: the listing that wrote it will not delete it."""


@dataclass(frozen=True, slots=True)
class ListingCursor(Open):
    """The bookmark of a listing that is not complete yet.

    :ivar of: digest of what is listed, from `listing_of`.
    :ivar after: the key after which to continue.
    :ivar objects: number of objects listed so far, matching or not.
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
        """Parse a bookmark from plain values; None if they are not one."""
        try:
            return structured(cls, value, "a bookmark")
        except ValueError:
            return None

    @property
    def ref(self) -> PartRef:
        """The newest part."""
        return PartRef(self.part, self.crc32)

    def __str__(self) -> str:
        return f"listed {plural(self.objects, 'object')} so far, up to {self.after}; the next tick continues"


@dataclass(frozen=True, slots=True)
class CompleteListing:
    """A complete listing.

    :ivar parts: its stored parts, to be dropped once the listing was used.
    :ivar hints: the hints stored with its first part.
    """

    inventory: Inventory
    parts: tuple[PartRef, ...] = ()
    hints: tuple[str, ...] = ()


def listing_of(spec: TableSpec) -> str:
    """Return twelve hex digits for what is listed: another directory or pattern gives other digits."""
    return sha256_hex(json.dumps([spec.input_uri(), asdict(choice_of(spec))]).encode())[:12]


def resume_listing(
    spec: TableSpec,
    source: ObjectStore,
    kept: KeptParts,
    mark: ListingCursor | None,
    is_late: Callable[[], bool],
    hints: tuple[str, ...] = (),
) -> ListingCursor | CompleteListing:
    """Continue a listing from a bookmark, to its end or until `is_late` returns true.

    A listing that ends in one call stores nothing in the staging area. A listing whose parts are gone starts
    again.

    :param mark: None to begin; a bookmark of another listing counts as None.
    :param hints: stored with a listing that begins here, and returned at its end.
    :raises ListingFailed: listing failed in this call; the bookmark stays valid.
    :raises SourceError: the staging area does not store or return a part; or a file cannot be data.
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
        # The parts were cleared up, or another sensor of this table used and deleted them.
        return resume_listing(spec, source, kept, None, is_late)
    before, refs, first_hints = earlier
    return CompleteListing(inventory_of([*before, part], began_ms), refs, first_hints)


def _up_to(
    mark: ListingCursor, kept: KeptParts
) -> tuple[list[ListingPart], tuple[PartRef, ...], tuple[str, ...]] | None:
    """Return all parts up to a bookmark, oldest first; their names, newest first; the first one's hints.

    None if one of them is gone.
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
                hints = list_of(beside["hints"], str)
                name = beside["before"]
                before = structured(PartRef, name, "the name of a listing's part") if name else None
        except SourceError:
            return None
        parts.insert(0, part)
        refs.append(ref)
        if before in refs:  # parts that name each other would loop for ever
            return None
        ref = before
    return parts, tuple(refs), hints
