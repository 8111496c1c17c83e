"""Files that have to be read again because the rows that were kept of them are lost.

A pack that changes is built again from rows objects. Where one is gone, its files become ordinary rows of the
plan, as long as the source still has what was published and the table spec reads it as before. Otherwise the
pack stays as it is, and the changes of its files wait. Only reads.
Source: docs/design/layout.md#lost-rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pinot_assets.core.text import plural
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.decide.open_packs import readable_lists
from pinot_assets.session.values.outdated import names_of
from pinot_assets.session.values.packs import read_digest
from pinot_assets.session.values.plan import Changes, FileKey, Plan, RowStatus
from pinot_assets.session.values.report import WARNING
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile


@dataclass(frozen=True, slots=True)
class _Lost:
    """One changed pack that lacks kept rows.

    :ivar files: those whose rows are lost, and which are not changed themselves.
    :ivar read: digest of the read recipe with which they were read.
    """

    pack: str
    files: tuple[PublishedFile, ...]
    read: str


@dataclass(frozen=True, slots=True)
class LostRows:
    """What lost rows make of the changes.

    :ivar changes: with the files to read again, and without those of packs that cannot change.
    :ivar stuck: files of such packs.
    :ivar notes: sentences about both, for people.
    """

    changes: Changes
    stuck: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def with_lost_rows(
    context: TriggerContext, changes: Changes, current: Snapshot | None, open_plan: Plan | None
) -> LostRows:
    """Find lost rows that the changes, or the open session, need.

    :param changes: without what a rollback holds.
    """
    if current is None or not current.packs or context.mode is Mode.SWAP:
        return LostRows(changes)
    before, read, stuck, notes = changes, read_digest(context.recipe), set[str](), list[str]()
    rows = open_plan.rows if open_plan is not None else ()
    # A file that the session has read stays in its plan, even if the source has what is published again.
    planned = {row.uri for row in rows if row.status is RowStatus.DONE and row.uri in changes.listed}
    newest = current.ledger
    while lost := _lost(context, changes, planned - stuck, current):  # a file may be in several packs
        again = set[str]()
        for one in lost:
            uris = {file.uri for file in one.files}
            same = (_is_listed(file, changes) and file is newest[file.uri] for file in one.files)
            if one.read == read and stuck.isdisjoint(uris) and all(same):
                again |= uris
            else:
                stuck |= {file.uri for file in current.files if one.pack in file.packs}
        again -= stuck
        changes = _without(changes, stuck, context.mode)
        known = {file.uri for file in changes.rebuilds}
        added = tuple(changes.listed[uri] for uri in sorted(again - known))
        changes = replace(changes, rebuilds=(*changes.rebuilds, *added))
        if added:
            names = names_of([newest[file.uri] for file in added], 3)
            notes.append(
                f"the rows kept of {plural(len(added), 'file')} are lost, which are read again: {names}"
            )
    asked = {*before.deleted, *planned, *(file.uri for file in (*before.rewritten, *before.rebuilds))}
    if waiting := asked & stuck:
        notes.append(
            f"{WARNING} the changes of {plural(len(waiting), 'file')} wait: rows of their packs are lost, "
            "and the source has not what was published, or the table spec reads it otherwise now; "
            "a swap (`consistentPushSwapEnabled`) builds all files again"
        )
    return LostRows(changes, frozenset(stuck), tuple(notes))


def _lost(
    context: TriggerContext, changes: Changes, planned: Collection[str], current: Snapshot
) -> list[_Lost]:
    """Return the changed packs with lost rows of files that are not changed."""
    kept = _kept(changes, planned, context.mode, current)
    if not kept:
        return []
    packs = [pack for pack in current.packs if pack.name in kept]
    lists = readable_lists(context, packs)
    gone = context.staging.missing_rows(
        member.rows_object
        for name, one in lists.items()
        for member in one.members
        if member.file in kept[name]
    )
    found = []
    for pack in packs:
        of_pack, members = kept[pack.name], lists.get(pack.name)
        if members is None:  # then nothing of it is known, and it must stay
            found.append(_Lost(pack.name, tuple(of_pack.values()), ""))
            continue
        lost = (one for one in members.members if one.rows_object in gone)
        if files := [of_pack[key] for key in dict.fromkeys(one.file for one in lost) if key in of_pack]:
            found.append(_Lost(pack.name, tuple(files), members.read))
    return found


def _kept(
    changes: Changes, planned: Collection[str], mode: Mode, current: Snapshot
) -> Mapping[str, Mapping[FileKey, PublishedFile]]:
    """Return the files that stay in changed packs, by pack; as `dirty_packs` of a plan of these changes."""
    uris = {file.uri for file in changes.rebuilds}
    newest = current.ledger
    if mode is Mode.SYNC:
        uris |= {*planned, *changes.deleted, *(file.uri for file in changes.rewritten)}

    def goes(file: PublishedFile) -> bool:
        return file.uri in uris and (mode is Mode.SYNC or file is newest[file.uri])

    dirty = {name for file in current.files if file.packs and goes(file) for name in file.packs}
    kept: dict[str, dict[FileKey, PublishedFile]] = defaultdict(dict)
    for file in current.files:
        for name in () if dirty.isdisjoint(file.packs) or goes(file) else file.packs:
            if name in dirty:
                kept[name][file.uri, file.session] = file
    return kept


def _is_listed(file: PublishedFile, changes: Changes) -> bool:
    """Whether the source has the published version."""
    listed = changes.listed.get(file.uri)
    return listed is not None and listed.fingerprint in (file.fingerprint, changes.touched.get(file.uri))


def _without(changes: Changes, uris: Collection[str], mode: Mode) -> Changes:
    changes = replace(changes, rebuilds=tuple(file for file in changes.rebuilds if file.uri not in uris))
    if mode is not Mode.SYNC:  # a rewritten file changes no pack
        return changes
    return replace(
        changes,
        rewritten=tuple(file for file in changes.rewritten if file.uri not in uris),
        deleted=tuple(uri for uri in changes.deleted if uri not in uris),
    )
