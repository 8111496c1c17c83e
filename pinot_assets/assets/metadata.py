"""Make the metadata that Dagster shows for a trigger, a file, the gate and a snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import dagster as dg

from pinot_assets.audit.assertions import is_assertion
from pinot_assets.audit.checks import Finding
from pinot_assets.core.text import plural
from pinot_assets.session.detect.observe import counts_text
from pinot_assets.session.lineage.stale_pointer import number_of
from pinot_assets.session.values.report import TriggerReport, small
from pinot_assets.session.values.state import Checked, HoldEnd, Session, utc_text
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile

T = TypeVar("T")

Metadata = Mapping[str, dg.MetadataValue | str | int | float]

SHOWN = 20
"""The most names or rows that one metadata entry lists; the ledger has all of them."""


def of_files(files: Sequence[PublishedFile]) -> Metadata:
    """Return the metadata of one partition: a file, or a group of files."""
    outputs = [output for file in files for output in file.outputs]
    values: dict[str, dg.MetadataValue | str | int | float] = {
        "rows": sum(file.rows for file in files),
        "bad_rows": sum(file.bad_rows for file in files),
        "segments": _some([output.segment for output in outputs]),
        "crc": _some([str(output.crc) for output in outputs]),
        "bytes": sum(output.tar_bytes for output in outputs),
        "seconds": round(sum(file.seconds for file in files), 3),
    }
    if packs := sorted({name for file in files for name in file.packs}):
        values["packs"] = _some(packs)
    if len(files) == 1:
        return {"file": files[0].uri, "version": files[0].version, **values}
    return {"files": len(files), **values}


def of_report(report: TriggerReport) -> Metadata:
    """Return the metadata of one trigger."""
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
        "bad_rows": report.bad_rows,
        "small_files": len(small(report.built)),
        "worker_seconds": round(sum(r.seconds for r in report.built), 3),
        "build_seconds": round(report.build_seconds, 3),
        "bytes_built": sum(o.tar_bytes for r in report.built for o in r.outputs),
    }
    if (rate := report.rows_per_s) is not None:
        values["rows_per_s"] = round(rate)
    if report.session is not None:
        values |= {"session": report.session.id, **of_session(report.session)}
    if report.failed:
        values["failed_files"] = first_rows(
            ("file", "code", "reason"), report.failed, lambda f: (cell(f.uri), cell(f.code), cell(f.reason))
        )
    if report.notes:
        values["notes"] = dg.MetadataValue.md("\n".join(f"- {escaped(n)}" for n in report.notes))
    return values


def of_session(session: Session) -> Metadata:
    """Return the state of a session; `pinot-assets session show --files` shows the details."""
    values: dict[str, dg.MetadataValue | str | int | float] = {
        "state": session.state.value,
        "outcome": session.outcome.value or "open",
        "attempt": session.attempt,
        "retry_count": session.retry_count,
        "session_files": counts_text(session),
        "session_begun": dg.MetadataValue.timestamp(session.created_ms / 1000),
    }
    if session.switch:
        values["switch"] = session.switch
    if session.lineage_entry_id:
        values["lineage_entry"] = session.lineage_entry_id
    if session.last_error:
        values["last_error"] = session.last_error
    return values


def of_findings(findings: Sequence[Finding]) -> Metadata:
    """Return message and numbers of each check of the gate."""
    return {**of_checks(findings), **{f.name: f.message for f in findings}}


def of_checks(checks: Iterable[Finding | Checked]) -> Metadata:
    """Return the expected and the found number of each check."""
    values: dict[str, dg.MetadataValue | str | int | float] = {}
    for check in checks:
        # For an assertion both count answers: next to "= 0", "found: 0" would look as if it held.
        asked = is_assertion(check.name)
        values[f"{check.name}_{'answers' if asked else 'expected'}"] = check.expected
        values[f"{check.name}_{'answers_as_expected' if asked else 'found'}"] = check.found
    return values


def of_snapshot(
    snapshot: Snapshot,
    session: Session | None,
    manifest: str,
    rollback_until_ms: int | None,
    hold_ended: HoldEnd | None,
) -> Metadata:
    """Return the metadata of the published snapshot.

    :param session: the session that published it; None if it is no longer kept.
    :param manifest: URI of the snapshot's header in the staging area.
    :param rollback_until_ms: epoch milliseconds; None if no revert is possible (a re-publish may be).
    :param hold_ended: the last `resume` of the table; shown if it ended the hold of this
        snapshot or of the one before.
    """
    values: dict[str, dg.MetadataValue | str | int | float] = {
        "session": snapshot.session,
        "mode": str(snapshot.mode),
        "lineage_entry": snapshot.lineage_entry_id,
        "files": len(snapshot.ledger),
        "segments": len(snapshot.segments),
        "rows": snapshot.rows,
        "bytes": snapshot.tar_bytes,
        "published_at": dg.MetadataValue.timestamp(snapshot.published_ms / 1000),
        "manifest": _link(manifest),
        "rollback_until": (
            "no way back"
            if rollback_until_ms is None
            else dg.MetadataValue.timestamp(rollback_until_ms / 1000)
        ),
    }
    if snapshot.asked_by:
        values["asked_by"] = snapshot.asked_by
    if hold_ended is not None and hold_ended.seq in (snapshot.seq, number_of(snapshot.parent)):
        values["hold_ended"] = str(hold_ended)
    if session is not None:
        values = {**values, **of_session(session), **values}  # the snapshot's entries come first and win
    return values


def served(snapshot: Snapshot | None) -> str:
    """Return one sentence about what queries see."""
    if snapshot is None:
        return "nothing is published yet"
    when = utc_text(snapshot.published_ms)
    what = f"{plural(len(snapshot.ledger), 'file')}, {plural(snapshot.rows, 'row')}"
    return f"queries see {snapshot.session}, published {when}: {what}"


def _link(uri: str) -> dg.MetadataValue | str:
    if uri.startswith("file://"):
        return dg.MetadataValue.path(unquote(urlsplit(uri).path))
    return dg.MetadataValue.url(uri) if uri.startswith("http") else uri


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def first_rows(
    head: tuple[str, ...], items: Sequence[T], row_of: Callable[[T], tuple[str, ...]]
) -> dg.MetadataValue:
    """Return the first `SHOWN` items as a table, and the number of the others."""
    more = f"\n\nand {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""
    return dg.MetadataValue.md(md_table(head, map(row_of, items[:SHOWN])) + more)


def md_table(head: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table of cells; an empty text if there are no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines])


def cell(text: str) -> str:
    """Return the text as one cell of a Markdown table."""
    return escaped(" ".join(text.split())).replace("|", "\\|")


def escaped(text: str) -> str:
    """Escape Markdown, so that `COUNT(*)` does not start italics; text in backticks stays code."""
    return re.sub(r"(`[^`]*`)|([\\*_<\[\]])", lambda match: match[1] or f"\\{match[2]}", text)
