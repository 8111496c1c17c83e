"""What Dagster shows of a trigger, a file, a gate and a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from pinot_assets.audit import Finding
from pinot_assets.session.receipt import Receipt
from pinot_assets.session.report import Report
from pinot_assets.snapshot.manifest import Snapshot

Metadata = Mapping[str, dg.MetadataValue | str | int | float]

SHOWN = 20
"""Names listed in full; the ledger has them all."""


def of_file(receipt: Receipt) -> Metadata:
    """One built file."""
    return {
        "file": receipt.uri,
        "version": receipt.read.token,
        "rows": receipt.rows,
        "bad_rows": receipt.bad_rows,
        "segments": ", ".join(o.segment for o in receipt.outputs),
        "crc": ", ".join(str(o.crc) for o in receipt.outputs),
        "bytes": sum(o.tar_bytes for o in receipt.outputs),
        "seconds": round(receipt.seconds, 3),
        "worker": receipt.worker,
    }


def of_report(report: Report) -> Metadata:
    """One trigger."""
    failed = [f"| {_cell(f.uri)} | {f.code} | {_cell(f.reason)} |" for f in report.failed[:SHOWN]]
    values: dict[str, dg.MetadataValue | str | int | float] = {
        "summary": report.summary,
        "files_listed": report.listed,
        "files_new": len(report.new),
        "files_rewritten": len(report.rewritten),
        "files_deleted": len(report.deleted),
        "files_built": len(report.built),
        "files_kept": report.kept,
        "files_failed": len(report.failed),
        "rows_built": sum(r.rows for r in report.built),
        "bytes_built": sum(o.tar_bytes for r in report.built for o in r.outputs),
    }
    if report.session is not None:
        values |= {
            "session": report.session.id,
            "state": report.session.state.value,
            "attempt": report.session.attempt,
            "retry_count": report.session.retry_count,
        }
    if failed:
        more = len(report.failed) - len(failed)
        table = "\n".join(["| file | code | reason |", "|---|---|---|", *failed])
        table += f"\n\nand {more} more" if more else ""
        values["failed_files"] = dg.MetadataValue.md(table)
    if report.notes:
        values["notes"] = dg.MetadataValue.md("\n".join(f"- {n}" for n in report.notes))
    return values


def of_findings(findings: Sequence[Finding]) -> Metadata:
    """The gate's checks, each with its numbers."""
    values: dict[str, dg.MetadataValue | str | int | float] = {}
    for f in findings:
        values[f"{f.name}_expected"] = f.expected
        values[f"{f.name}_found"] = f.found
        values[f.name] = f.message
    return values


def of_snapshot(snapshot: Snapshot) -> Metadata:
    """What is visible now."""
    return {
        "session": snapshot.session,
        "mode": str(snapshot.mode),
        "lineage_entry": snapshot.lineage_entry_id,
        "files": len(snapshot.ledger),
        "segments": len(snapshot.segments),
        "rows": snapshot.rows,
        "bytes": sum(o.tar_bytes for o in snapshot.segments.values()),
        "published_at": dg.MetadataValue.timestamp(snapshot.published_ms / 1000),
    }


def _cell(text: str) -> str:
    """As one cell of a Markdown table."""
    return " ".join(text.replace("|", "\\|").split())
