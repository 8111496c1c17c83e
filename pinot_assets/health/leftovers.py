"""Checks of leftovers: what exists although nothing needs it, and what is needed but does not exist.

Three places: Pinot (segments), ZooKeeper (session nodes), the staging area (tars).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pinot_assets.core.check_result import (
    CheckProblem,
    CheckResult,
    Severity,
    megabytes,
    problem_if,
    result_of,
    some,
)
from pinot_assets.core.text import plural, plural_are
from pinot_assets.health.check import check
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.pinot.lineage import LineageState
from pinot_assets.session.stores.session_store import KEPT_SESSIONS
from pinot_assets.session.stores.staged_files import tar_keys
from pinot_assets.session.values.state import is_ours

TOLERATED_BYTES = 1024**3
"""Bytes of superseded tars that the check tolerates, or as many as are in use, if that is more. Where every
snapshot is kept, nothing deletes them: without tolerance the check would fail for ever after one rewrite."""

SEGMENTS = "segments/"


def unreferenced(
    table: str, staged: Mapping[str, int], segments: Iterable[str], open_session: str
) -> dict[str, int]:
    """Return tars and metadata tars of neither these segments nor the open session, sorted: key → bytes.

    :param staged: key → bytes of the staging area.
    :param open_session: id of the open session, "" when there is none.
    """
    prefix = f"{SEGMENTS}{table}__{open_session}_"
    kept = {key for name in segments for key in tar_keys(name)}
    return {
        key: size
        for key, size in sorted(staged.items())
        if key.startswith(SEGMENTS) and key not in kept and not (open_session and key.startswith(prefix))
    }


@check("There is no segment, session node or large amount of tars that nothing refers to.")
def orphans(probe: TableProbe) -> CheckResult:
    """Nothing of ours is left that no snapshot, no open session and no way back needs."""
    table, referenced, later_ones = probe.spec.name, probe.referenced(), probe.published_later()
    lineage, segments, staged = probe.lineage(), probe.segments(), probe.staged()
    visible = lineage.visible(segments)
    ours = {name for name in segments if is_ours(table, name)}
    needed = set(referenced.segments) | {
        name for e in lineage.in_state(LineageState.COMPLETED) for name in e.segments_from
    }
    # Pinot itself deletes what a REVERTED entry pushed.
    doomed = {name for e in lineage.in_state(LineageState.REVERTED) for name in e.segments_to}
    later = sorted(later_ones) if referenced.has_ledger else []
    shown = sorted(ours & visible - set(referenced.segments) - set(later))
    hidden = sorted(ours - visible - needed - doomed)
    nodes = probe.session_nodes()[:-KEPT_SESSIONS]
    tars = unreferenced(table, staged, referenced.tars, referenced.open_session)
    useless = sum(tars.values())
    in_use = sum(size for key, size in staged.items() if key.startswith(SEGMENTS)) - useless
    too_many = [*tars] if useless > max(TOLERATED_BYTES, in_use) else []
    run = f"run {table} (`pinot-assets run {table}`)"
    return result_of(
        [
            *problem_if(
                later,
                f"queries see {plural(len(later), 'segment')} of a later snapshot than ZooKeeper's "
                f"pointer names ({some(later)})",
                f"was a backup restored? {run}: it finds their snapshot, or shows what to choose",
                Severity.ERROR,
            ),
            *problem_if(
                shown,
                f"queries see {plural(len(shown), 'segment')} that are in no snapshot ({some(shown)})",
                f"{run}: every trigger deletes them first"
                if referenced.has_ledger
                else f"{run}: it makes the ledger from them; after `pinot-assets forget {table}`, delete the "
                "table spec instead",
                Severity.ERROR,
            ),
            *problem_if(
                hidden,
                f"{plural(len(hidden), 'hidden segment')} of no open session ({some(hidden)})",
                f"`pinot-assets gc {table}` shows which of them may be deleted; POST "
                f"/segments/{table}_OFFLINE/delete",
            ),
            *problem_if(
                nodes,
                f"{plural(len(nodes), 'session node')} beyond the {KEPT_SESSIONS} that are kept "
                f"({some(nodes)})",
                f"the next new session of {table} deletes them, or `gc {table} --apply`",
            ),
            *problem_if(
                too_many,
                f"{plural(len(too_many), 'staged object')} ({megabytes(useless)}) that nothing "
                f"refers to ({some(too_many)})",
                "keep fewer snapshots (snapshotsToKeep, snapshotDaysToKeep) and run `pinot-assets "
                f"gc {table}`: a rollback reaches only what is kept",
            ),
        ],
        expected=0,
        found=len(later) + len(shown) + len(hidden) + len(nodes) + len(too_many),
        good=f"there is no segment or node that nothing refers to; {megabytes(useless)} of superseded "
        "tars are tolerated",
        numbers={
            "segments_visible": len(shown),
            "segments_hidden": len(hidden),
            "session_nodes": len(nodes),
            "staged_objects": len(tars),
            "staged_bytes": useless,
            "staged_bytes_in_use": in_use,
        },
    )


@check("Every tar of the snapshot, and of a rollback, is in the staging area.")
def staged_tars(probe: TableProbe) -> CheckResult:
    """Every tar of the ledger and of the way back is in the staging area, with its size (rule R9)."""
    staged, tars = probe.staged(), probe.referenced().tars
    sizes = {name: staged.get(f"{SEGMENTS}{name}.tar.gz") for name in sorted(tars)}
    missing = [name for name, size in sizes.items() if size is None]
    torn = [name for name, size in sizes.items() if size not in (None, tars[name].tar_bytes)]
    again = (
        "restore them from a backup, or build every file again: set consistentPushSwapEnabled: true "
        f"and run {probe.spec.name} once; until then Pinot's deep store has the only copy"
    )
    good = len(tars) - len(missing) - len(torn)
    return result_of(
        [
            CheckProblem(f"{plural_are(len(names), 'tar')} {what} ({some(names)})", again, Severity.ERROR)
            for what, names in (("missing", missing), ("not as written", torn))
            if names
        ],
        expected=len(tars),
        found=good,
        good=f"{good:,} of {len(tars):,} tars that are in use are in the staging area, with their sizes",
        numbers={"tars_missing": len(missing), "tars_torn": len(torn)},
    )
