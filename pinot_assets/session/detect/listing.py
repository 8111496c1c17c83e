"""The listing against the ledger: new, rewritten or deleted, with content deciding (edge cases E2, E3)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache
from typing import Final

from pinot_assets.core.text import plural
from pinot_assets.core.threads import in_threads
from pinot_assets.errors import ListingFailed, SourceError
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.detect.observe import judge_listing, list_source
from pinot_assets.session.values.plan import Changes
from pinot_assets.session.values.report import Progress
from pinot_assets.session.values.state import Mode, Session
from pinot_assets.snapshot.manifest import Snapshot, hashes_of, versions_of
from pinot_assets.source import Inventory, ObjectStore, Readiness, SourceFile, diff
from pinot_assets.source.diff import differing
from pinot_assets.source.file_table import columns_of, files_of

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

    def has_same_content(file: SourceFile) -> bool:
        return source.sha256(source.key_of(file.uri)) == hashes()[file.uri]

    listed, published = differing(columns_of(inventory.files), versions_of(files))
    found = diff(
        {file.uri: file for file in files_of(listed)},
        {file.uri: file.fingerprint for file in files_of(published)},
        has_same_content,
    )
    return Changes(
        new=tuple(found.new),
        rewritten=tuple(found.rewritten),
        deleted=tuple(found.deleted),
        touched={f.uri: f.fingerprint for f in found.touched},
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
    """The changes, where such a file is rewritten and not deleted: building it fails, and its rows stay.

    :param current: the ledger; its version of the file is the planned one.
    :param but: files whose deletion is held back anyway.
    :raises SourceError: the source does not say.
    """
    gone = [uri for uri in changes.deleted if uri not in but]
    if current is None or not gone:
        return changes
    is_folder = in_threads(lambda uri: _is_folder(source, uri), gone, _LOOKS, "folders")
    folders = {uri for uri, found in zip(gone, is_folder, strict=True) if found}
    if not folders:
        return changes
    files = {uri: SourceFile(uri, current.ledger[uri].fingerprint) for uri in sorted(folders)}
    return replace(
        changes,
        rewritten=(*changes.rewritten, *files.values()),
        deleted=tuple(uri for uri in changes.deleted if uri not in folders),
        listed={**changes.listed, **files},
    )


def _is_folder(source: ObjectStore, uri: str) -> bool:
    try:
        key = source.key_of(uri)
    except SourceError:
        return False  # of another source, which the table spec named before
    return source.is_folder(key)
