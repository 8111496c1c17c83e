"""`pinot-assets status`: the state of one table, or of all tables with a line for each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from pinot_assets.cli.first_query import first_query
from pinot_assets.cli.options import AsJson, TablesOption, any_tables, one_table, table_names
from pinot_assets.cli.program import error_values, of_system
from pinot_assets.cli.result_table import Layout, ResultColumn, layout
from pinot_assets.cli.table_status import read_status, status_lines, status_values
from pinot_assets.cli.terminal import fields, new_console, show_answer, show_json
from pinot_assets.core.exit_codes import code_of, worst
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import duration
from pinot_assets.core.waiting import TABLES_AT_A_TIME, in_threads
from pinot_assets.errors import PinotAssetsError, PinotNotFound
from pinot_assets.session.detect.table_status import TableCondition
from pinot_assets.session.stores.clients import open_session_store, open_session_stores
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.settings.environment import Settings, load_settings
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.table_spec import AnyTableSpec, LeftOut, RealtimeTableSpec, TableSpec, label_of

_COLUMNS: Final = (
    ResultColumn("table"),
    ResultColumn("mode"),
    ResultColumn("published"),
    ResultColumn("seq", is_number=True),
    ResultColumn("files", is_number=True),
    ResultColumn("rows", is_number=True),
    ResultColumn("waiting"),
    ResultColumn("failed", is_number=True),
    ResultColumn("held", is_number=True),
    ResultColumn("behind"),
    ResultColumn("state"),
)
_LEAST: Final = ("seq", "files", "mode", "published")
"""Columns that are left out, in this order, where not all fit the terminal."""
STREAM: Final = "REALTIME"
"""Shown in the place of a mode."""
_STYLES: Final = {
    **dict.fromkeys(
        (TableCondition.FAILED, "broken", "unreadable", "in error", "stopped", "not known"), "red"
    ),
    **dict.fromkeys(
        (TableCondition.TRIED_AGAIN, TableCondition.UNFINISHED, TableCondition.HELD, "paused"), "yellow"
    ),
}


@dataclass(frozen=True, slots=True)
class TableRow:
    """One table in the overview.

    :ivar label: as commands take it.
    :ivar values: for `--json`.
    :ivar cells: a text for each of `_COLUMNS`, the last one the table's state in a word.
    :ivar error: why the table could not be read; None if it could.
    :ivar why: the error for people; "" without one.
    """

    label: str
    values: JsonObject
    cells: Sequence[str]
    error: PinotAssetsError | None = None
    why: str = ""


def status(
    table: Annotated[
        str | None,
        typer.Argument(
            help="Table name, as in tables/<name>.yaml; all tables if none is given.",
            metavar="TABLE",
            autocompletion=table_names,
        ),
    ] = None,
    tables: TablesOption = None,
    as_json: AsJson = False,
) -> None:
    """Show what is published, what waits in the source, and the open session, without changing anything.

    Without TABLE, shows all tables, a line each: when what was published, what waits (+ new, ~ rewritten, -
    deleted) and since when, how many files failed, what a rollback holds back, and the state in a word. A
    column is left out if no table needs it, or if the terminal is too narrow; `status TABLE` and `--json`
    show everything. For a REALTIME table it shows whether the table consumes.

    Exits 0; without TABLE, 1 when a table cannot be read or its spec is wrong; the others are shown.
    """
    if table is None:
        _show_all(tables, as_json)
        return
    spec, settings = one_table(table, tables), load_settings()
    now_ms = _now_ms()
    with open_session_store(spec, settings) as store:
        read = read_status(spec, store, now_ms)
    rows = first_query(spec.name, settings.pinot.controller_url)
    show_answer(as_json, status_values(read, rows), fields(status_lines(read, rows, now_ms), 9))


def _show_all(tables: Path | None, as_json: bool) -> None:
    chosen = any_tables([], tables)
    rows = [*_rows(chosen.specs), *map(_broken, chosen.left_out)]
    rows.sort(key=lambda row: row.label)
    if as_json:
        show_json([row.values for row in rows])
    else:
        _show_table([row.cells for row in rows])
        err = new_console(stderr=True)
        for row in rows:
            if row.why:
                err.print(f"[red]{escape(row.label)}[/]: {escape(row.why)}")
    raise typer.Exit(worst(code_of(row.error) for row in rows if row.error is not None))


def _show_table(rows: Sequence[Sequence[str]]) -> None:
    console = new_console()
    if not rows:
        console.print("there is no table spec", style="dim")
        return
    width = console.width if console.is_terminal else None
    used = [place for place, _ in enumerate(_COLUMNS) if any(row[place] for row in rows)]
    table = _laid_out(used, rows, width)
    for name in _LEAST:
        if table.head and not table.is_cut:
            break
        used = [place for place in used if _COLUMNS[place].name != name]
        table = _laid_out(used, rows, width)
    if not table.head:
        console.print("\n".join(table.lines), markup=False)
        return
    console.print(table.head, style="bold", markup=False)
    for row, line in zip(rows, table.lines, strict=True):
        console.print(line, style=_STYLES.get(row[-1], ""), markup=False)


def _laid_out(used: Sequence[int], rows: Sequence[Sequence[str]], width: int | None) -> Layout:
    return layout(
        [_COLUMNS[place] for place in used], [[row[place] for place in used] for row in rows], width
    )


# --- reading -------------------------------------------------------------------------------------


def _rows(specs: Sequence[AnyTableSpec]) -> list[TableRow]:
    """Return a row for each table; a few are read at a time. What one cannot read is in its row.

    :raises PinotAssetsError: ZooKeeper does not answer, or no Pinot is configured.
    """
    if not specs:
        return []
    settings = load_settings()
    offline = [spec for spec in specs if isinstance(spec, TableSpec)]
    with ExitStack() as stack:
        stores = stack.enter_context(open_session_stores(offline, settings)) if offline else {}
        of_streams = _stream_reader(stack, settings) if len(offline) < len(specs) else None

        def read(spec: AnyTableSpec) -> TableRow:
            try:
                if isinstance(spec, TableSpec):
                    return _of_files(spec, stores[spec.name], settings)
                assert of_streams is not None
                return of_streams(spec)
            except (PinotAssetsError, OSError) as error:
                return _unreadable(spec, of_system(error))

        return in_threads(read, specs, TABLES_AT_A_TIME, "tables")


def _of_files(spec: TableSpec, store: SessionStore, settings: Settings) -> TableRow:
    now_ms = _now_ms()
    read = read_status(spec, store, now_ms)
    session, hold, listing = read.observation.session, read.observation.hold, read.listing
    waiting = f"+{len(listing.new)} ~{len(listing.rewritten)} -{len(listing.deleted)}"
    failed = session.counts.get("failed", 0) if session is not None else 0
    since_ms = read.behind_since_ms
    cells = (
        spec.name,
        spec.mode,
        *_published_cells(read.observation.snapshot, now_ms),
        waiting if listing.changed else "",
        f"{failed:,}" if failed else "",
        "" if hold.is_empty else f"{len(hold.files) + len(hold.removals):,}",
        "" if since_ms is None else duration((now_ms - since_ms) / 1000),
        read.state,
    )
    rows = first_query(spec.name, settings.pinot.controller_url)
    return TableRow(spec.name, status_values(read, rows), cells)


def _published_cells(snapshot: Snapshot | None, now_ms: int) -> Sequence[str]:
    if snapshot is None:
        return ("never", "", "", "")
    ago = f"{duration((now_ms - snapshot.published_ms) / 1000)} ago"
    seq = snapshot.session.partition("-")[0].removeprefix("cp")
    return (ago, seq, f"{len(snapshot.ledger):,}", f"{snapshot.rows:,}")


def _stream_reader(stack: ExitStack, settings: Settings) -> Callable[[RealtimeTableSpec], TableRow]:
    """Return a function that reads a REALTIME table by one client for all; it does not read the stream."""
    # Imported here: many installations have no REALTIME table.
    from pinot_assets.pinot.realtime import RealtimePinot
    from pinot_assets.realtime.health.condition import condition
    from pinot_assets.realtime.read.reading import read_state

    pinot = stack.enter_context(RealtimePinot(settings.pinot))

    def read(spec: RealtimeTableSpec) -> TableRow:
        try:
            state = read_state(pinot, spec.name, read_stream=lambda _: {})
        except PinotNotFound:
            found, rows = "not in Pinot", None
        else:
            found, rows = condition(state), min(state.queryable.values(), default=None)
        cells = _cells(label_of(spec), STREAM, found, "" if rows is None else f"{rows:,}")
        return TableRow(label_of(spec), _stream_values(spec, found, rows, settings), cells)

    return read


def _stream_values(spec: RealtimeTableSpec, state: str, rows: int | None, settings: Settings) -> JsonObject:
    look = first_query(spec.name_with_type, settings.pinot.controller_url)
    return {
        "table": spec.name_with_type,
        "mode": STREAM,
        "state": state,
        "rows": rows,
        "query": look.sql,
        "console": look.console,
    }


def _broken(one: LeftOut) -> TableRow:
    cells = _cells(one.name, "", "broken")
    return TableRow(one.name, _broken_values(one), cells, one.error, one.in_one_line)


def _broken_values(one: LeftOut) -> JsonObject:
    return {"table": one.name, "file": str(one.file), "state": "broken", **error_values(one.error)}


def _unreadable(spec: AnyTableSpec, error: PinotAssetsError) -> TableRow:
    label, mode = label_of(spec), spec.mode if isinstance(spec, TableSpec) else STREAM
    values = {"table": spec.name_with_type, "mode": mode, "state": "unreadable", **error_values(error)}
    return TableRow(label, values, _cells(label, mode, "unreadable"), error, str(error))


def _cells(label: str, mode: str, state: str, rows: str = "") -> Sequence[str]:
    """Return the cells of a table of which nothing else is known."""
    return (label, mode, "", "", "", rows, "", "", "", "", state)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
