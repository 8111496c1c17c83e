"""What snapshots tell as receipts: where a segment comes from, where a file went, what a switch changed.

A snapshot is immutable and named by its hash (`manifest.py`), so what it says of its moment stays true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from pinot_assets.snapshot.manifest import PublishedFile, Snapshot
from pinot_assets.snapshot.receipt import Output


@dataclass(frozen=True, slots=True)
class Stay:
    """One version of a file in the kept snapshots.

    :ivar since: the oldest kept snapshot with it.
    :ivar until: the snapshot that no longer has it, None while the newest one does.
    :ivar brought: whether `since` brought it, as far as that is known: what the oldest kept snapshot has may
        be older.
    """

    file: PublishedFile
    since: Snapshot
    until: Snapshot | None
    brought: bool

    def output(self, segment: str) -> Output:
        """Its segment of that name.

        :raises KeyError: it has none.
        """
        return {output.segment: output for output in self.file.outputs}[segment]


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """What lies between two snapshots of a table.

    :ivar added: files that the newer one alone has.
    :ivar removed: files that the older one alone has.
    :ivar rewritten: the older and the newer version of files in other versions.
    :ivar segments_to: segments that the newer one alone has.
    :ivar segments_from: segments that the older one alone has.
    :ivar rows: by how many more.
    :ivar tar_bytes: by how many more.
    """

    added: tuple[PublishedFile, ...]
    removed: tuple[PublishedFile, ...]
    rewritten: tuple[tuple[PublishedFile, PublishedFile], ...]
    segments_to: tuple[str, ...]
    segments_from: tuple[str, ...]
    rows: int
    tar_bytes: int


def stays(snapshots: Sequence[Snapshot]) -> list[Stay]:
    """Every version of every file, the newest stay first.

    :param snapshots: newest first, as they are kept; one that is missing between two is not noticed.
    """
    ended: list[Stay] = []
    open_stays: dict[tuple[str, str, tuple[str, ...]], Stay] = {}
    for snapshot in reversed(snapshots):
        here = {(f.uri, f.version, tuple(o.segment for o in f.outputs)): f for f in snapshot.files}
        for key in open_stays.keys() - here.keys():
            ended.append(replace(open_stays.pop(key), until=snapshot))
        oldest = snapshot is snapshots[-1] and snapshot.parent is not None
        for key, file in here.items():
            open_stays.setdefault(
                key, Stay(file, snapshot, None, not oldest or file.session == snapshot.session)
            )
    return [*reversed(open_stays.values()), *reversed(ended)]


def of_segment(snapshots: Iterable[Snapshot], segment: str) -> Stay | None:
    """The newest stay of the file that a segment holds; None where no kept snapshot names it."""
    named = _narrowed(snapshots, lambda file: any(o.segment == segment for o in file.outputs))
    return next(iter(stays(named)), None)


def of_file(snapshots: Iterable[Snapshot], name: str) -> list[Stay]:
    """Stays of the files of that name, newest first.

    :param name: a URI, or its end from a `/` on.
    """
    end = "/" + name.lstrip("/")
    return stays(_narrowed(snapshots, lambda file: file.uri == name or file.uri.endswith(end)))


def _narrowed(snapshots: Iterable[Snapshot], keeps: Callable[[PublishedFile], bool]) -> list[Snapshot]:
    """With these files alone, each read and let go of in turn: a snapshot may have a million."""
    return [replace(s, files=tuple(filter(keeps, s.files))) for s in snapshots]


def difference(older: Snapshot, newer: Snapshot) -> SnapshotDiff:
    """What the newer one has that the older one lacks, and the other way round."""
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
