"""Answers from snapshots: where a segment comes from, where a file went, what a switch changed.

A snapshot is immutable and named by its hash (`manifest.py`), so it stays a true record of its moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output


@dataclass(frozen=True, slots=True)
class Stay:
    """One version of a file, over the kept snapshots that have it.

    :ivar outputs: the segments with its rows: its own, or those of its pack.
    :ivar since: the oldest kept snapshot with it.
    :ivar until: the first snapshot without it, None while the newest one has it.
    :ivar brought: whether `since` certainly published it. A version in the oldest kept snapshot may be older
        than that.
    """

    file: PublishedFile
    outputs: tuple[Output, ...]
    since: Snapshot
    until: Snapshot | None
    brought: bool

    def output(self, segment: str) -> Output:
        """Return the file's segment of that name.

        :raises KeyError: the file has no such segment.
        """
        return {output.segment: output for output in self.outputs}[segment]


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """The difference between two snapshots of a table.

    :ivar added: files that only the newer one has.
    :ivar removed: files that only the older one has.
    :ivar rewritten: older and newer version of each file whose version differs.
    :ivar segments_to: segments that only the newer one has.
    :ivar segments_from: segments that only the older one has.
    :ivar rows: rows of the newer one minus those of the older one.
    :ivar tar_bytes: the same for the size of the tars, in bytes.
    """

    added: tuple[PublishedFile, ...]
    removed: tuple[PublishedFile, ...]
    rewritten: tuple[tuple[PublishedFile, PublishedFile], ...]
    segments_to: tuple[str, ...]
    segments_from: tuple[str, ...]
    rows: int
    tar_bytes: int


def stays(snapshots: Sequence[Snapshot]) -> list[Stay]:
    """Return every version of every file with its snapshots, the newest first.

    :param snapshots: newest first, as they are kept. A snapshot that is missing between two is not noticed.
    """
    ended: list[Stay] = []
    open_stays: dict[tuple[str, str, tuple[str, ...]], Stay] = {}
    for snapshot in reversed(snapshots):
        of_packs = {pack.name: pack.outputs for pack in snapshot.packs}
        where = (
            (f, tuple(chain.from_iterable(of_packs[name] for name in f.packs)) or f.outputs)
            for f in snapshot.files
        )
        here = {(f.uri, f.version, tuple(o.segment for o in outs)): (f, outs) for f, outs in where}
        for key in open_stays.keys() - here.keys():
            ended.append(replace(open_stays.pop(key), until=snapshot))
        oldest = snapshot is snapshots[-1] and snapshot.parent is not None
        for key, (file, outputs) in here.items():
            brought = not oldest or file.session == snapshot.session
            open_stays.setdefault(key, Stay(file, outputs, snapshot, None, brought))
    return [*reversed(open_stays.values()), *reversed(ended)]


def of_segment(snapshots: Iterable[Snapshot], segment: str) -> list[Stay]:
    """Return the stays of all files in that segment, the newest first; several are of a pack."""

    def has(snapshot: Snapshot) -> Callable[[PublishedFile], bool]:
        packs = {p.name for p in snapshot.packs if any(o.segment == segment for o in p.outputs)}
        return lambda file: (
            not packs.isdisjoint(file.packs) or any(o.segment == segment for o in file.outputs)
        )

    return stays([replace(s, files=tuple(filter(has(s), s.files))) for s in snapshots])


def of_file(snapshots: Iterable[Snapshot], name: str) -> list[Stay]:
    """Return the stays of the files of that name, newest first.

    :param name: a URI, or its end after a `/`.
    """
    end = "/" + name.lstrip("/")
    return stays(
        [
            replace(s, files=tuple(file for file in s.files if file.uri == name or file.uri.endswith(end)))
            for s in snapshots
        ]
    )


def snapshot_difference(older: Snapshot, newer: Snapshot) -> SnapshotDiff:
    """Return the difference between two snapshots of a table."""
    before, after = older.ledger, newer.ledger
    return SnapshotDiff(
        added=_of(after, after.keys() - before.keys()),
        removed=_of(before, before.keys() - after.keys()),
        rewritten=tuple(
            (before[uri], after[uri])
            for uri in sorted(before.keys() & after.keys())
            if before[uri].version != after[uri].version
        ),
        segments_to=tuple(sorted(newer.segments.keys() - older.segments.keys())),
        segments_from=tuple(sorted(older.segments.keys() - newer.segments.keys())),
        rows=newer.rows - older.rows,
        tar_bytes=newer.tar_bytes - older.tar_bytes,
    )


def _of(files: dict[str, PublishedFile], uris: Iterable[str]) -> tuple[PublishedFile, ...]:
    return tuple(files[uri] for uri in sorted(uris))
