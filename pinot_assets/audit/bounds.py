"""Checks whose bounds the table spec sets: how many rows come and go, empty files, times (tier 1).

What they find is said of the data: a file that is rewritten since is read again, and no retry is spent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pinot_assets.audit.built import file_name
from pinot_assets.audit.checks import Finding, finding_of
from pinot_assets.core.check_result import Severity, base_name, some
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.table_spec.blocks.audit import EmptyOutputs, RowChange, TimeRange, moment_ms

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
        if not _holds(bound, rows.percent)
    ]
    expected, found = sum(r.now for r in judged.values()), sum(r.after for r in judged.values())
    wanted = f"{_signed(bound.min) if bound.min is not None else 'any'} to " + (
        _signed(bound.max) if bound.max is not None else "any"
    )
    name = f"row_change of {bound.of} ({wanted})"
    if not judged:
        what = "no published file is rewritten" if bound.of == "file" else "nothing is live yet"
        return Finding(name, True, 0, 0, f"{what}: no change to be judged")
    if bad:
        message = f"{some(bad, between='; ')}, where {wanted} is allowed"
    else:
        message = f"{row_words(RowsSeen(expected, found))}, where {wanted} is allowed"
    finding = Finding(name, not bad, expected, found, message)
    return replace(finding, severity=Severity(bound.severity.upper()), of_data=True)


def empty_outputs(receipts: Collection[Receipt], bound: EmptyOutputs | None) -> Finding:
    """Every file has rows; only a warning, where the table spec does not ask for it.

    :param bound: None where the table spec does not.
    """
    read = [receipt for receipt in receipts if receipt.sha256]  # one that could not be read was skipped
    bad = [f"{file_name(receipt)} has none" for receipt in read if not receipt.rows]
    found = finding_of("empty_outputs", len(read), len(read) - len(bad), bad, "files have rows")
    if bad and (bound is None or bound.severity == "warn"):
        why = "audit: does not ask for empty_outputs" if bound is None else "its severity is warn"
        found = replace(found, message=f"{found.message}; allowed, since {why}", severity=Severity.WARN)
    return replace(found, of_data=bound is not None)


def time_range(bound: TimeRange, outputs: Sequence[Output], now_ms: int) -> Finding:
    """Every value of the time column lies between two moments; rows without times lie nowhere.

    :param now_ms: what `now` is.
    """
    earliest = moment_ms(bound.from_, now_ms) if bound.from_ else None
    latest = moment_ms(bound.to, now_ms) if bound.to else None
    bad = []
    for output in outputs:
        if output.start_ms is None or output.end_ms is None:
            bad.append(f"{output.segment} has no times")
            continue
        early = earliest is not None and output.start_ms < earliest
        late = latest is not None and output.end_ms > latest
        if early or late:
            bad.append(f"{output.segment} {_lies(output.start_ms, output.end_ms)}")
    wanted = f"{bound.from_ or 'any time'} to {bound.to or 'any time'}"
    found = finding_of(
        f"time_range ({wanted})", len(outputs), len(outputs) - len(bad), bad, f"segments lie within {wanted}"
    )
    return replace(found, severity=Severity(bound.severity.upper()), of_data=True)


def _holds(bound: RowChange, percent: float) -> bool:
    return (bound.min is None or percent >= bound.min) and (bound.max is None or percent <= bound.max)


def row_words(rows: RowsSeen) -> str:
    """The change in words, of something that had rows."""
    return f"goes from {rows.now:,} to {rows.after:,} rows ({rows.percent:+.3g}%)"


def _signed(percent: float) -> str:
    return f"{percent:+g}%"


def _lies(start_ms: int, end_ms: int) -> str:
    return f"lies from {_moment(start_ms)} to {_moment(end_ms)}"


def _moment(ms: int) -> str:
    try:
        return f"{_EPOCH + timedelta(milliseconds=ms):%Y-%m-%dT%H:%M:%SZ}"
    except OverflowError:
        return f"{ms} ms"
