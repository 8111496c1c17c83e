"""Checks of the staged, still hidden segments before they may be switched to (W4).

Each check is one pure function of what was built and what Pinot shows now.

Those from `RowsSeen` on check how a switch would change the rows that queries see (tier 1). Without any
configuration, files that lose their rows or a column shut the gate: a file that its writer cut off looks like
a small file, and a mistake in a filter or a pattern removes rows of unchanged files. If the table spec has a
check of that name with `severity: warn`, the finding is shown and the gate opens.
These findings concern the data: a file that was rewritten since is read again, without spending a retry.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pinot_assets.core.check_result import CheckResult, Severity, base_name, some
from pinot_assets.core.text import counted, plural
from pinot_assets.errors import PinotError, PinotUnreachable
from pinot_assets.pinot.lineage import Replicas
from pinot_assets.snapshot.receipt import Failure, Output, Receipt
from pinot_assets.table_spec.blocks.audit import Loss, LossName, RowChange


@dataclass(frozen=True, slots=True)
class Finding(CheckResult):
    """The answer of one check of the gate. Its severity is WARN if a failure should only be shown.

    :ivar at_fault: segments that are not what was built. A failed finding that names neither segments nor
        files waits for something: servers that still load, a segment that will be pushed again (rules
        R10, R14).
    :ivar files: URIs of files that were not built as they should be, whatever happened to their segments.
    :ivar of_data: other rows in the files could pass; so a file that was rewritten since is read again.
    """

    severity: Severity = Severity.ERROR
    at_fault: tuple[str, ...] = ()
    of_data: bool = False
    files: tuple[str, ...] = ()

    @property
    def blames(self) -> bool:
        """Whether it names something that must be built again."""
        return bool(self.at_fault or self.files)

    @property
    def warns(self) -> bool:
        """Whether the check only warns: its failure does not shut the gate."""
        return self.severity is Severity.WARN


def files_built(planned: int, failures: Sequence[Failure]) -> Finding:
    """Check that every file of the session is built: all or none (I1)."""
    bad = [f"{base_name(f.uri)}: {f.code}: {f.reason}" for f in failures]
    return finding_of("files_built", planned, bad, "files are built")


def rows_kept(receipts: Collection[Receipt]) -> Finding:
    """Check that no row was put aside as bad; the table spec may allow such rows, so this only warns."""
    bad = [f"{base_name(r.uri)}: {r.bad_rows:,} in {r.bad_rows_uri}" for r in receipts if r.bad_rows]
    rows = sum(receipt.rows for receipt in receipts)
    every = rows + sum(receipt.bad_rows for receipt in receipts)
    finding = finding_of("rows_kept", every, bad, "rows of the files are in the segments", found=rows)
    return replace(finding, severity=Severity.WARN)


def tars_in_place(outputs: Sequence[Output], sizes: Mapping[str, int | None]) -> Finding:
    """Check that every tar to be pushed is where it was staged, with its size.

    :param sizes: size by tar URI, None for a tar that is not there.
    """
    bad = [
        f"{o.segment} has {sizes.get(o.tar_uri)} bytes staged instead of {o.tar_bytes}"
        for o in outputs
        if sizes.get(o.tar_uri) != o.tar_bytes
    ]
    return finding_of("tars_in_place", len(outputs), bad, "tars are in place")


def replicas_online(outputs: Sequence[Output], replicas: Replicas) -> Finding:
    """Check that every replica of every segment is ONLINE (Pinot's own end waits for one replica only)."""
    states = [
        (o.segment, server, state)
        for o in outputs
        for server, state in (replicas.get(o.segment) or {"no server": "MISSING"}).items()
    ]
    states.sort(key=lambda row: row[2] != "ERROR")  # so that the message names replicas in ERROR first
    bad = [f"{segment} is {state} on {server}" for segment, server, state in states if state != "ONLINE"]
    broken = [segment for segment, _, state in states if state == "ERROR"]
    return finding_of("replicas_online", len(states), bad, "replicas are ONLINE", broken)


def one_replica_online(outputs: Sequence[Output], replicas: Replicas, away: Collection[str]) -> Finding:
    """Check that every segment has an ONLINE replica on a server that answers, and none in ERROR.

    :param away: servers that do not answer.
    """
    bad, broken = [], []
    for output in outputs:
        states = replicas.get(output.segment) or {}
        if wrong := sorted(server for server, state in states.items() if state == "ERROR"):
            bad.append(f"{output.segment} is ERROR on {', '.join(wrong)}")
            broken.append(output.segment)
        elif not any(state == "ONLINE" and server not in away for server, state in states.items()):
            bad.append(f"{output.segment} is ONLINE on no server that answers")
    good = "segments have a replica that is ONLINE"
    return finding_of("one_replica_online", len(outputs), bad, good, broken)


def servers_answered(servers: Collection[str], away: Mapping[str, PinotError]) -> Finding:
    """Check that every server that should have a segment reports what it has loaded.

    :param away: the error of each server that did not answer.
    """
    bad = [f"{server} did not answer: {_why_away(error)}" for server, error in sorted(away.items())]
    return finding_of("servers_answered", len(servers), bad, "servers say what they have loaded")


def _why_away(error: PinotError) -> str:
    """Return why a server did not answer; of a refusal, also what to do. One that is down says enough."""
    return error.reason if isinstance(error, PinotUnreachable) else error.in_one_line


def crc_on_servers(
    outputs: Sequence[Output], replicas: Replicas, crcs: Mapping[str, Mapping[str, int]]
) -> Finding:
    """Check that every ONLINE replica has the built CRC: a server loads what it downloaded, whatever Pinot's
    metadata say.

    :param crcs: server → segment → CRC as loaded, of the servers that answered.
    """
    loaded = [
        (o, server, crcs[server].get(o.segment))
        for o in outputs
        for server, state in replicas.get(o.segment, {}).items()
        if state == "ONLINE" and server in crcs
    ]
    bad = [
        f"{o.segment} is not loaded on {server}"
        if crc is None
        else f"{o.segment} has CRC {crc} on {server} instead of {o.crc}"
        for o, server, crc in loaded
        if crc != o.crc
    ]
    other = [o.segment for o, _, crc in loaded if crc not in (None, o.crc)]
    return finding_of("crc_on_servers", len(loaded), bad, "replicas have the built CRC", other)


def crc_as_built(outputs: Sequence[Output], crcs: Mapping[str, int]) -> Finding:
    """Check that Pinot has exactly the segments that were built, by their CRCs."""
    bad = [
        f"{o.segment} has CRC {crcs.get(o.segment)} instead of {o.crc}"
        for o in outputs
        if crcs.get(o.segment) != o.crc
    ]
    other = [o.segment for o in outputs if crcs.get(o.segment, o.crc) != o.crc]
    return finding_of("crc_as_built", len(outputs), bad, "segments have the built CRC", other)


def rows_as_built(outputs: Sequence[Output], rows: Mapping[str, Mapping[str, int]]) -> Finding:
    """Check that every server that answers loaded as many documents as the task wrote."""
    expected = sum(o.rows * max(1, len(rows.get(o.segment, {}))) for o in outputs)
    found = sum(n for o in outputs for n in rows.get(o.segment, {}).values())
    bad = [f"{o.segment} is loaded on no server" for o in outputs if not rows.get(o.segment)]
    bad += [
        f"{o.segment} has {plural(n, 'row')} on {server} instead of {o.rows:,}"
        for o in outputs
        for server, n in rows.get(o.segment, {}).items()
        if n != o.rows
    ]
    other = [o.segment for o in outputs if any(n != o.rows for n in rows.get(o.segment, {}).values())]
    good = "rows over all replicas are as built"
    return finding_of("rows_as_built", expected, bad, good, other, found)


def sources_unchanged(segments_from: Sequence[str], visible: frozenset[str]) -> Finding:
    """Check that every segment that will be replaced is still there and visible (rules R5, R8)."""
    bad = [f"{name} is missing or hidden" for name in segments_from if name not in visible]
    return finding_of("sources_unchanged", len(segments_from), bad, "segments to be replaced are in place")


def finding_of(
    name: str,
    expected: int,
    bad: Sequence[str],
    good: str,
    at_fault: Sequence[str] = (),
    found: int | None = None,
) -> Finding:
    """Return a finding with its message.

    :param bad: what is wrong, one text each; none: it passed. The message has the first three.
    :param good: what the numbers count.
    :param found: how many are good; None: all but the bad ones.
    """
    found = expected - len(bad) if found is None else found
    counts = f"{found:,} of {expected:,} {good}"
    if not bad:
        return Finding(name, True, expected, found, counts)
    message = f"{counts}: {some(bad, between='; ')}"
    return Finding(name, False, expected, found, message, at_fault=tuple(dict.fromkeys(at_fault)))


@dataclass(frozen=True, slots=True)
class RowsSeen:
    """Rows of something that queries see before and after the switch."""

    now: int
    after: int

    @property
    def percent(self) -> float:
        """Return the change in percent, `inf` if there were no rows and there are some."""
        gained = self.after - self.now
        return 100 * gained / self.now if self.now else math.inf if gained else 0.0


def row_change(bound: RowChange, counts: Mapping[str, RowsSeen]) -> Finding:
    """Check that rows change by no more than allowed.

    :param counts: rows of each compared thing: by the table's name, or by the URIs of rewritten files.
        Without rows before there is no change to judge.
    """
    judged = {what: rows for what, rows in counts.items() if rows.now}
    bad = [
        f"{base_name(what)} {row_words(rows)}"
        for what, rows in judged.items()
        if (bound.min is not None and rows.percent < bound.min)
        or (bound.max is not None and rows.percent > bound.max)
    ]
    expected, found = sum(r.now for r in judged.values()), sum(r.after for r in judged.values())
    least, most = ("any" if end is None else f"{end:+g}%" for end in (bound.min, bound.max))
    allowed = f"{least} to {most}"
    name = f"row_change of {bound.of} ({allowed})"
    if not judged:
        what = "no published file is rewritten" if bound.of == "file" else "nothing is published yet"
        return Finding(name, True, 0, 0, f"{what}: there is no change to judge")
    said = some(bad, between="; ") if bad else row_words(RowsSeen(expected, found))
    message, severity = f"{said}, where {allowed} is allowed", Severity(bound.severity.upper())
    return Finding(name, not bad, expected, found, message, severity=severity, of_data=True)


def row_words(rows: RowsSeen) -> str:
    """Return the change in words, with its percentage if there were rows."""
    share = f" ({rows.percent:+.3g}%)" if rows.now else ""
    return f"changes from {rows.now:,} to {rows.after:,} rows{share}"


MOST_PERCENT: Final = 90
"""A file, or a table, that loses more than this share of its rows shuts the gate."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A published file that was built again, because its content or the table spec changed.

    :ivar receipt: receipt of its new version.
    :ivar rows: rows of its published version.
    :ivar former: receipt of its published version; None if it is not kept, or was not asked for.
    :ivar same_content: whether the content is the published one, so that the table spec made the difference.
    """

    receipt: Receipt
    rows: int
    former: Receipt | None = None
    same_content: bool = False

    @property
    def counts(self) -> RowsSeen:
        """Return its rows before and after the switch."""
        return RowsSeen(self.rows, self.receipt.rows)

    @property
    def vanished(self) -> tuple[str, ...]:
        """Return the columns that had values in the published version and have none in the new one.

        Without the published version's receipt, every column without values counts as one that had some.
        """
        if (former := self.former) is None:
            return self.suspects
        return tuple(name for name in self.suspects if _had_values(former, name, self.receipt))

    @property
    def suspects(self) -> tuple[str, ...]:
        """Return the table's columns without a value in the new version, if both versions have rows."""
        if not self.rows or not self.receipt.rows:
            return ()
        columns = {column.name for facts in self.receipt.facts for column in facts.columns}
        return tuple(name for name in self.receipt.missing if name in columns or not columns)


def emptied_files(rewritten: Collection[Rewritten], bound: Loss | None) -> Finding:
    """Check that every rewritten file that had rows still has some."""
    had = [file for file in rewritten if file.rows]
    bad = [(file, row_words(file.counts)) for file in had if not file.receipt.rows]
    return _loss_of_files("emptied_files", had, bad, "that had rows still have some", bound)


def shrunk_files(rewritten: Collection[Rewritten], bound: Loss | None) -> Finding:
    """Check that no rewritten file that still has rows loses more than 90 % of them."""
    left = [file for file in rewritten if file.rows and file.receipt.rows]
    bad = [(file, row_words(file.counts)) for file in left if _shrinks(file.counts)]
    good = f"keep {100 - MOST_PERCENT}% of their rows or more"
    return _loss_of_files("shrunk_files", left, bad, good, bound)


def vanished_columns(rewritten: Collection[Rewritten], bound: Loss | None) -> Finding:
    """Check that no column with values in a file's published version is null in all rows of the new one."""
    unknown = " (the row count of its published version is not known)"
    bad = [
        (file, f"has no value in {', '.join(file.vanished)}{unknown if file.former is None else ''}")
        for file in rewritten
        if file.vanished
    ]
    good = "have values in the columns that had some"
    return _loss_of_files("vanished_columns", rewritten, bad, good, bound)


def shrunk_table(table: str, counts: RowsSeen, bound: Loss | None, cause: str = "") -> Finding:
    """Check that the table keeps at least a tenth of its rows.

    :param counts: rows of the last snapshot, and of the new one.
    :param cause: how the table spec contributed, "" if it did not.
    """
    bad = [f"{table} {row_words(counts)}"] if _shrinks(counts) else []
    good = (
        f"rows of the table's last snapshot are kept or replaced; at least {100 - MOST_PERCENT}% have to be"
    )
    finding = finding_of("shrunk_table", counts.now, bad, good, found=min(counts.now, counts.after))
    return _allowed_by("shrunk_table", finding, cause, bound)


def _had_values(former: Receipt, name: str, new: Receipt) -> bool:
    """Whether a column without a value in the new version had some in the published one.

    Receipts of earlier releases do not name a column that the file has and that is null in all rows. Its
    smallest and largest value are then the default ones, as in the new version.
    """
    if name in former.missing:
        return False
    if not former.facts:
        return True
    bounds = _lowest_and_highest(former, name)
    default = _lowest_and_highest(new, name)
    return bool(bounds) and (bounds != default or (None, None) in bounds)


def _lowest_and_highest(receipt: Receipt, name: str) -> set[tuple[str | None, str | None]]:
    """Return smallest and largest value of a column, for each segment."""
    columns = (column for facts in receipt.facts for column in facts.columns)
    return {(column.low, column.high) for column in columns if column.name == name}


def _shrinks(counts: RowsSeen) -> bool:
    return 100 * (counts.now - counts.after) > MOST_PERCENT * counts.now


def _loss_of_files(
    name: LossName,
    judged: Collection[Rewritten],
    bad: Collection[tuple[Rewritten, str]],
    good: str,
    bound: Loss | None,
) -> Finding:
    what = "files built again" if any(file.same_content for file in judged) else "rewritten files"
    texts = [f"{base_name(file.receipt.uri)} {words}" for file, words in bad]
    finding = finding_of(name, len(judged), texts, f"{what} {good}")
    same = sum(file.same_content for file, _ in bad)
    has = counted(same, "file has", "files have")
    cause = f"{has} the published content, and the table spec was changed" if same else ""
    return _allowed_by(name, finding, cause, bound)


def _allowed_by(name: LossName, finding: Finding, cause: str, bound: Loss | None) -> Finding:
    if finding.passed:
        return finding
    text = f"{finding.message}; {cause}" if cause else finding.message
    word = f"{{check: {name}, severity: warn}}"
    if bound is not None and bound.severity == "warn":
        message = f"{text}; allowed by {word} in audit:"
        return replace(finding, message=message, severity=Severity.WARN, of_data=True)
    where = "in the table spec or at the source" if cause else "at the source"
    message = f"{text}; correct it {where}, or allow it with - {word} in audit: of the table spec"
    return replace(finding, message=message, of_data=True)
