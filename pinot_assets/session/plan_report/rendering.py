"""What a run or a rollback would do, in words: for the terminal and for Dagster alike."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pinot_assets.audit.checks import MOST_PERCENT
from pinot_assets.core.check_result import some
from pinot_assets.core.text import plural, size
from pinot_assets.pinot.versions import HOUR_MS
from pinot_assets.session.checks.capacity import IDEAL_STATE_BYTES, LINEAGE_BYTES
from pinot_assets.session.decide.run_decision import PlannedAction
from pinot_assets.session.detect.observe import counts_text
from pinot_assets.session.plan_report.plan_report import FileChange, PlanReport
from pinot_assets.session.plan_report.switch_cost import Disk, Estimate, Sums, SwitchCost
from pinot_assets.session.recover.interrupted import rows_twice
from pinot_assets.session.rollback.rollback_plan import RollbackPlan, RollbackWay
from pinot_assets.session.values.outdated import CompactRequest, RebuildRequest, names_of
from pinot_assets.session.values.state import Mode, PushKind, utc_text
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.source.readiness import Unready
from pinot_assets.table_spec.changes.spec_changes import Verdict

SHOWN = 20
"""Names of each kind that are listed; `--json` lists all."""
FILES_SHOWN = 5
"""Files of a rollback that are named."""

MARKS = {
    "new": "+",
    "rewritten": "~",
    "deleted": "-",
    "touched": "=",
    "again": "r",
    "held": "h",
    "waiting": "…",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a label, which may be empty, and what it says; `warns` where it should be noticed."""

    label: str
    text: str
    warns: bool = False


def file_counts(plan: PlanReport) -> Iterator[Line]:
    """How many files of each kind, with their bytes."""
    yield Line("listed", f"{plural(plan.listed, 'file')} in {plan.source}")
    for kind in ("new", "rewritten", "deleted", "touched"):
        if files := plan.of_kind(kind):
            more = " (another fingerprint, the same content: not read again)" if kind == "touched" else ""
            yield Line(kind, f"{plural(len(files), 'file')}{_bytes_of(files)}{more}")
    if again := [row for row in plan.build if row.uri in plan.rebuilds]:
        amount = size(sum(row.planned.size for row in again))
        yield Line(
            "again", f"{plural(len(again), 'file')}, {amount}: the same content under a changed table spec"
        )
    if (small := plan.small) is not None:
        yield Line("small files", small, True)
    if plan.packs.new is not None:
        yield Line("packs", plan.packs.new.text)
    if text := plan.packs.changed.text:
        yield Line("" if plan.packs.new is not None else "packs", text, plan.packs.changed.is_much)
    if plan.packs.small_cells is not None:
        yield Line("cells", plan.packs.small_cells.text, True)
    for text in plan.decision.notes:
        yield Line("lost rows", text, True)
    if plan.packs.merged.packs:
        yield Line("merges", plan.packs.merged.text)
    if plan.expected is not None:
        yield Line("worker", plan.expected.text, plan.expected.is_large)
    if plan.held:
        yield Line("held back", f"{plural(len(plan.held), 'file')} after a rollback, until `resume`", True)
    looked = plan.decision.looked
    if looked is not None and looked.readiness.later:
        yield Line("not ready", f"{plural(len(looked.readiness.later), 'file')}, left for a later run")
    if looked is not None and looked.readiness.waiting:
        yield Line("waits for", plural(len(looked.readiness.waiting), "file"), True)


def file_lines(plan: PlanReport) -> Iterator[tuple[str, str, str]]:
    """The files one by one: mark, path below the input directory, versions; first ones of each kind, then how
    many more."""
    for kind in ("new", "rewritten", "deleted", "touched"):
        yield from _some(kind, [(_below(plan, c.uri), _versions(c)) for c in plan.of_kind(kind)])
    again = [row for row in plan.build if row.uri in plan.rebuilds]
    yield from _some("again", [(_below(plan, row.uri), version_words(row.planned)) for row in again])
    yield from _some("held", [(_below(plan, c.uri), _versions(c)) for c in plan.held])
    looked = plan.decision.looked
    unready: tuple[Unready, ...] = (*looked.readiness.later, *looked.readiness.waiting) if looked else ()
    yield from _some("waiting", [(_below(plan, u.uri), u.why) for u in unready])


