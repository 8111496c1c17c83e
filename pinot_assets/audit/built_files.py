"""Compares what was built with what was read (tier 1): each check is one pure function.

Most checks use the receipts. A receipt has the rows that the task's reader counted, and the metadata of each
segment, read back from the bytes in its tar. Those checks must pass, or the gate is shut.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from math import inf, isnan
from typing import Final

from pinot_assets.audit.checks import Finding, finding_of
from pinot_assets.core.check_result import Severity, base_name, some
from pinot_assets.core.text import plural
from pinot_assets.segment.values.normalize import Cut
from pinot_assets.snapshot.packs import Member, MemberList
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import ColumnFacts, FilePiece, Output, Receipt, RowsChunk, SegmentFacts
from pinot_assets.table_spec.blocks.audit import CutCheck, EmptyOutputs, TimeRange, moment_ms

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PROTECTED: Final = "\0"
"""Marks in a text what a properties file cannot hold; the original character is then not known for sure."""


def rows_as_read(receipts: Collection[Receipt]) -> Finding:
    """Check that the segments have every row that a reader counted, except those put aside or filtered."""
    counts = [
        (r, r.rows_read, r.rows if r.places else sum(facts.rows for facts in r.facts))
        for r in receipts
        if r.rows_read is not None and len(r.facts) == len(r.outputs)
    ]
    wrong = [
        (r, read, written)
        for r, read, written in counts
        if not read - r.bad_rows - r.rows_filtered == written == r.rows
    ]
    bad = [
        f"{base_name(r.uri)}: {plural(read, 'row')} read, {r.bad_rows:,} put aside, "
        f"{r.rows_filtered:,} filtered out, {written:,} written"
        for r, read, written in wrong
    ]
    aside, filtered = sum(r.bad_rows for r, _, _ in counts), sum(r.rows_filtered for r, _, _ in counts)
    expected = sum(read for _, read, _ in counts) - aside - filtered
    good, found = "rows that readers counted are in the segments", sum(written for _, _, written in counts)
    finding = finding_of("rows_as_read", expected, bad, good, found=found)
    more = [f"{aside:,} were put aside"] if aside else []
    more += [f"{filtered:,} were filtered out"] if filtered else []
    silent = sum(r.rows > 0 for r in receipts) - sum(r.rows > 0 for r, _, _ in counts)
    more += [f"the row count of {plural(silent, 'file')} is not known"] if silent else []
    files = tuple(r.uri for r, _, _ in wrong)  # a file that lost all of its rows may have no segment
    return replace(finding, message="; ".join([finding.message, *more]), files=files)


def packs_as_read(
    packs: Mapping[str, MemberList], receipts: Collection[Receipt], carried: Iterable[PublishedFile] = ()
) -> Finding:
    """Check that the segments of packs have the rows of their files, each of them once.

    :param packs: the member lists, by the URIs of their receipts.
    :param receipts: of files and of packs.
    :param carried: published files whose packs are built again, with the number of rows that they have there.
    """
    files = {r.uri: r for r in receipts if r.places}
    stay = {(file.uri, file.session): file for file in carried}
    members = [(uri, member) for uri, one in packs.items() for member in one.members]
    times: dict[tuple[str, str], Counter[_Part]] = defaultdict(Counter)
    rows = Counter[tuple[str, str]]()
    for _, member in members:
        key = member.file if member.file in stay else (member.uri, _NEW)
        times[key][_part(member.chunk)] += 1
        rows[key] += member.rows
    parts = {key: [*times[key]] or [_WHOLE] for key in stay}
    parts |= {(uri, _NEW): [_part(piece.chunk) for piece in file.places] for uri, file in files.items()}
    counts = ((key[0], times[key][part]) for key, of_file in parts.items() for part in of_file)
    often = {uri: count for uri, count in counts if count != 1}
    read = {uri: {_piece(piece) for piece in file.places} for uri, file in files.items()}
    wrong = {uri: f"{base_name(uri)} is in {plural(count, 'pack')}" for uri, count in often.items()}
    at_fault = set[str]()
    for uri, member in members:
        if (file := stay.get(member.file)) is not None:
            is_right = (rows[member.file], member.sha256) == (file.rows, file.sha256)
        else:
            is_right = member.uri in files and _place(member) in read[member.uri]
            is_right = is_right and files[member.uri].read == member.fingerprint
        if not is_right:
            wrong.setdefault(member.uri, f"{base_name(member.uri)} is in a pack, and was read otherwise")
            at_fault.add(uri)
    for receipt in receipts:
        written = sum(facts.rows for facts in receipt.facts)
        if receipt.is_pack and not written == receipt.rows == packs[receipt.uri].rows:
            there = packs[receipt.uri].rows
            wrong[receipt.uri] = f"pack {receipt.ordinal} has {written:,} rows, its files have {there:,}"
            at_fault.add(receipt.uri)
    expected = sum(one.rows for one in files.values()) + sum(one.rows for one in stay.values())
    found = sum(r.rows for r in receipts if r.is_pack)
    finding = finding_of(
        "packs_as_read", expected, [*wrong.values()], "rows of files are in packs", found=found
    )
    return replace(finding, files=tuple(sorted(at_fault)))


_NEW: Final = ""
"""In place of a session: a file that this session read."""
_Part = tuple[str, int]
"""Which part of a file: the rows object, and the first byte of its chunk there."""
_WHOLE: Final[_Part] = ("", 0)
_Place = tuple[_Part, int, int]
"""Where rows are: the part, the first row in the chunk, the number of rows."""


def _part(chunk: RowsChunk) -> _Part:
    return (chunk.rows_object, chunk.offset) if chunk.length else _WHOLE


def _place(member: Member) -> _Place:
    return (member.rows_object, member.offset), member.first, member.rows


def _piece(piece: FilePiece) -> _Place:
    return (piece.chunk.rows_object, piece.chunk.offset), piece.first, piece.rows


def columns_as_in_schema(receipts: Collection[Receipt], schema: Mapping[str, str]) -> Finding:
    """Check that every segment has exactly the columns of the schema, in its types.

    :param schema: data type by column name.
    """
    expected = found = 0
    bad, at_fault = [], []
    for output, facts in _stated(receipts):
        there = {column.name: column.data_type for column in facts.columns}
        wrong = [
            *(f"lacks {name}" for name in schema if name not in there),
            *(f"has {name}, which the schema does not" for name in there if name not in schema),
            *(
                f"has {name} as {there[name]}, in the schema {kind}"
                for name, kind in schema.items()
                if there.get(name, kind) != kind
            ),
        ]
        expected += len(schema)
        found += sum(there.get(name) == kind for name, kind in schema.items())
        if wrong:
            bad.append(f"{output.segment} {' and '.join(wrong)}")
            at_fault.append(output.segment)
    good = "columns are those of the schema"
    return finding_of("columns_as_in_schema", expected, bad, good, at_fault, found)


def bounds_in_order(receipts: Collection[Receipt]) -> Finding:
    """Check that no column's minimum is above its maximum, and no segment ends before it begins."""
    expected = 0
    bad, at_fault = [], []
    for output, facts in _stated(receipts):
        wrong = [
            f"{column.name} from {column.low} to {column.high}"
            for column in facts.columns
            if not _in_order(column)
        ]
        expected += len(facts.columns)
        if output.start_ms is not None and output.end_ms is not None:
            expected += 1
            if output.start_ms > output.end_ms:
                wrong.append(f"time from {output.start_ms} to {output.end_ms}")
        bad += [f"{output.segment} has {text}" for text in wrong]
        at_fault += [output.segment] if wrong else []
    return finding_of("bounds_in_order", expected, bad, "minima are not above their maxima", at_fault)


