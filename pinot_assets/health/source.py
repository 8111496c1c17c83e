"""Whether the published snapshot is what the source holds now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pinot_assets.health.finding import Health, Problem, base_name, judged, some
from pinot_assets.session.plan import Hold
from pinot_assets.source.fingerprint import Fingerprint

NAME = "snapshot_equals_source"


@dataclass(frozen=True, slots=True)
class Difference:
    """The listing beside the ledger, by fingerprint alone; URIs, sorted.

    :ivar missing: listed, not published.
    :ivar stale: published in another version.
    :ivar extra: published, not listed any more.
    :ivar held: of all these, what a rollback holds back.
    """

    listed: int
    missing: tuple[str, ...]
    stale: tuple[str, ...]
    extra: tuple[str, ...]
    held: int

    @property
    def waiting(self) -> tuple[str, ...]:
        """Files whose content waits to be published."""
        return (*self.missing, *self.stale)


def difference(
    published: Mapping[str, Fingerprint], listed: Mapping[str, Fingerprint], hold: Hold
) -> Difference:
    """Compare ledger and listing; what a rollback holds back is counted apart (rule R23).

    :param published: newest published version by URI.
    """
    held = {uri for uri, token in hold.files.items() if uri in listed and listed[uri].token == token}
    gone = set(published) - set(listed)
    return Difference(
        listed=len(listed),
        missing=tuple(sorted(set(listed) - set(published) - held)),
        stale=tuple(
            sorted(uri for uri in set(listed) & set(published) - held if listed[uri] != published[uri])
        ),
        extra=tuple(sorted(gone - set(hold.removals))),
        held=len({u for u in held if published.get(u) != listed[u]}) + len(gone & set(hold.removals)),
    )


def snapshot_equals_source(table: str, found: Difference, *, removes: bool) -> Health:
    """Every listed file is published in the version that is listed, and no other.

    :param removes: whether the table's mode takes away what is no longer listed (append never does).
    """
    run = f"run {table} (`pinot-assets run {table}`); if it just ran, `pinot-assets status {table}` says why"
    parts: list[tuple[str, Collection[str]]] = [("missing", found.missing), ("stale", found.stale)]
    if removes:
        parts.append(("extra", found.extra))
    problems = [
        Problem(f"{len(uris)} {what} ({some([base_name(u) for u in uris])})", run)
        for what, uris in ((what, sorted(uris)) for what, uris in parts)
        if uris
    ]
    if found.held:
        resume = f"`pinot-assets resume {table}` lets in what the rollback took back"
        problems.append(Problem(f"{found.held} held back by a rollback", resume))
    same = found.listed - len(found.waiting)
    return judged(
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
        },
    )