def amounts(plan: PlanReport) -> Iterator[Line]:
    """Segments, rows and bytes, before and after."""
    if (switch := plan.switching) is None:
        return
    planned = plan.planned
    about = "about " if switch.unread else ""
    after = len(planned.visible) - len(planned.segments_from) - len(planned.strays) + len(switch.added)
    yield Line(
        "segments",
        f"{len(planned.visible):,} → {about}{after:,}: {len(planned.segments_from):,} replaced, "
        f"{about}{len(switch.added):,} new",
    )
    yield Line("rows", _sums(switch.rows, "{:,}".format))
    yield Line("bytes", f"{_sums(switch.bytes, size)}; of one replica")


def spec_lines(plan: PlanReport) -> Iterator[Line]:
    """What was changed in the table spec since published files were built, and what a rebuild takes."""
    for change in plan.spec_changes[:SHOWN]:
        yield Line(change.verdict, str(change), warns=change.verdict is Verdict.REFUSED)
    if len(plan.spec_changes) > SHOWN:
        yield Line("", f"and {len(plan.spec_changes) - SHOWN:,} more; --json lists all")
    if (unknown := plan.unknown).segments:
        differ = some([f"{reason}, in {count:,}" for reason, count in unknown.differ.items()], shown=SHOWN)
        found = f"metadata of {unknown.compared:,} compared: {differ or 'as the spec says'}"
        if not unknown.compared:
            found = "not compared, because no server reported their metadata"
        yield Line(
            "unknown", f"{plural(unknown.segments, 'segment')} of releases that stored no recipe; {found}"
        )
    need = plan.need
    if need.possible.older:
        yield Line("outdated", str(need.possible))
        again = need.possible.only([file for file in need.possible.files if file.uri in plan.rebuilds])
        if again.older:
            yield Line("this run", f"builds again: {again.effort}")
        else:
            command = f"`pinot-assets rebuild {plan.planned.table}`"
            yield Line("a rebuild", f"{need.possible.effort} ({command})")
    if need.gone.older:
        names = names_of(need.gone.files, FILES_SHOWN)
        yield Line(
            "source gone", f"{need.gone}; their files are not in the source, so they stay: {names}", True
        )


def mode_lines(plan: PlanReport) -> Iterator[tuple[str, str, str, str]]:
    """Mode, what it would build, what it would remove, and a remark; this table's own is marked."""
    for mode in plan.modes:
        mark = "this table's mode" if mode.mode is plan.planned.mode else mode.why_not
        builds = f"{plural(mode.builds, 'file')}, {size(mode.build_bytes)}"
        yield mode.mode.lower(), builds, plural(mode.removes, "segment"), mark


def room_lines(plan: PlanReport) -> Iterator[Line]:
    """Quota, disks, and the two nodes of ZooKeeper."""
    if (switch := plan.switching) is None:
        return
    room, over = switch.room, f"over {plural(switch.room.replication, 'replica')}"
    if room.present is None or room.at_peak is None or room.later is None:
        coming = _amount(room.coming, size)
        yield Line("storage", f"not known: no server reports the size of the table; {coming} would be added")
    else:
        peak, later = _amount(room.at_peak, size), _amount(room.later, size)
        yield Line(
            "storage",
            f"{size(room.present)} → {peak} at the switch, {later} when Pinot has deleted what "
            f"was replaced; {over}{_if_estimated(room.coming)}",
        )
    sure = room.at_peak is not None and room.at_peak.exact
    too_much = (
        "the run would be refused before it pushes" if sure else "if the estimate is right, it is refused"
    )
    fits = {True: "fits", False: f"DOES NOT FIT: {too_much}", None: "it is not known whether it fits"}
    if room.quota is None:
        yield Line("quota", "none is set (quota.storage)")
    else:
        yield Line("quota", f"{size(room.quota)} {over}: {fits[room.fits]}", warns=room.fits is False)
    yield from _disk_lines(room.disks)
    yield from _node_lines(switch, plan.planned.push)


