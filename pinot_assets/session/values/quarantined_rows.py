"""What people are told of rows that were put aside, and of columns without values."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pinot_assets.audit.checks import Finding, rows_kept
from pinot_assets.core.text import plural
from pinot_assets.snapshot.receipt import Receipt
from pinot_assets.table_spec import TableSpec


def notes(receipts: Sequence[Receipt]) -> tuple[str, ...]:
    """One line for each kind, with the first file."""
    return (
        *_of_bad_rows([r for r in receipts if r.bad_rows]),
        *_of_missing([r for r in receipts if r.missing]),
    )


def finding(spec: TableSpec, receipts: Collection[Receipt]) -> tuple[Finding, ...]:
    """Whether rows of the files were put aside; nothing for a table that does not let them be."""
    return () if spec.ingestion.bad_row_limit is None else (rows_kept(receipts),)


def _of_bad_rows(receipts: Sequence[Receipt]) -> tuple[str, ...]:
    if not receipts:
        return ()
    rows, first = sum(r.bad_rows for r in receipts), receipts[0]
    return (
        f"{plural(rows, 'bad row')} of {plural(len(receipts), 'file')} put aside: "
        f"{first.bad_rows} of {first.uri} in {first.bad_rows_uri}{_and_more(receipts)}",
    )


def _of_missing(receipts: Sequence[Receipt]) -> tuple[str, ...]:
    if not receipts:
        return ()
    first = receipts[0]
    return (
        f"{plural(len(receipts), 'file')} without values in columns of the table (null in all rows): "
        f"{first.uri} has none for {', '.join(first.missing)}{_and_more(receipts)}",
    )


def _and_more(receipts: Sequence[Receipt]) -> str:
    return f", and {len(receipts) - 1} more" if len(receipts) > 1 else ""
