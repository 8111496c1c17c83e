"""What queries would lose by a switch: rewritten files that lost their rows or a column (tier 1).

These checks keep the gate shut without configuration: a file cut off by its writer looks like a small file.
A check of that name with `severity: warn` in the table spec lets the switch through, and still tells.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pinot_assets.audit.bounds import RowsSeen, row_words
from pinot_assets.audit.built import file_name
from pinot_assets.audit.checks import Finding, finding_of
from pinot_assets.session.receipt import Receipt
from pinot_assets.spec.audit_check import Loss, LossName

MOST_PERCENT: Final = 90
"""A file, or a table, that loses a larger part of its rows than this is held back."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A published file whose content is another one now.

    :ivar receipt: of its new version.
    :ivar rows: those of its published version.
    :ivar former: the receipt of its published version; None where it is not kept, or was not asked for.
    """

    receipt: Receipt
    rows: int
    former: Receipt | None = None

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
    bad = [f"{file_name(file.receipt)} {row_words(file.seen)}" for file in had if not file.receipt.rows]
    good = "rewritten files that had rows still have some"
    return _of("emptied_files", len(had), len(had) - len(bad), bad, good, bound)


def shrunk_files(rewritten: Collection[Rewritten], bound: Loss | None) -> Finding:
    """No rewritten file that still has rows loses more than 90 % of them."""
    left = [file for file in rewritten if file.rows and file.receipt.rows]
    bad = [f"{file_name(file.receipt)} {row_words(file.seen)}" for file in left if _shrinks(file.seen)]
    good = f"rewritten files keep {100 - MOST_PERCENT}% of their rows or more"
    return _of("shrunk_files", len(left), len(left) - len(bad), bad, good, bound)


def vanished_columns(rewritten: Collection[Rewritten], bound: Loss | None) -> Finding:
    """No column that had values in the published version of a file is null in all rows of the new one."""
    bad = [f"{file_name(file.receipt)} {_without(file)}" for file in rewritten if file.vanished]
    good = "rewritten files have values in the columns that had some"
    return _of("vanished_columns", len(rewritten), len(rewritten) - len(bad), bad, good, bound)


def shrunk_table(table: str, seen: RowsSeen, bound: Loss | None) -> Finding:
    """A swap does not replace the table by less than a tenth of its rows.

    :param seen: rows of the last snapshot, and of the new one.
    """
    bad = [f"{table} {row_words(seen)}"] if _shrinks(seen) else []
    good = "rows of the table's last snapshot are replaced by as many, or by a tenth of them at the least"
    return _of("shrunk_table", seen.now, seen.after, bad, good, bound)


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


def _without(file: Rewritten) -> str:
    unknown = "" if file.former is not None else " (what its published version had is not known)"
    return f"has no value in {', '.join(file.vanished)}{unknown}"


def _of(
    name: LossName, expected: int, found: int, bad: Sequence[str], good: str, bound: Loss | None
) -> Finding:
    finding = finding_of(name, expected, found, bad, good)
    if not bad:
        return finding
    word = f"{{check: {name}, severity: warn}}"
    if bound is not None and bound.severity == "warn":
        more = f"allowed by {word} in audit:"
        return replace(finding, message=f"{finding.message}; {more}", warns=True, of_data=True)
    more = f"repair what is wrong at the source, or allow it with - {word} in audit: of the table spec"
    return replace(finding, message=f"{finding.message}; {more}", of_data=True)