def _disk_lines(disks: Sequence[Disk]) -> Iterator[Line]:
    """Yield a line for each disk, and one for all servers that say nothing for the same reason."""
    silent = Counter(disk.why_not for disk in disks if disk.free is None)
    spoken = [(disk, disk.free) for disk in disks if disk.free is not None]
    for disk, free in spoken[:SHOWN]:
        yield _disk_line(disk, free)
    if len(spoken) > SHOWN:
        yield Line("", f"and {len(spoken) - SHOWN:,} more servers")
    for why, servers in silent.items():
        yield Line("disk", f"of {plural(servers, 'server')}: not known ({why})")


def _disk_line(disk: Disk, free: int) -> Line:
    if disk.after is None or disk.loading is None:
        return Line("disk", f"{disk.server}: {size(free)} free → not known")
    text = f"{disk.server}: {size(free)} free → {size(disk.after)} (equal shares)"
    if disk.fits:
        return Line("disk", text)
    tars = f", {size(disk.after - disk.loading)} with the tars while they load"
    return Line("disk", f"{text}{tars}: DOES NOT FIT", warns=True)


def _node_lines(switch: SwitchCost, push: PushKind) -> Iterator[Line]:
    about = "about " if switch.unread else ""
    if push is PushKind.PLAIN:
        yield Line("lineage", "an entry for each file that replaces something (plain push)")
    else:
        most = f"more than {size(LINEAGE_BYTES)} is refused"
        yield Line(
            "lineage",
            f"{about}{size(switch.lineage_bytes)}, {size(switch.entry_bytes)} of it the new entry; {most}",
            warns=switch.lineage_bytes > LINEAGE_BYTES // 2,
        )
    ideal = switch.ideal_state
    packed = f", compressed by Pinot: {size(ideal.stored_bytes)}" if ideal.packed else ""
    yield Line(
        "ideal state",
        f"about {size(ideal.text_bytes)}{packed}, {plural(ideal.segments, 'segment')} with the "
        "hidden ones; ZooKeeper accepts 1 MiB",
        warns=ideal.stored_bytes > IDEAL_STATE_BYTES // 2,
    )


def risk_lines(plan: PlanReport) -> Iterator[Line]:
    """What it spends and what it takes away for good."""
    planned, decision, (used, most) = plan.planned, plan.decision, plan.retries
    if decision.step is PlannedAction.RETRY:
        yield Line("retries", f"spends one: {used + 1} of {most} then", warns=used + 1 >= most)
    elif decision.step is PlannedAction.RESTART:
        new = f"; the new session has {most}" if decision.plan is not None else ""
        yield Line("retries", f"the session is given up after {used} of {most}{new}", warns=True)
    elif decision.session is not None:
        yield Line("retries", f"spends none: {used} of {most} used")
    session, goes_on = decision.session, decision.step in (PlannedAction.CONTINUE, PlannedAction.RETRY)
    if goes_on and session is not None and session.audit is not None and not session.audit.passed:
        yield Line("last audit", f"kept the gate shut: {session.audit.summary}", warns=True)
    yield from _shrinking(plan)
    label = "way back"
    if plan.revert_until_ms is not None:
        yield Line(label, f"now: by one revert until {utc_text(plan.revert_until_ms)}")
        label = ""
    if (switch := plan.switching) is not None:
        yield Line(label, _way_back(plan, switch))
        yield _doomed(switch)
    elif decision.plan is not None:
        audited = ", if that passes the audit" if planned.to_build or decision.plan.done else ""
        yield Line(
            "no switch",
            "no segment is added or replaced, and none needs to be: the ledger records what was "
            f"seen{audited}",
        )
    if planned.strays:
        strays = plural(len(planned.strays), "segment")
        yield Line("strays", f"{strays} in no snapshot: deleted first", warns=True)
    if planned.shadow:
        yield Line("shadow table", f"{planned.shadow}, which an audit left: deleted first")
    if plan.expiring:
        names = [f"cp{header.seq}" for header in plan.expiring]
        more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
        yield Line(
            "deletes",
            f"after the switch, {plural(len(names), 'snapshot')} with the tars that only they "
            "need, for good (snapshotsToKeep, snapshotDaysToKeep): "
            f"{', '.join(names[:SHOWN])}{more}",
            warns=True,
        )
    if planned.beside:
        yield Line("rows twice", rows_twice(planned.beside), warns=True)
    if planned.refused is not None:
        yield Line("refused", planned.refused.reason, warns=True)
        if planned.refused.hint is not None:
            yield Line("", f"→ {planned.refused.hint}")
    if plan.holder is not None:
        yield Line(
            "lease", f"held by {plan.holder}: no run can begin until it releases the lease", warns=True
        )


