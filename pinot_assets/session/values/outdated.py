"""Published files that an older revision of the table spec built, and that only a rebuild brings up to date.

Decided from values alone: what the spec says now, and the recipes of the ledger. A file without a recipe (a
release before recipes built it) is never outdated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import counted, duration, plural, size
from pinot_assets.session.values.hold import Hold
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile, revisions_of
from pinot_assets.snapshot.recipes import StoredRecipe, revision_of
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.changes.recipe import Recipe, recipe_of
from pinot_assets.table_spec.changes.spec_changes import SpecChange, Verdict, spec_changes

SETTINGS_SHOWN = 3
"""Changed settings that a sentence names."""


@dataclass(frozen=True, slots=True)
class RebuildRequest:
    """What a person wants to build again.

    :ivar files: pattern of files, as `file_pattern` takes it: all of them that another revision built, or an
        unknown one. "": those that need it.
    """

    files: str = ""


@dataclass(frozen=True, slots=True)
class CompactRequest:
    """A person wants fewer, larger segments: packs that are small are merged, and published small files that
    have segments of their own are read again into packs."""


Request = RebuildRequest | CompactRequest
"""What a run is asked to do beside publishing what changed in the source."""


def stored_recipe(spec: TableSpec, writer: str = "") -> StoredRecipe:
    """Return what the table spec builds files with, without a revision.

    :param writer: version of the segment writer; of no meaning for a comparison.
    """
    recipe = recipe_of(spec)
    return StoredRecipe(
        0, recipe.read, recipe.write, writer, spec.ingestion.assured_target, spec.schema_json, spec.table_json
    )


@dataclass(frozen=True, slots=True)
class OlderFiles:
    """Files of one older revision.

    :ivar changes: what was changed since, as far as it needs a rebuild.
    :ivar changes_rows: whether another file of the same content could give other rows or values now.
    """

    revision: int
    changes: tuple[SpecChange, ...]
    changes_rows: bool
    files: tuple[PublishedFile, ...]


@dataclass(frozen=True, slots=True)
class Outdated:
    """What a rebuild would bring up to date.

    :ivar now: the revision of the table spec.
    :ivar segments: all segments of the table; 0 where no file is outdated.
    :ivar older: by revision, the oldest first; none is without a file.
    """

    now: int = 0
    segments: int = 0
    older: tuple[OlderFiles, ...] = ()

    @property
    def files(self) -> tuple[PublishedFile, ...]:
        """All outdated versions of files."""
        return tuple(chain.from_iterable(one.files for one in self.older))

    @property
    def effort(self) -> str:
        """What a rebuild reads and takes, `3 files of 1.2 MB with 4,000 rows; about 12 s of CPU`."""
        files = self.files
        amount = size(sum(file.fingerprint.size for file in files))
        rows = plural(sum(file.rows for file in files), "row")
        cpu = duration(sum(file.seconds for file in files))
        return f"{plural(len(files), 'file')} of {amount} with {rows}; about {cpu} of CPU, as last time"

    def only(self, files: Collection[PublishedFile]) -> Outdated:
        """Return the same with only these of its files."""
        chosen = {id(file) for file in files}
        older = (
            OlderFiles(o.revision, o.changes, o.changes_rows, tuple(f for f in o.files if id(f) in chosen))
            for o in self.older
        )
        return Outdated(self.now, self.segments, tuple(one for one in older if one.files))

    def __str__(self) -> str:
        """`12 of 40 segments were built under revision 3 (now 5): rows changed by filter`."""
        built = sum(len(file.outputs) for file in self.files)
        what = f"{built:,} of {plural(self.segments, 'segment')} were"
        if any(file.packs for file in self.files):
            what = counted(len(self.files), "file was", "files were")
        elif not built:
            what = counted(len(self.files), "file without rows was", "files without rows were")
        return f"{what} built under {_revisions(self.older)} (now {self.now}): {self.cause}"

    @property
    def cause(self) -> str:
        """The settings that were changed since, `rows changed by filter, dataType of price`."""
        rows = any(one.changes_rows for one in self.older)
        names = list(dict.fromkeys(setting_name(c) for one in self.older for c in one.changes))
        more = f" and {len(names) - SETTINGS_SHOWN:,} more" if len(names) > SETTINGS_SHOWN else ""
        return f"{'rows' if rows else 'their form'} changed by {', '.join(names[:SETTINGS_SHOWN])}{more}"


def _revisions(older: Sequence[OlderFiles]) -> str:
    numbers = [str(one.revision) for one in older]
    if len(numbers) == 1:
        return f"revision {numbers[0]}"
    return f"revisions {', '.join(numbers[:-1])} and {numbers[-1]}"


def setting_name(change: SpecChange) -> str:
    """Return a changed setting as people name it: `filter`, `dataType of price`."""
    return f"{change.setting} of {change.column}" if change.column else change.setting


def outdated_values(found: Outdated) -> JsonObject:
    """Return outdated files for other programs."""
    return {
        "revision": found.now,
        "segments": sum(len(file.outputs) for file in found.files),
        "files": len(found.files),
        "rows": sum(file.rows for file in found.files),
        "bytes": sum(file.fingerprint.size for file in found.files),
        "cpuSeconds": round(sum(file.seconds for file in found.files), 3),
        "older": [
            {
                "revision": one.revision,
                "files": len(one.files),
                "segments": sum(len(file.outputs) for file in one.files),
                "changes": [change_values(change) for change in one.changes],
            }
            for one in found.older
        ],
    }


def change_values(change: SpecChange) -> JsonObject:
    """Return a change for other programs."""
    return {
        "column": change.column or None,
        "setting": change.setting,
        "before": change.before,
        "now": change.now,
        "verdict": change.verdict.value,
        "why": change.why,
    }


def outdated(spec: TableSpec, snapshot: Snapshot | None) -> Outdated:
    """Return the published files that the table spec would build otherwise now.

    Reads the files of the snapshot only if one of its recipes needs a rebuild. A swap builds all files
    anyway, whenever the table spec has changed.
    """
    if snapshot is None or not snapshot.recipes or spec.mode == "swap":
        return Outdated()
    recipe, used = stored_recipe(spec), revisions_of(snapshot.files)
    now = revision_of(snapshot.recipes, recipe)
    others = [one for one in snapshot.recipes if one.revision in used and not one.is_same(recipe)]
    changes = {one.revision: to_rebuild(one, recipe) for one in others}
    if not any(changes.values()):
        return Outdated(now)
    older: dict[int, list[PublishedFile]] = {number: [] for number, of_it in changes.items() if of_it}
    segments = 0
    for file in snapshot.files:
        segments += len(file.outputs)
        if file.revision in older:
            older[file.revision].append(file)
    read = {one.revision: one.read != recipe.read for one in others}
    parts = (OlderFiles(n, changes[n], read[n], tuple(older[n])) for n in sorted(older) if older[n])
    return Outdated(now, segments, tuple(parts))


def to_rebuild(before: StoredRecipe, now: StoredRecipe) -> tuple[SpecChange, ...]:
    """Return the changes between two recipes that need a rebuild."""
    return tuple(c for c in changes_between(before, now) if c.verdict is Verdict.REBUILD)


def spec_changes_since(spec: TableSpec, snapshot: Snapshot | None) -> tuple[SpecChange, ...]:
    """Return what was changed in the table spec since published files were built, each change once."""
    if snapshot is None or not snapshot.recipes:
        return ()
    now, used = stored_recipe(spec), revisions_of(snapshot.files)
    older = [one for one in snapshot.recipes if one.revision in used and not one.is_same(now)]
    found: list[SpecChange] = []
    for change in chain.from_iterable(changes_between(one, now) for one in older):
        if change not in found:
            found.append(change)
    return tuple(found)


def changes_between(before: StoredRecipe, now: StoredRecipe) -> tuple[SpecChange, ...]:
    """Return all changes between two recipes."""
    return spec_changes(_recipe(before), _recipe(now), now.target)


def _recipe(stored: StoredRecipe) -> Recipe:
    return Recipe(dict(stored.read), dict(stored.write))


@dataclass(frozen=True, slots=True)
class RebuildNeed:
    """What of the outdated files can be built again.

    :ivar possible: those whose published version is in the source.
    :ivar gone: those whose published version is not, and which no run replaces: they stay as they are.
    """

    possible: Outdated = Outdated()
    gone: Outdated = Outdated()

    @property
    def is_any(self) -> bool:
        """Whether any file is outdated."""
        return bool(self.possible.older or self.gone.older)


NO_NEED: Final = RebuildNeed()


def need_of(
    found: Outdated, snapshot: Snapshot, is_same: Callable[[str], bool], replaced: Collection[str]
) -> RebuildNeed:
    """Sort outdated files by what the source has.

    :param found: `outdated` of the snapshot.
    :param is_same: whether the file of a URI is listed with the published content.
    :param replaced: URIs of files that the next run replaces or removes anyway.
    """
    if not found.older:
        return RebuildNeed(found, found)
    newest = snapshot.ledger
    possible = [f for f in found.files if f is newest[f.uri] and is_same(f.uri)]
    there = {id(file) for file in possible}
    gone = [f for f in found.files if id(f) not in there and not (f is newest[f.uri] and f.uri in replaced)]
    return RebuildNeed(found.only(possible), found.only(gone))


def names_of(files: Iterable[PublishedFile], most: int) -> str:
    """Return the base names of the first of these files, and how many more there are."""
    names = [file.uri.rsplit("/", 1)[-1] for file in files]
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def waiting_words(table: str, need: RebuildNeed, building: Collection[str] = ()) -> Iterator[str]:
    """Yield what waits for a rebuild, and what cannot have one, a sentence each; none where nothing does.

    :param building: URIs of files that are being built again.
    """
    waiting = need.possible.only([file for file in need.possible.files if file.uri not in building])
    if waiting.older:
        yield f"{waiting}; `pinot-assets rebuild {table}` builds them again"
    if need.gone.older:
        yield f"{need.gone}; they stay as they are, because the source lacks {names_of(need.gone.files, 3)}"


def need_of_listing(
    spec: TableSpec,
    snapshot: Snapshot | None,
    hold: Hold,
    rewritten: Collection[str],
    deleted: Collection[str],
) -> RebuildNeed:
    """Return what is outdated, by a comparison that knows fingerprints and no contents.

    :param rewritten: URIs of published files that are listed in another version, without held ones.
    :param deleted: URIs of published files that are not listed, without held ones.
    """
    if snapshot is None:
        return RebuildNeed()
    replaced = {*rewritten, *(() if spec.mode == "append" else deleted)}
    other = {*rewritten, *deleted, *hold.files, *hold.removals}
    return need_of(outdated(spec, snapshot), snapshot, lambda uri: uri not in other, replaced)
