"""`pinot-assets session`: show a table's kept sessions, drop the open one, rebuild the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, TableName, TablesOption, Yes, one_table
from pinot_assets.cli.terminal import fields, show_answer, unanswered
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import plural
from pinot_assets.errors import SessionError
from pinot_assets.session.detect.observe import (
    FileState,
    FileStatus,
    UnreadableSession,
    counts_text,
    kept_sessions,
    session_files,
    session_values,
)
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.state import AuditReceipt, Session, utc_text
from pinot_assets.settings.environment import load_settings
from pinot_assets.table_spec import TableSpec

app = typer.Typer(no_args_is_help=True, help="The consistent-push sessions of a table.")


@app.command("list")
def list_sessions(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """List the sessions of TABLE that are kept, newest first: the two newest.

    Exits 0.
    """
    spec = one_table(table, tables)
    with open_session_store(spec, load_settings()) as store:
        sessions, holder = kept_sessions(store), store.holder()
    lines = [*map(_line, sessions)] or [f"{table} has had no session yet"]
    if holder is not None:
        lines.append(f"held by {escape(str(holder))}")
    held_by = None if holder is None else str(holder)
    show_answer(as_json, {"leaseHolder": held_by, "sessions": [*map(_values, sessions)]}, lines)


@app.command()
def show(
    table: TableName,
    session: Annotated[
        str | None, typer.Argument(help="cp17; the newest if none is named.", metavar="SESSION")
    ] = None,
    tables: TablesOption = None,
    files: Annotated[bool, typer.Option("--files", help="Also show every file of the session.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one session of TABLE: what it did, which state it is in, and what went wrong.

    Exits 0.
    """
    spec = one_table(table, tables)
    with open_session_store(spec, load_settings()) as store:
        chosen = _chosen(store, session)
    states = [*session_files(open_staging(spec), chosen)] if files else []
    listed = {"fileStates": [asdict(state) for state in states]} if files else {}
    lines = chain(fields(_details(spec, chosen), 9), map(_file_line, states))
    show_answer(as_json, session_values(chosen) | listed, lines)


@app.command()
def clear(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """Drop the open session of TABLE and what it staged; what is published stays.

    Exits 0.
    """
    with open_driver(one_table(table, tables), "session clear") as driver:
        session = driver.clear()
    line = f"{session.id} cleared" if session else f"{table} has no open session"
    show_answer(as_json, {"table": table, "cleared": None if session is None else session.id}, [line])


@app.command()
def rebuild(table: TableName, yes: Yes = False, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """Make the ledger of TABLE again from what queries see, after a backup was restored.

    For a table that a run stopped because ZooKeeper or the staging area is older than what queries see.
    Queries see no change. The open session is dropped, and the next run compares the source with what is
    published. A file whose receipt is lost counts as rewritten when it is touched. Exits 0.
    """
    if as_json and not yes:
        raise unanswered("add --yes to do it")
    if not yes:
        typer.confirm(f"Make the ledger of {table} anew, and drop its open session?", abort=True)
    with open_driver(one_table(table, tables), "session rebuild") as driver:
        rebuilt, notes = driver.rebuild(), driver.notes
    values = {"table": table, "session": rebuilt.session if rebuilt else None, "notes": list(notes)}
    show_answer(as_json, values, map(escape, notes))


def _chosen(store: SessionStore, name: str | None) -> Session:
    if not (nodes := store.session_nodes()):
        raise SessionError(f"{store.table} has had no session yet", hint="the first run makes one")
    node = nodes[-1] if name is None else name.partition("-")[0]  # a session's id is accepted, too
    if node not in nodes:
        raise SessionError(
            f"{store.table} has no session {name}", hint=f"the newest are kept: {', '.join(nodes)}"
        )
    return store.session(node)


def _values(session: Session | UnreadableSession) -> JsonObject:
    if isinstance(session, UnreadableSession):
        return {"node": session.node, "unreadable": session.why}
    return session_values(session)


def _line(session: Session | UnreadableSession) -> str:
    if isinstance(session, UnreadableSession):
        return f"[bold]{session.node}[/]  [red]cannot be read: {escape(session.why)}[/]"
    parts = (
        session.mode.lower(),
        session.state.value,
        session.outcome.value or "open",
        f"retryCount {session.retry_count}",
        session.attempt_started_ms and f"attempt {session.attempt}",  # a rollback builds nothing
        f"begun {utc_text(session.created_ms)}",
        session.asked_by and f"asked by {escape(session.asked_by)}",
        session.done_ms and f"ended {utc_text(session.done_ms)}",
        counts_text(session),
        session.lineage_entry_id and f"switch {session.switch}, entry {session.lineage_entry_id}",
    )
    text = ", ".join(str(part) for part in parts if part)
    error = f"\n  [red]{escape(session.last_error)}[/]" if session.last_error else ""
    return f"[bold]{session.node}[/]  {text}{error}"


def _details(spec: TableSpec, session: Session) -> Iterator[tuple[str, str]]:
    entry, audit, attempt_ms = session.lineage_entry_id, session.audit, session.attempt_started_ms
    ended = ", its end was sent" if session.end_issued == entry else ""
    pairs = (
        ("session", f"{session.id} of {spec.name_with_type} ({session.mode.lower()})"),
        ("state", session.state.value),
        ("outcome", session.outcome.value or "open"),
        ("retries", f"retryCount {session.retry_count} of {spec.ingestion.max_retries}"),
        # A rollback builds nothing.
        ("attempt", attempt_ms and f"{session.attempt}, begun {_time(attempt_ms)}"),
        ("begun", _time(session.created_ms)),
        ("asked by", escape(session.asked_by)),
        ("ended", session.done_ms and _time(session.done_ms)),
        ("files", counts_text(session)),
        ("switch", session.switch and f"{session.switch}, written {_time(session.switch_ms)}"),
        ("entry", entry and f"{entry}{ended}"),
        ("audit", audit and f"{_verdict(audit)} at {_time(audit.at_ms)}: {escape(audit.summary)}"),
        ("error", session.last_error and f"[red]{escape(session.last_error)}[/]"),
    )
    return ((label, str(text)) for label, text in pairs if text)


def _verdict(audit: AuditReceipt) -> str:
    return "[green]passed[/]" if audit.passed else "[red]failed[/]"


def _file_line(state: FileState) -> str:
    colour = {FileStatus.FAILED: "red", FileStatus.DONE: "green"}.get(state.status, "dim")
    parts = (
        state.planned and f"version {state.planned}",
        "" if state.rows is None else plural(state.rows, "row"),
        ", ".join(state.segments),
        state.receipt,
        state.failure,
    )
    text = "; ".join(part for part in parts if part)
    return f"[{colour}]{state.status:<7}[/]  {escape(state.uri)}{text and '  ' + escape(text)}"


def _time(ms: int) -> str:
    return utc_text(ms) if ms else "never"