def _shrinking(plan: PlanReport) -> Iterator[Line]:
    """Rewritten files that lost most of their bytes: whether their rows, too, only the build can tell."""
    if plan.planned.mode is Mode.APPEND:
        return
    to_build = {row.uri for row in plan.planned.to_build}
    small = [
        change
        for change in plan.of_kind("rewritten")
        if change.uri in to_build and change.before is not None and change.after is not None
        if 100 * (change.before.size - change.after.size) > MOST_PERCENT * change.before.size
    ]
    if small:
        first = small[0]
        more = f" and {len(small) - 1} more" if len(small) > 1 else ""
        yield Line(
            "gate",
            "stays shut if rows are lost in the same proportion as bytes, by more than "
            f"{MOST_PERCENT}%: {_below(plan, first.uri)} {_versions(first)}{more}",
            warns=True,
        )


def _way_back(plan: PlanReport, switch: SwitchCost) -> str:
    if plan.decision.current is None:
        return "after the switch: none, this is the first snapshot"
    republish = "later by publishing the kept tars again"
    if plan.planned.push is PushKind.PLAIN:
        return f"afterwards: no revert, because files become visible one by one; {republish}"
    if switch.prunes:
        return "after the switch: publish the kept tars again; no revert, because brokers prune segments"
    if not switch.revert_ms:
        return f"after the switch: no revert, because Pinot deletes at once what is replaced; {republish}"
    hours = f"{switch.revert_ms / HOUR_MS:g} h"
    until = utc_text(plan.now_ms + switch.revert_ms)
    return f"after the switch: by one revert for {hours} (until {until} if it switched now); {republish}"


def _doomed(switch: SwitchCost) -> Line:
    doomed = switch.force_cleanup_loss
    if not doomed.segments:
        return Line("forced start", "deletes nothing: there is no older snapshot to delete")
    when = "before anything is pushed" if doomed.at_start else "right before the switch"
    return Line(
        "forced start",
        f"{when}, deletes {plural(len(doomed.segments), 'segment')} of the snapshot before the "
        f"current one, {size(doomed.bytes)}: a revert to that snapshot is then impossible",
        warns=True,
    )


SECTIONS: Final = {
    "the table spec": spec_lines,
    "the switch": amounts,
    "room": room_lines,
    "what it spends, and how to go back": risk_lines,
}
"""Behind the files, in this order, each under its title."""


def command(plan: PlanReport) -> str:
    """What runs exactly this plan."""
    table, basis = plan.planned.table, plan.planned.plan_basis
    match plan.request:
        case RebuildRequest(files):
            named = f" --files {shlex.quote(files)}" if files else ""
            return f"pinot-assets rebuild {table}{named} --plan {basis.hash}"
        case CompactRequest():
            return f"pinot-assets compact {table} --plan {basis.hash}"
        case None:
            return f"pinot-assets run {table} --plan {basis.hash}"


# --- pieces ----------------------------------------------------------------------------------------


def version_words(fingerprint: Fingerprint) -> str:
    """A version for people: its size and the token that receipts have."""
    return f"{size(fingerprint.size)} {fingerprint.token}"


def _sums(sums: Sums, show: Callable[[int], str]) -> str:
    after, removed, added = (_amount(a, show) for a in (sums.after, sums.removed, sums.added))
    return f"{show(sums.now)} → {after}: {removed} removed, {added} added{_if_estimated(sums.added)}"