def empty_outputs(receipts: Collection[Receipt], bound: EmptyOutputs | None) -> Finding:
    """Check that every file has rows; only a warning unless the table spec has this check.

    :param bound: None if the table spec does not have it.
    """
    read = [receipt for receipt in receipts if receipt.sha256]  # unreadable files were skipped
    bad = [f"{base_name(receipt.uri)} has none" for receipt in read if not receipt.rows]
    finding = finding_of("empty_outputs", len(read), bad, "files have rows")
    if bad and (bound is None or bound.severity == "warn"):
        why = "audit: does not list empty_outputs" if bound is None else "its severity is warn"
        finding = replace(
            finding, message=f"{finding.message}; allowed, because {why}", severity=Severity.WARN
        )
    return replace(finding, of_data=bound is not None)


def time_range(bound: TimeRange, outputs: Sequence[Output], now_ms: int) -> Finding:
    """Check that every time value lies between two moments; it fails for segments without times.

    :param now_ms: the time that `now` means.
    """
    earliest = moment_ms(bound.from_, now_ms) if bound.from_ else -inf
    latest = moment_ms(bound.to, now_ms) if bound.to else inf
    bad = [
        f"{o.segment} has no times"
        if o.start_ms is None or o.end_ms is None
        else f"{o.segment} lies from {_moment(o.start_ms)} to {_moment(o.end_ms)}"
        for o in outputs
        if o.start_ms is None or o.end_ms is None or o.start_ms < earliest or o.end_ms > latest
    ]
    allowed = f"{bound.from_ or 'any time'} to {bound.to or 'any time'}"
    finding = finding_of(f"time_range ({allowed})", len(outputs), bad, f"segments lie within {allowed}")
    return replace(finding, severity=Severity(bound.severity.upper()), of_data=True)


