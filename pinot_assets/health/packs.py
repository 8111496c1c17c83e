"""Checks of packs: what their next change needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pinot_assets.core.check_result import CheckResult, Severity, problem_if, result_of, some
from pinot_assets.core.text import counted, plural
from pinot_assets.core.waiting import in_threads
from pinot_assets.health.check import check
from pinot_assets.health.table_probe import TableProbe
from pinot_assets.session.stores.staged_files import THREADS
from pinot_assets.session.values.merges import is_open
from pinot_assets.snapshot.batch_receipt import rows_key
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import MemberList, members_key

FEW_OPEN = 8
"""Open packs of one read recipe and cell that merges leave at most (docs/design/layout.md#merges)."""


@check("Packs can change: the rows that they keep are in the staging area, and few of them are small.")
def packs(probe: TableProbe) -> CheckResult:
    """The member lists and rows objects of all packs are in the staging area, and few packs are open."""
    snapshot = probe.snapshot()
    if snapshot is None or not snapshot.packs:
        return result_of([], expected=0, found=0, good="the table has no packs", numbers={})
    staged, staging = probe.staged(), probe.staging()
    keys = {pack.name: members_key(pack.members) for pack in snapshot.packs}
    there = [key for key in keys.values() if key in staged]
    lists = dict(zip(there, in_threads(staging.members, there, THREADS, "member lists"), strict=True))
    small = _most_open(snapshot, lists, probe.spec.layout.target_bytes)
    lost = [name for name, key in keys.items() if not _is_whole(lists.get(key), staged)]
    found, merges = len(keys) - len(lost), probe.spec.layout.merge_bytes
    why = (
        "maxMergeBytes is 0 or pack is off"
        if not merges
        else "maxMergeBytes, a rollback or lost rows stopped merges"
    )
    where = f"kept rows of {counted(len(lost), 'pack is', 'packs are')} missing ({some(lost)})"
    problems = [
        *problem_if(
            lost,
            f"{where}: where files of them change, the others are read again or the change waits",
            "restore the objects below rows/ and packs/; or build every file again with a swap "
            "(consistentPushSwapEnabled: true)",
            Severity.ERROR,
        ),
        *problem_if(
            small > FEW_OPEN,
            f"{plural(small, 'pack')} of one read recipe are far below the target: {why}",
            f"`pinot-assets compact {probe.spec.name}` merges them",
        ),
    ]
    return result_of(
        problems,
        expected=len(keys),
        found=found,
        good=f"the rows of {plural(found, 'pack')} are kept, {small:,} of them small",
        numbers={"packs": len(keys), "packs_open": small, "packs_lost": len(lost)},
    )


def _is_whole(members: MemberList | None, staged: Mapping[str, int]) -> bool:
    return members is not None and all(rows_key(digest) in staged for digest in members.rows_objects)


def _most_open(snapshot: Snapshot, lists: Mapping[str, MemberList], target: int) -> int:
    """Return the number of open packs of the read recipe and cell that have most of them."""
    counts = Counter[tuple[str, str]]()
    for pack in snapshot.packs:
        members = lists.get(members_key(pack.members))
        if members is not None and is_open(pack.bytes, target):
            counts[members.read, members.cell] += 1
    return max(counts.values(), default=0)
