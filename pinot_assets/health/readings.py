"""Values that a look reads, for checks and metrics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pinot_assets.session.values.hold import Hold
from pinot_assets.session.values.plan import Plan
from pinot_assets.snapshot.receipt import Failure, Fingerprint, Output, SourceFile
from pinot_assets.source.readiness import Readiness

Attempts = Mapping[tuple[str, int], Sequence[Failure]]
"""Session id and attempt → the failures of that attempt."""


def still_there(
    failures: Sequence[Failure], plan: Plan, files: Mapping[str, SourceFile]
) -> tuple[Failure, ...]:
    """Return the failures whose files are still as they were: neither removed nor repaired.

    :param plan: of that session; a file that Pinot refused is no longer in it, and counts while it is listed.
    :param files: the listing, by URI.
    """
    planned = {row.ordinal: row.planned for row in plan.rows}
    listed = [(failure, files[failure.uri].fingerprint) for failure in failures if failure.uri in files]
    return tuple(failure for failure, now in listed if planned.get(failure.ordinal, now) == now)


@dataclass(frozen=True, slots=True)
class SourceDifference:
    """How the listing differs from the ledger, by fingerprint alone; URIs, sorted.

    :ivar listed: number of files that count: listed and ready.
    :ivar missing: listed, not published.
    :ivar stale: published in another version.
    :ivar extra: published, no longer listed.
    :ivar held: number of files that differ because a rollback holds them back.
    :ivar unready: number of files that are being written, or not complete yet.
    """

    listed: int
    missing: tuple[str, ...]
    stale: tuple[str, ...]
    extra: tuple[str, ...]
    held: int
    unready: int

    @property
    def waiting(self) -> tuple[str, ...]:
        """Return the files whose content waits to be published."""
        return (*self.missing, *self.stale)


def difference(published: Mapping[str, Fingerprint], readiness: Readiness, hold: Hold) -> SourceDifference:
    """Compare ledger and listing; files that are not ready or held back by a rollback (R23) count apart.

    :param published: newest published version by URI.
    """
    unready = {u.uri for u in (*readiness.later, *readiness.waiting)}
    files = {uri: file for uri, file in readiness.counted.files.items() if uri not in unready}
    held = {uri for uri, file in files.items() if hold.holds(file)}
    gone = set(published) - set(files) - unready
    differs = {uri for uri, file in files.items() if published.get(uri) != file.fingerprint}
    return SourceDifference(
        listed=len(files),
        missing=tuple(sorted(differs - held - set(published))),
        stale=tuple(sorted((differs - held) & set(published))),
        extra=tuple(sorted(gone - set(hold.removals))),
        held=len(differs & held) + len(gone & set(hold.removals)),
        unready=len(unready),
    )


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the servers themselves report.

    :ivar crcs: server → segment → CRC, as loaded.
    :ivar silent: server → why it did not answer.
    """

    crcs: Mapping[str, Mapping[str, int]]
    silent: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReferencedObjects:
    """Objects that may exist, as something refers to them.

    :ivar has_ledger: whether ZooKeeper knows of a snapshot.
    :ivar segments: names of the ledger and of the open session's switch.
    :ivar tars: segment → output, of the ledger and of every snapshot that a rollback can still reach.
    :ivar open_session: id of the open session, "" when there is none; anything staged for it may exist.
    """

    has_ledger: bool
    segments: Collection[str]
    tars: Mapping[str, Output]
    open_session: str
