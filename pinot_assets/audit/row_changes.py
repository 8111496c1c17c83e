"""How the rows that queries see would change by a switch (tier 1).

Files that lose their rows or a column keep the gate shut without configuration. A file cut off by its
writer looks like a small file, and a filter or a pattern with a slip in it takes rows of files that are as
they were.
A check of that name with `severity: warn` in the table spec lets the switch through, and still tells.

What checks find is said of the data: a file that is rewritten since is read again, and no retry is spent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pinot_assets.audit.checks import Finding, finding_of
from pinot_assets.core.check_result import Severity, base_name, some
from pinot_assets.core.text import counted
from pinot_assets.snapshot.receipt import Receipt
from pinot_assets.table_spec.blocks.audit import Loss, LossName, RowChange


@dataclass(frozen=True, slots=True)
class RowsSeen:
    """Rows that queries see of something before the switch, and after it."""

    now: int
    after: int

    @property
    def percent(self) -> float:
        """The change; of nothing there is none."""
        return 100 * (self.after - self.now) / self.now


def row_change(bound: RowChange, seen: Mapping[str, RowsSeen]) -> Finding:
    """Rows change by no more than they may.

    :param seen: rows of each thing that is looked at: by the table's name, or by the URIs of rewritten files.
        Where nothing was before, there is no change to be judged.
    """
    judged = {what: rows for what, rows in seen.items() if rows.now}
    bad = [
        f"{base_name(what)} {row_words(rows)}"
        for what, rows in judged.items()
        if (bound.min is not None and rows.percent < bound.min)
        or (bound.max is not None and rows.percent > bound.max)
    ]
    expected, found = sum(r.now for r in judged.values()), sum(r.after for r in judged.values())
    least, most = ("any" if end is None else f"{end:+g}%" for end in (bound.min, bound.max))
    wanted = f"{least} to {most}"
    name = f"row_change of {bound.of} ({wanted})"
    if not judged:
        what = "no published file is rewritten" if bound.of == "file" else "nothing is live yet"
        return Finding(name, True, 0, 0, f"{what}: no change to be judged")
    said = some(bad, between="; ") if bad else row_words(RowsSeen(expected, found))
    message, severity = f"{said}, where {wanted} is allowed", Severity(bound.severity.upper())
    return Finding(name, not bad, expected, found, message, severity=severity, of_data=True)


def row_words(rows: RowsSeen) -> str:
    """The change in words, of something that had rows."""
    return f"goes from {rows.now:,} to {rows.after:,} rows ({rows.percent:+.3g}%)"


MOST_PERCENT: Final = 90
"""A file, or a table, that loses a larger part of its rows than this is held back."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A published file that was built again, since its content is another one now or the table spec is.

    :ivar receipt: of its new version.
    :ivar rows: those of its published version.
    :ivar former: the receipt of its published version; None where it is not kept, or was not asked for.
    :ivar same_content: whether its content is the published one: what differs is the table spec's doing.
    """

    receipt: Receipt
    rows: int
    former: Receipt | None = None
    same_content: bool = False

    @property
    def seen(self) -> RowsSeen:
        """Its rows before and after the switch."""
        return RowsSeen(self.rows, self.receipt.rows)

    @property
    def vanished(self) -> tuple[str, ...]:
        """Columns without a value in the new version that had some in the published one.

        Where no receipt of that is kept, a column that the new version lacks counts as one that had some.
        """
        former = self.former
        if former is None:
            return self.suspects
        return tuple(name for name in self.suspects if _had_values(former, name, self.receipt))

    @property
    def suspects(self) -> tuple[str, ...]:
        """Columns of the table without a value in the new version, of a file that has rows in both."""
        if not self.rows or not self.receipt.rows:
            return ()
        columns = {column.name for facts in self.receipt.facts for column in facts.columns}
        return tuple(name for name in self.receipt.missing if name in columns or not columns)


def emptied_files(rewritten: Collection[Rewritten], bound: Loss | None) -> Finding:
    """Every rewritten file that had rows still has some."""
    had = [file for file in rewritten if file.rows]
    bad = [(file, row_words(file.seen)) for file in had if not file.receipt.rows]
    return _of_files("emptied_files", had, bad, "that had rows still have some", bound)


def shrunk_files(rewritten: Collection[Rewritten], bound: Loss | None) -> Finding:
    """No rewritten file that still has rows loses more than 90 % of them."""
    left = [file for file in rewritten if file.rows and file.receipt.rows]
    bad = [(file, row_words(file.seen)) for file in left if _shrinks(file.seen)]
    good = f"keep {100 - MOST_PERCENT}% of their rows or more"
    return _of_files("shrunk_files", left, bad, good, bound)


def vanished_columns(rewritten: Collection[Rewritten], bound: Loss | None) -> Finding:
    """No column that had values in the published version of a file is null in all rows of the new one."""
    unknown = " (what its published version had is not known)"
    bad = [
        (file, f"has no value in {', '.join(file.vanished)}{unknown if file.former is None else ''}")
        for file in rewritten
        if file.vanished
    ]
    good = "have values in the columns that had some"
    return _of_files("vanished_columns", rewritten, bad, good, bound)


def shrunk_table(table: str, seen: RowsSeen, bound: Loss | None, cause: str = "") -> Finding:
    """The table keeps a tenth of its rows at the least.

    :param seen: rows of the last snapshot, and of the new one.
    :param cause: what the table spec has to do with it, "" for nothing.
    """
    bad = [f"{table} {row_words(seen)}"] if _shrinks(seen) else []
    good = f"rows of the table's last snapshot are kept or replaced, of which {100 - MOST_PERCENT}% must be"
    finding = finding_of("shrunk_table", seen.now, bad, good, found=min(seen.now, seen.after))
    return _of("shrunk_table", finding, cause, bound)


def _had_values(former: Receipt, name: str, new: Receipt) -> bool:
    """Whether a column without a value in the new version had some in the published one.

    A receipt of an earlier release does not name a column that the file has and that is null throughout. Its
    smallest and largest value are then the default ones, as in the new version.
    """
    if name in former.missing:
        return False
    if not former.facts:
        return True
    bounds = _bounds(former, name)
    default = _bounds(new, name)
    return bool(bounds) and (bounds != default or (None, None) in bounds)


def _bounds(receipt: Receipt, name: str) -> set[tuple[str | None, str | None]]:
    """Smallest and largest value of a column in each segment."""
    columns = (column for facts in receipt.facts for column in facts.columns)
    return {(column.low, column.high) for column in columns if column.name == name}


def _shrinks(seen: RowsSeen) -> bool:
    return 100 * (seen.now - seen.after) > MOST_PERCENT * seen.now


def _of_files(
    name: LossName,
    judged: Collection[Rewritten],
    bad: Collection[tuple[Rewritten, str]],
    good: str,
    bound: Loss | None,
) -> Finding:
    what = "files built again" if any(file.same_content for file in judged) else "rewritten files"
    told = [f"{base_name(file.receipt.uri)} {words}" for file, words in bad]
    finding = finding_of(name, len(judged), told, f"{what} {good}")
    same = sum(file.same_content for file, _ in bad)
    has = counted(same, "file has", "files have")
    cause = f"{has} the published content, and the table spec was changed" if same else ""
    return _of(name, finding, cause, bound)


def _of(name: LossName, finding: Finding, cause: str, bound: Loss | None) -> Finding:
    if finding.passed:
        return finding
    told = f"{finding.message}; {cause}" if cause else finding.message
    word = f"{{check: {name}, severity: warn}}"
    if bound is not None and bound.severity == "warn":
        message = f"{told}; allowed by {word} in audit:"
        return replace(finding, message=message, severity=Severity.WARN, of_data=True)
    where = "in the table spec or at the source" if cause else "at the source"
    message = f"{told}; repair what is wrong {where}, or allow it with - {word} in audit: of the table spec"
    return replace(finding, message=message, of_data=True)
