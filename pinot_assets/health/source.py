"""Whether the published snapshot is what the source holds now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pinot_assets.core.check_result import (
    CheckProblem,
    CheckResult,
    Severity,
    base_name,
    check_result_of,
    some,
)
from pinot_assets.core.text import duration
from pinot_assets.session.values.hold import Hold
from pinot_assets.session.values.state import utc_text
from pinot_assets.session.values.trouble import has_lasted, so_long
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.source.readiness import Readiness

NAME = "snapshot_equals_source"


@dataclass(frozen=True, slots=True)
class SourceDifference:
    """The listing beside the ledger, by fingerprint alone; URIs, sorted.

    :ivar listed: how many files count: listed and ready.
    :ivar missing: listed, not published.
    :ivar stale: published in another version.
    :ivar extra: published, not listed any more.
    :ivar held: how many differ because a rollback holds them back.
    :ivar unready: how many are being written, or not complete yet.
    """

    listed: int
    missing: tuple[str, ...]
    stale: tuple[str, ...]
    extra: tuple[str, ...]
    held: int
    unready: int

    @property
    def waiting(self) -> tuple[str, ...]:
        """Files whose content waits to be published."""
        return (*self.missing, *self.stale)


def difference(published: Mapping[str, Fingerprint], found: Readiness, hold: Hold) -> SourceDifference:
    """Compare ledger and listing; what is not ready and what a rollback holds back (R23) is counted apart.

    :param published: newest published version by URI.
    """
    unready = {u.uri for u in (*found.later, *found.waiting)}
    files = {uri: file for uri, file in found.counted.files.items() if uri not in unready}
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


def snapshot_equals_source(table: str, found: SourceDifference, *, removes: bool) -> CheckResult:
    """Every listed file is published in the version that is listed, and no other.

    :param removes: whether the table's mode takes away what is no longer listed (append never does).
    """
    run = f"run {table} (`pinot-assets run {table}`); if it just ran, `pinot-assets status {table}` says why"
    parts: list[tuple[str, Collection[str]]] = [("missing", found.missing), ("stale", found.stale)]
    if removes:
        parts.append(("extra", found.extra))
    problems = [
        CheckProblem(f"{len(uris)} {what} ({some([base_name(u) for u in uris])})", run)
        for what, uris in ((what, sorted(uris)) for what, uris in parts)
        if uris
    ]
    if found.held:
        resume = f"`pinot-assets resume {table}` lets in what the rollback took back"
        problems.append(CheckProblem(f"{found.held} held back by a rollback", resume))
    same = found.listed - len(found.waiting)
    return check_result_of(
        NAME,
        problems,
        expected=found.listed,
        found=same,
        good=f"{same} of {found.listed} listed files are published as they are",
        numbers={
            "files_missing": len(found.missing),
            "files_stale": len(found.stale),
            "files_extra": len(found.extra),
            "files_held": found.held,
            "files_unready": found.unready,
        },
    )


@dataclass(frozen=True, slots=True)
class Lasting(CheckResult):
    """An answer that has not been known for so long that it is an error.

    :ivar since_ms: since when, epoch milliseconds.
    """

    since_ms: int = 0


def lasts(answer: CheckResult, since_ms: int, now_ms: int) -> CheckResult:
    """An answer that is not known, as an error once every look has failed for an hour; else as it is.

    :param since_ms: when the first of these looks failed, epoch milliseconds.
    """
    if answer.known or not has_lasted(since_ms, now_ms):
        return answer
    return Lasting(
        answer.name,
        False,
        answer.expected,
        answer.found,
        f"{answer.message}; {so_long(since_ms, now_ms)}",
        f"see to the cause ({answer.next_step}); sensors and `watch` look again by themselves",
        Severity.ERROR,
        known=False,
        since_ms=since_ms,
    )


def seen_again(since_ms: int, now_ms: int, told: str) -> CheckResult:
    """What ends the error of `lasts`. It passes, though files may wait: the next look counts them.

    :param told: what this look says of the files.
    """
    after = duration((now_ms - since_ms) / 1000)
    message = f"the table can be looked at again since {utc_text(now_ms)}, after {after}: {told}"
    return CheckResult(NAME, True, 0, 0, message, known=False)