def tars_as_built(
    receipts: Collection[Receipt], staged: Mapping[str, str], changed: Mapping[str, str]
) -> Finding:
    """Check that every tar in the staging area is the one that was built.

    :param staged: version token of each tar that is there, by URI.
    :param changed: for each tar with other content than the built one: what is wrong.
    """
    outputs = [output for receipt in receipts for output in receipt.outputs]
    wrong = {o.segment: "has gone" for o in outputs if o.tar_uri not in staged}
    wrong |= {o.segment: changed[o.tar_uri] for o in outputs if o.tar_uri in changed}
    bad = [f"the tar of {segment} {text}" for segment, text in wrong.items()]
    return finding_of("tars_as_built", len(outputs), bad, "tars are as they were built", list(wrong))


def unlike(receipts: Collection[Receipt], staged: Mapping[str, str]) -> list[Output]:
    """Return the outputs whose tars now have another version than when they were built."""
    return [
        output
        for receipt in receipts
        for output, token in zip_longest(receipt.outputs, receipt.tars[: len(receipt.outputs)])
        if staged.get(output.tar_uri, token) != token
    ]


def _stated(receipts: Collection[Receipt]) -> Iterator[tuple[Output, SegmentFacts]]:
    """Yield the segments whose receipts have facts; older writers stored none."""
    for receipt in receipts:
        if len(receipt.facts) == len(receipt.outputs):
            yield from zip(receipt.outputs, receipt.facts, strict=True)


def _in_order(column: ColumnFacts) -> bool:
    """Whether a column's bounds are in order, as Java compares them; true if that cannot be known."""
    low, high = column.low, column.high
    if low is None or high is None or _PROTECTED in low + high:
        return True
    try:
        if column.data_type in ("INT", "LONG", "BOOLEAN", "TIMESTAMP"):
            return int(low) <= int(high)
        if column.data_type in ("FLOAT", "DOUBLE"):
            return isnan(float(high)) or float(low) <= float(high)
        if column.data_type == "BIG_DECIMAL":
            return Decimal(low) <= Decimal(high)
    except (ValueError, InvalidOperation):
        return False
    return low <= high


def _moment(ms: int) -> str:
    try:
        return f"{_EPOCH + timedelta(milliseconds=ms):%Y-%m-%dT%H:%M:%SZ}"
    except OverflowError:
        return f"{ms} ms"


Lost = Mapping[str, Mapping[str, Cut]]
"""Values that were cut, by the URI of the file and the name of the column."""

_REASONS: Final = (
    ("cut_at_nul", "at_nul", "error", "contained a NUL and lost what follows it", "the files"),
    (
        "cut_at_max_length",
        "at_length",
        "warn",
        "were longer than maxLength and were cut to it or replaced",
        "maxLength in the schema",
    ),
    (
        "times_replaced",
        "out_of_time",
        "warn",
        "were times before 1971 or after 2071 and became the column's default or the time of the build",
        "the files",
    ),
)
"""The check, its count in `Cut`, its severity unless the table spec has another, what happened, and what to
repair."""


def cut_values(lost: Lost, bounds: Collection[CutCheck]) -> Iterator[Finding]:
    """Yield one finding for each reason for which values were cut or replaced.

    A NUL shuts the gate, because its writer did not expect to lose the rest of the value. The schema sets the
    maximum length, and the table config asks for the replaced times, so these findings only warn. The table
    spec can change all severities.

    :param bounds: the checks of the table spec.
    """
    said: dict[str, str] = {bound.check: bound.severity for bound in bounds}
    cuts = [(base_name(uri), name, cut) for uri, columns in lost.items() for name, cut in columns.items()]
    for check, count_of, usual, how, what in _REASONS:
        counts: list[tuple[str, str, int]] = [
            (file, name, getattr(cut, count_of)) for file, name, cut in cuts
        ]
        columns_cut = [f"{file}: {name} {plural(count, 'value')}" for file, name, count in counts if count]
        if not columns_cut:
            continue
        total = sum(count for _, _, count in counts)
        severity = said.get(check, usual)
        fix = f"; keep the gate open with `- check: {check}`, `severity: warn`, or correct {what}"
        message = f"{plural(total, 'value')} {how}: {some(columns_cut, between='; ')}"
        message += "" if severity == "warn" else fix
        yield Finding(check, False, 0, total, message, severity=Severity(severity.upper()), of_data=True)