def _amount(amount: Estimate, show: Callable[[int], str]) -> str:
    if amount.total is None:
        return f"unknown (at least {show(amount.known)})" if amount.known > 0 else "unknown"
    return show(amount.total) if amount.exact else f"about {show(amount.total)}"


def _below(plan: PlanReport, uri: str) -> str:
    return uri.removeprefix(f"{plan.source.removesuffix('/')}/")


def _if_estimated(amount: Estimate) -> str:
    return "" if amount.exact or amount.total is None else " (estimated from the published files)"


def _versions(change: FileChange) -> str:
    return " → ".join(version_words(side) for side in (change.before, change.after) if side is not None)


def _bytes_of(changes: list[FileChange]) -> str:
    before = sum(c.before.size for c in changes if c.before is not None)
    after = sum(c.after.size for c in changes if c.after is not None)
    if changes[0].before is None or changes[0].after is None:  # of one kind: all are
        return f", {size(before + after)}"
    return f", {size(before)} → {size(after)}"


def _some(kind: str, rows: list[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    for uri, text in rows[:SHOWN]:
        yield MARKS[kind], uri, text
    if len(rows) > SHOWN:
        yield "", f"and {len(rows) - SHOWN:,} more ({kind})", ""


def way_lines(way: RollbackPlan, now_ms: int) -> Iterator[tuple[str, str]]:
    """Labels and texts, one pair for a line."""
    yield "now", snapshot_line(way.current.snapshot)
    yield "back to", snapshot_line(way.target.snapshot)
    if way.way is RollbackWay.REVERT and way.until_ms is not None:
        left = (way.until_ms - now_ms) / HOUR_MS
        yield "way", f"revert of lineage entry {way.entry_id}: at once, nothing is pushed"
        yield "open", f"until {utc_text(way.until_ms)}, for {left:.1f} h"
    elif way.way is RollbackWay.REVERT:
        yield "way", "a revert that was interrupted; it is finished"
    elif way.way is RollbackWay.REPUBLISH:
        size = f"{sum(o.tar_bytes for o in way.comes) / 1024**2:,.1f} MB"
        yield "way", f"re-publish of {len(way.comes):,} staged segments ({size}) under new names, no Spark"
        no_revert = way.no_revert or "brokers prune segments, and would show too few rows for a moment"
        yield "", f"no revert: {no_revert}"
    else:
        yield "way", f"none; {way.why_not}"
    if way.drops is not None and way.way is not None:
        yield "drops", f"open session {way.drops.id}, {counts_text(way.drops)}; what it built is deleted"
    yield "goes", _files(way.files_go, len(way.goes))
    yield "comes", _files(way.files_come, len(way.comes))
    for number, line in enumerate(way.spec.lines if way.spec is not None else ()):
        yield "" if number else "spec", line


def snapshot_line(snapshot: Snapshot) -> str:
    """One line."""
    what = f"{plural(len(snapshot.ledger), 'file')}, {plural(snapshot.rows, 'row')}"
    return f"{snapshot.session} ({snapshot.mode}) of {utc_text(snapshot.published_ms)}: {what}"


def rollback_way_text(way: RollbackPlan) -> str:
    """How a kept snapshot is reached, in a few words."""
    if way.current.ref == way.target.ref:
        return "current"
    if way.way is RollbackWay.REVERT and way.until_ms is not None:
        return f"revert until {utc_text(way.until_ms)}"
    return str(way.way) if way.way is not None else f"not: {way.why_not}"


def _files(files: Sequence[PublishedFile], segments: int) -> str:
    rows = sum(f.rows for f in files)
    text = f"{plural(len(files), 'file')}, {plural(rows, 'row')}, {plural(segments, 'segment')}"
    named = ", ".join(f.uri.rsplit("/", 1)[-1] for f in files[:FILES_SHOWN])
    more = f" and {len(files) - FILES_SHOWN:,} more" if len(files) > FILES_SHOWN else ""
    return f"{text}: {named}{more}" if named else text
