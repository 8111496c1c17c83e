"""Which published files a run builds again because another revision of the table spec built them.

They become ordinary rows of its plan. The published version of such a file is in the source, so that nothing
but the recipe differs. Only reads. Source: docs/design/session.md#rebuilds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from pinot_assets.core.stored_format import FIRST
from pinot_assets.core.text import plural, plural_are
from pinot_assets.errors import RebuildRefused
from pinot_assets.pinot import versions
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.decide.open_packs import require_compactable, small_alone
from pinot_assets.session.values.hold import Hold, without_held
from pinot_assets.session.values.outdated import (
    NO_NEED,
    CompactRequest,
    RebuildNeed,
    RebuildRequest,
    names_of,
    need_of,
    outdated,
)
from pinot_assets.session.values.plan import Changes, Plan, RowStatus
from pinot_assets.session.values.state import Mode, PushKind
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile, files_among
from pinot_assets.snapshot.receipt import SourceFile
from pinot_assets.snapshot.recipes import revision_of
from pinot_assets.source.file_patterns import compile_pattern, path_of_uri
from pinot_assets.table_spec.changes.spec_changes import needs_one_switch


@dataclass(frozen=True, slots=True)
class Rebuilds:
    """What is outdated, and what of it the run builds again.

    :ivar chosen: as listed, sorted by URI.
    """

    need: RebuildNeed = NO_NEED
    chosen: tuple[SourceFile, ...] = ()


def find_rebuilds(
    context: TriggerContext,
    changes: Changes,
    hold: Hold,
    current: Snapshot | None,
    plan: Plan | None,
) -> Rebuilds:
    """Return what is outdated and what a run builds again.

    :param changes: all, also what the hold of a rollback keeps out.
    :param plan: the open session's newest plan, None without one.
    :raises RebuildRefused: the run is asked for a rebuild, and the table cannot have one; or segments that no
        query can combine would be visible together.
    """
    request = context.request
    if request is not None and current is None:
        raise RebuildRefused(
            f"{context.table} has never been published",
            hint=f"`pinot-assets run {context.table}` publishes its files",
        )
    if isinstance(request, CompactRequest):
        require_compactable(context, hold)
    elif request is not None:
        _require_possible(context, hold)
    if current is None or context.mode is Mode.SWAP:
        return Rebuilds()
    free = without_held(changes, hold)
    other = {file.uri for file in (*changes.new, *changes.rewritten)}

    def is_same(uri: str) -> bool:
        return uri in changes.listed and uri not in other

    replaced = set() if context.mode is Mode.APPEND else {*free.deleted, *(f.uri for f in free.rewritten)}
    found = outdated(context.spec, current)
    need = _in_pinot(context, current, need_of(found, current, is_same, replaced))
    uris = _begun(plan, changes, current) if plan is not None else set()
    if isinstance(request, CompactRequest):
        uris |= small_alone(context, current, {uri for uri in current.ledger if is_same(uri)})
    elif request is not None and request.files:
        # If none of them is outdated, the open session is not continued in their place.
        uris = uris | asked if (asked := _asked_for(context, request, current)) else set()
    elif request is not None or (context.spec.ingestion.on_spec_change == "rebuild" and not hold.rebuilds):
        uris |= {file.uri for file in need.possible.files}
    chosen = {uri for uri in uris if is_same(uri)}
    _refuse_packed(context, current, chosen)
    if chosen or free.new or free.rewritten:
        _require_one_switch(context, need, chosen)
    return Rebuilds(need, tuple(changes.listed[uri] for uri in sorted(chosen)))


def file_pattern(text: str) -> str:
    """Return the pattern that a person gave for files, with its syntax: `a/*.csv` means `glob:**/a/*.csv`."""
    return text if text.lower().startswith(("glob:", "regex:")) else f"glob:**/{text.removeprefix('/')}"


def _require_possible(context: TriggerContext, hold: Hold) -> None:
    table = context.table
    if context.mode is Mode.SWAP:
        raise RebuildRefused(
            f"{table} is a swap table, which has no rebuild",
            why="each of its sessions builds all files, and begins one as soon as the table spec has changed",
            hint=f"`pinot-assets run {table}`",
        )
    if versions.replaces_for_good(context.read_pinot_version(), context.read_table_config()):
        raise RebuildRefused(
            f"files of {table} cannot be built again",
            why="Pinot deletes at once what is replaced in an APPEND table, so there would be no way back",
            hint="write segmentIngestionType: REFRESH in batchIngestionConfig, and apply it",
        )
    if context.lease.pointer.format == FIRST:
        raise RebuildRefused(
            f"files of {table} cannot be built again",
            why="its stored state is of format 1, which cannot say what built a file",
            hint=f"`pinot-assets state upgrade {table}`",
        )
    if hold.rebuilds:
        raise RebuildRefused(
            f"files of {table} are not built again",
            why="a rollback took a rebuild back, and holds it",
            hint=f"`pinot-assets resume {table}` ends the hold",
        )


def _refuse_packed(context: TriggerContext, current: Snapshot, chosen: Collection[str]) -> None:
    """Refuse a plain push of what would show rows twice: it replaces no pack."""
    if context.push is not PushKind.PLAIN or not current.packs:
        return
    if packed := [file for file in files_among(current.files, chosen) if file.packs]:
        raise RebuildRefused(
            f"{plural(len(packed), 'file')} of {context.table} cannot be built again by a plain push",
            why=f"their rows are in packs with those of other files, like {names_of(packed, 3)}",
            hint="set consistentPushEnabled, or name other files with --files",
        )


def _require_one_switch(context: TriggerContext, need: RebuildNeed, chosen: Collection[str]) -> None:
    """Require that segments which one query cannot combine are never visible together.

    :param chosen: files that the run builds again, beside new and rewritten ones.
    """
    whole = [
        one for part in (need.possible, need.gone) for one in part.older if needs_one_switch(one.changes)
    ]
    files = [file for one in whole for file in one.files if file.outputs or file.packs]
    if not files:
        return
    gone = {id(file) for file in need.gone.files}
    table, names = (
        context.table,
        ", ".join(dict.fromkeys(c.column for o in whole for c in o.changes if c.column)),
    )
    what = f"{table} publishes nothing: the type of {names} was changed"
    combine = "one query cannot combine segments of before and of now on a server"
    if lacking := [file for file in files if id(file) in gone]:
        raise RebuildRefused(
            what,
            why=f"{combine}, and the source lacks {names_of(lacking, 3)}",
            hint="put these files back into the source, or undo the change of the table spec",
        )
    if context.push is PushKind.PLAIN:
        raise RebuildRefused(
            what,
            why=f"{combine}, and a plain push shows file after file",
            hint="set consistentPushEnabled, or undo the change of the table spec",
        )
    if any(file.uri not in chosen for file in files):
        raise RebuildRefused(
            what,
            why=f"{combine}, so all {plural(len(files), 'file')} of before have to come in one switch",
            hint=f"`pinot-assets rebuild {table}` builds them again, with the changed files; or undo the "
            "change of the table spec",
        )


def _asked_for(context: TriggerContext, request: RebuildRequest, current: Snapshot) -> set[str]:
    """Return the files that the request names and that another revision built, or an unknown one."""
    pattern, published = compile_pattern(file_pattern(request.files)), current.ledger
    are_named = pattern.those_of([path_of_uri(uri) for uri in published])
    named = {uri for uri, is_named in zip(published, are_named, strict=True) if is_named}
    if published and not named:
        raise RebuildRefused(
            f"no published file of {context.table} matches {request.files!r}",
            why=f"{plural_are(len(published), 'file')} published, like {path_of_uri(next(iter(published)))}",
            hint="a pattern may begin at any folder, and * stays in one; `pinot-assets rebuild "
            f"{context.table} --dry-run` lists what would be built again",
        )
    now, is_there = revision_of(current.recipes, context.recipe), _ask_pinot(context, current)
    return {uri for uri in named if published[uri].revision != now and is_there(published[uri])}


def _begun(plan: Plan, changes: Changes, current: Snapshot) -> set[str]:
    """Return the files that the open session began to build again: it planned their published version."""
    planned = {row.uri: row.planned for row in plan.rows if row.status is not RowStatus.GONE}
    newest = {f.uri: f.fingerprint for f in files_among(current.files, planned.keys())}
    return {u for u, version in newest.items() if planned[u] in (version, changes.touched.get(u))}


def _in_pinot(context: TriggerContext, current: Snapshot, need: RebuildNeed) -> RebuildNeed:
    """Return what Pinot still has: its retention may have expired the segments of a file."""
    if not need.is_any:
        return need
    is_there = _ask_pinot(context, current)
    of_pinot = (
        found.only([file for file in found.files if is_there(file)]) for found in (need.possible, need.gone)
    )
    return RebuildNeed(*of_pinot)


def _ask_pinot(context: TriggerContext, current: Snapshot) -> Callable[[PublishedFile], bool]:
    """Return whether a file, or its pack, has a visible segment, or had none when it was built."""
    visible = context.pinot.visible_segments(context.table)
    there = {pack.name for pack in current.packs if any(o.segment in visible for o in pack.outputs)}

    def is_there(file: PublishedFile) -> bool:
        if file.packs:
            return not there.isdisjoint(file.packs)
        return not file.outputs or any(o.segment in visible for o in file.outputs)

    return is_there
