"""What lies around that nothing refers to any more, and what is referred to and lies nowhere.

Three places: Pinot (segments), ZooKeeper (session nodes), the staging area (tars).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pinot_assets.core.check_result import (
    CheckProblem,
    CheckResult,
    Severity,
    check_result_of,
    megabytes,
    some,
)
from pinot_assets.core.text import plural, plural_are
from pinot_assets.pinot.lineage import Lineage, LineageState
from pinot_assets.session.stores.session_store import KEPT_SESSIONS
from pinot_assets.session.stores.staged_files import tar_keys
from pinot_assets.session.values.state import is_ours
from pinot_assets.snapshot.receipt import Output

ORPHANS = "orphans"
STAGED = "staged_tars"

TOLERATED_BYTES = 1024**3
"""Superseded tars that nobody minds; above it, not more than what is in use. Where every snapshot is kept,
nothing deletes them, so a check without tolerance would fail for ever after the first rewritten file."""

SEGMENTS = "segments/"


@dataclass(frozen=True, slots=True)
class ReferencedObjects:
    """What may be there.

    :ivar has_ledger: whether ZooKeeper knows of a snapshot.
    :ivar segments: names of the ledger and of the open session's switch.
    :ivar tars: segment → output: of the ledger and of every snapshot that a rollback can still reach.
    :ivar open_session: id of the open session, "" when there is none; all that is staged for it may be there.
    :ivar later: visible segments that were published after ZooKeeper's pointer was written.
    """

    has_ledger: bool
    segments: Collection[str]
    tars: Mapping[str, Output]
    open_session: str
    later: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Unreferenced:
    """Objects in the staging area that nothing in use refers to.

    :ivar keys: tars and metadata tars, sorted.
    :ivar size: their bytes together.
    """

    keys: tuple[str, ...]
    size: int


def unreferenced(
    table: str, staged: Mapping[str, int], segments: Iterable[str], open_session: str
) -> Unreferenced:
    """Tars that neither these segments nor the open session need.

    :param staged: key → bytes of the staging area.
    :param open_session: its id, "" when there is none.
    """
    prefix = f"{SEGMENTS}{table}__{open_session}_"
    kept = {key for name in segments for key in tar_keys(name)}
    keys = sorted(
        key
        for key in staged
        if key.startswith(SEGMENTS) and key not in kept and not (open_session and key.startswith(prefix))
    )
    return Unreferenced(tuple(keys), sum(staged[key] for key in keys))


def orphans(
    table: str,
    lineage: Lineage,
    segments: Collection[str],
    session_nodes: Sequence[str],
    staged: Mapping[str, int],
    wanted: ReferencedObjects,
) -> CheckResult:
    """Nothing of ours is left that no snapshot, no open session and no way back needs.

    :param segments: all names in the table.
    :param session_nodes: names of the session nodes in ZooKeeper.
    """
    visible = lineage.visible(segments)
    ours = {name for name in segments if is_ours(table, name)}
    needed = set(wanted.segments) | {
        name for e in lineage.in_state(LineageState.COMPLETED) for name in e.segments_from
    }
    # What a REVERTED entry pushed is deleted by Pinot itself.
    doomed = {name for e in lineage.in_state(LineageState.REVERTED) for name in e.segments_to}
    later = sorted(wanted.later) if wanted.has_ledger else []
    shown = sorted(ours & visible - set(wanted.segments) - set(later))
    hidden = sorted(ours - visible - needed - doomed)
    nodes = session_nodes[: max(0, len(session_nodes) - KEPT_SESSIONS)]
    tars = unreferenced(table, staged, wanted.tars, wanted.open_session)
    in_use = sum(size for key, size in staged.items() if key.startswith(SEGMENTS)) - tars.size
    run = f"run {table} (`pinot-assets run {table}`)"
    problems: list[CheckProblem] = []
    if later:
        number = plural(len(later), "segment")
        what = f"queries see {number} that ZooKeeper's pointer is too old for ({some(later)})"
        then = f"was a backup restored? {run}: it finds their snapshot, or says what to choose"
        problems.append(CheckProblem(what, then, Severity.ERROR))
    if shown:
        what = f"queries see {plural(len(shown), 'segment')} that no snapshot knows ({some(shown)})"
        then = (
            f"{run}: every trigger deletes them first"
            if wanted.has_ledger
            else "restore the table's nodes in ZooKeeper, or delete these segments and ingest again"
        )
        problems.append(CheckProblem(what, then, Severity.ERROR))
    if hidden:
        what = f"{plural(len(hidden), 'hidden segment')} of no open session ({some(hidden)})"
        then = f"`pinot-assets gc {table}` says which of them may go; POST /segments/{table}_OFFLINE/delete"
        problems.append(CheckProblem(what, then))
    if nodes:
        what = (
            f"{plural(len(nodes), 'session node')} beyond the {KEPT_SESSIONS} that are kept ({some(nodes)})"
        )
        problems.append(
            CheckProblem(what, f"the next new session of {table} deletes them, or `gc {table} --apply`")
        )
    too_many = tars.size > max(TOLERATED_BYTES, in_use)
    if too_many:
        useless = plural(len(tars.keys), "staged object")
        what = f"{useless} ({megabytes(tars.size)}) of no use ({some(tars.keys)})"
        then = (
            "let fewer snapshots be kept (snapshotsToKeep, snapshotDaysToKeep) and run "
            f"`pinot-assets gc {table}`: a rollback reaches only what is kept"
        )
        problems.append(CheckProblem(what, then))
    return check_result_of(
        ORPHANS,
        problems,
        expected=0,
        found=len(later) + len(shown) + len(hidden) + len(nodes) + (len(tars.keys) if too_many else 0),
        good=f"no segment or node too many; {megabytes(tars.size)} of superseded tars are tolerated",
        numbers={
            "segments_visible": len(shown),
            "segments_hidden": len(hidden),
            "session_nodes": len(nodes),
            "staged_objects": len(tars.keys),
            "staged_bytes": tars.size,
            "staged_bytes_in_use": in_use,
        },
    )


def staged_tars(table: str, staged: Mapping[str, int], wanted: ReferencedObjects) -> CheckResult:
    """Every tar of the ledger and of the way back lies in the staging area, in its size (rule R9)."""
    missing: list[str] = []
    torn: list[str] = []
    for name in sorted(wanted.tars):
        size = staged.get(f"{SEGMENTS}{name}.tar.gz")
        if size is None:
            missing.append(name)
        elif size != wanted.tars[name].tar_bytes:
            torn.append(name)
    again = (
        "restore them from a backup, or build every file anew: set consistentPushSwapEnabled: true and "
        f"run {table} once; until then Pinot's deep store holds the only copy"
    )
    problems = [
        CheckProblem(f"{plural_are(len(names), 'tar')} {what} ({some(names)})", again, Severity.ERROR)
        for what, names in (("missing", missing), ("not as written", torn))
        if names
    ]
    good = len(wanted.tars) - len(missing) - len(torn)
    return check_result_of(
        STAGED,
        problems,
        expected=len(wanted.tars),
        found=good,
        good=f"{good} of {len(wanted.tars)} tars that are in use are there in their size",
        numbers={"tars_missing": len(missing), "tars_torn": len(torn)},
    )
