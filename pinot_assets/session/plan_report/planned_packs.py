"""What a plan does with packs: exact for packs that change, an estimate for files that are not read yet."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pinot_assets.core.text import plural, size
from pinot_assets.ingest.contract.build_spec import segment_name
from pinot_assets.segment.values.cells import cell_kind
from pinot_assets.session.checks.pack_segments import expired_packs, packs_in_part
from pinot_assets.session.context.context import TriggerContext
from pinot_assets.session.decide.open_packs import readable_lists
from pinot_assets.session.plan_report.planned_run import PlannedRun
from pinot_assets.session.values.packs import Accepted, in_old_places, read_digest
from pinot_assets.session.values.plan import Plan, as_built, carried_files, dirty_packs, superseded
from pinot_assets.session.values.state import Mode
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import Member, PublishedPack
from pinot_assets.table_spec.blocks.layout import LayoutSettings
from pinot_assets.table_spec.changes.recipe import cell_kind_of_recipe, partitions_of

_TIMES, _MUCH = 10, 32 << 20
"""A person should hear of what is written again from so many times the bytes of what changed on, and from so
many bytes: less costs nothing that counts."""
_MANY_CELLS, _TENTH = 8, 10


@dataclass(frozen=True, slots=True)
class ChangedPacks:
    """What becomes of published packs.

    :ivar rebuilt: packs that are built again, of kept rows and of files that are read again.
    :ivar dropped: packs of which nothing stays.
    :ivar files: how many files stay in those that are built again; `rows` and `bytes` are theirs.
    :ivar changed_bytes: of the rows, in segments, that files which are rewritten or deleted have now.
    :ivar places: URIs of small files that are read again and take the place of their former version.
    """

    rebuilt: int = 0
    dropped: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0
    changed_bytes: int = 0
    places: frozenset[str] = frozenset()

    @property
    def is_much(self) -> bool:
        """Whether far more is written again than has changed."""
        return self.bytes > max(_TIMES * self.changed_bytes, _MUCH)

    @property
    def text(self) -> str:
        """Return what becomes of them as a sentence, without an estimate."""
        parts = []
        if self.rebuilt:
            amount = f"{self.rows:,} rows, {size(self.bytes)}"
            kept = (
                f"from the kept rows of {plural(self.files, 'file')}, none of which is read ({amount})"
                if self.files
                else "of files that are read again"
            )
            parts.append(f"{plural(self.rebuilt, 'pack')} built again {kept}")
        if self.dropped:
            parts.append(f"{plural(self.dropped, 'pack')} dropped")
        if self.is_much:
            parts.append(f"all of it is written because of {size(self.changed_bytes)} that change")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class ExpectedPacks:
    """What is expected of small files that are not read yet and go into new packs.

    :ivar bytes: of their rows in segments, as published segments have them for each byte of their files; the
        files' own without any.
    :ivar partitions: of the table's cells; 1 without them.
    """

    files: int
    bytes: int
    target: int
    partitions: int = 1
    has_cells: bool = False
    has_slices: bool = False

    @property
    def packs(self) -> int:
        """How many packs these are, if they have rows of each partition and one time slice."""
        return max(math.ceil(self.bytes / self.target), self.partitions)

    @property
    def text(self) -> str:
        """Return the estimate as a sentence."""
        if self.has_cells:
            parts = ["each time slice"] if self.has_slices else []
            if self.partitions > 1 or not parts:
                parts.insert(0, f"each of {plural(self.partitions, 'partition')}")
            return (
                f"the rows of {plural(self.files, 'file')}: one segment or more for {' and '.join(parts)} "
                "of which they have rows"
            )
        return (
            f"the rows of {plural(self.files, 'small file')} in about {plural(self.packs, 'segment')} "
            f"of up to {size(self.target)} (estimated from sizes)"
        )


@dataclass(frozen=True, slots=True)
class MergedPacks:
    """Published packs that are merged because a person asks for it; the other numbers are theirs.

    :ivar into: about how many packs they become.
    """

    packs: int = 0
    files: int = 0
    rows: int = 0
    bytes: int = 0
    into: int = 0

    @classmethod
    def of(cls, packs: Sequence[PublishedPack], target: int) -> MergedPacks:
        """Return what becomes of these packs."""
        cells = Counter[str]()
        for pack in packs:
            cells[pack.cell] += pack.bytes
        into = sum(math.ceil(count / target) for count in cells.values())
        of_packs = (sum(p.files for p in packs), sum(p.rows for p in packs), sum(p.bytes for p in packs))
        return cls(len(packs), *of_packs, into)

    @property
    def text(self) -> str:
        """Return what becomes of them as a sentence."""
        return (
            f"{plural(self.packs, 'small pack')} of {plural(self.files, 'file')} into about {self.into:,} "
            f"({self.rows:,} rows, {size(self.bytes)}); none of these files is read"
        )


@dataclass(frozen=True, slots=True)
class SmallCells:
    """Published cells whose segments are far below the target.

    :ivar bytes: of a cell on average.
    :ivar coarser: what to write for fewer cells.
    """

    cells: int
    bytes: int
    target: int
    coarser: str

    @property
    def text(self) -> str:
        """Return what they cost as a sentence."""
        return (
            f"{self.cells:,} cells have {size(self.bytes)} on average, below a tenth of targetSegmentSize "
            f"({size(self.target)}), and each needs a segment; {self.coarser}"
        )


def small_cells(current: Snapshot | None, layout: LayoutSettings, kind: str) -> SmallCells | None:
    """Return what the cells of published packs are too small for; None if they are not, or there are few.

    :param kind: of the cells that the table spec makes; those of before do not count.
    """
    packs = [pack for pack in (current.packs if current is not None else ()) if cell_kind(pack.cell) == kind]
    cells, total = len({pack.cell for pack in packs}), sum(pack.bytes for pack in packs)
    if layout.cells is None or cells < _MANY_CELLS or _TENTH * total >= cells * layout.target_bytes:
        return None
    fewer = [f"timeSlice: {coarser}"] if (coarser := layout.coarser_slice) else []
    fewer += ["fewer numPartitions"] if layout.partition else []
    coarser_words = f"write {' or '.join(fewer)} for fewer and larger ones" if fewer else "remove timeSlice"
    return SmallCells(cells, total // cells, layout.target_bytes, coarser_words)


@dataclass(frozen=True, slots=True)
class PlannedPacks:
    """What a plan does with packs. Merges that no one asked for are decided when the files are read.

    :ivar new: None if no small file goes into a new pack.
    :ivar small_cells: None if published cells are of a good size.
    """

    changed: ChangedPacks = field(default_factory=ChangedPacks)
    new: ExpectedPacks | None = None
    merged: MergedPacks = field(default_factory=MergedPacks)
    small_cells: SmallCells | None = None

    @property
    def kept_rows(self) -> int:
        """Rows that are written again without being read."""
        return self.changed.rows + self.merged.rows

    @property
    def kept_bytes(self) -> int:
        """Their bytes in segments."""
        return self.changed.bytes + self.merged.bytes

    def names(self, table: str, plan: Plan) -> Iterator[str]:
        """Yield a name for each pack to come: what Pinot stores of a segment depends on their length."""
        to_come = self.changed.rebuilt + self.merged.into + (self.new.packs if self.new is not None else 0)
        for ordinal in range(plan.next_ordinal, plan.next_ordinal + to_come):
            yield segment_name(table, plan.session, plan.attempt, ordinal, 0)


def planned_packs(context: TriggerContext, planned: PlannedRun) -> PlannedPacks:
    """Read the member lists of packs that change, and add up; writes nothing."""
    plan, current = planned.decision.plan, planned.decision.current
    if plan is None:
        return PlannedPacks()
    changed, merged, target = ChangedPacks(), MergedPacks(), context.spec.layout.target_bytes
    # Packs that the open session has built already are among the outputs of the plan.
    if not (current is None or plan.packs_done or planned.refused or plan.mode is Mode.SWAP):
        changed = _changed(context, replace(as_built(plan), merged=()), current)
        packs = [pack for pack in current.packs if pack.name in plan.merged]
        merged = MergedPacks.of(packs, target)
    kind = cell_kind_of_recipe(context.recipe.write) if context.recipe is not None else ""
    of_cells = small_cells(current, context.spec.layout, kind)
    small = [
        row.planned.size
        for row in planned.to_build
        if row.is_small and row.planned.size and row.uri not in changed.places
    ]
    if not small:
        return PlannedPacks(changed, merged=merged, small_cells=of_cells)
    source = sum(file.fingerprint.size for file in current.files) if current is not None else 0
    loaded = sum(o.loaded_bytes for o in current.segments.values()) if current is not None else 0
    times = loaded / source if loaded and source else 1.0
    partitions = partitions_of(context.recipe.write) if context.recipe is not None else 1
    cells = context.spec.layout.cells
    has_slices = cells is not None and cells.time_slice is not None
    expected = round(sum(small) * times)
    new = ExpectedPacks(len(small), expected, target, partitions, cells is not None, has_slices)
    return PlannedPacks(changed, new, merged, of_cells)


def _changed(context: TriggerContext, plan: Plan, current: Snapshot) -> ChangedPacks:
    if not (dirty := dirty_packs(plan, current)):
        return ChangedPacks()
    expired = expired_packs(context, packs_in_part(plan, current))
    dirty = tuple(pack for pack in dirty if pack.name not in expired)
    by_name = readable_lists(context, dirty)
    cells: dict[str, set[str]] = defaultdict(set)
    for members in by_name.values():
        for member in members.members:
            cells[member.uri].add(members.cell)
    # Whether a file that is read again has rows in the same cells is not known: it is taken to.
    read_again = [
        Accepted(Member(row.uri, row.planned, "", 0, 0, plan.session, "", 0), 0, cell)
        for row in plan.done
        if row.is_small
        for cell in cells[row.uri]
    ]
    read, target = read_digest(context.recipe), context.spec.layout.target_bytes
    rebuilt = [*in_old_places(by_name, plan, current, read_again, read, target)]
    left = [one for pack in rebuilt for one in pack.members]
    carried = {(file.uri, file.session) for file in carried_files(plan, current)}
    kept = [one for one in left if one.member.file in carried]
    rows = sum(pack.rows for pack in dirty)
    per_row = sum(pack.bytes for pack in dirty) / max(rows, 1)
    gone = sum(file.rows for file in superseded(plan, current) if not by_name.keys().isdisjoint(file.packs))
    return ChangedPacks(
        rebuilt=len(rebuilt),
        dropped=len(dirty) - len(rebuilt),
        files=len({one.member.file for one in kept}),
        rows=sum(one.member.rows for one in kept),
        bytes=sum(one.bytes for one in kept),
        changed_bytes=round(per_row * gone),
        places=frozenset(one.member.uri for one in left if one.member.file not in carried),
    )
