"""`pinot-assets realtime status` and `realtime health`: show a table's segments, and check its health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from pinot_assets.cli.options import AsJson
from pinot_assets.cli.realtime.table import DeepStore, RealtimeTableName, open_table
from pinot_assets.cli.terminal import Terminal, new_console, show_answer, show_json
from pinot_assets.core.check_result import CheckResult
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.text import plural
from pinot_assets.realtime.health.all_checks import examine_state
from pinot_assets.realtime.health.metrics import Metric, SegmentRow, metrics, read_exporters, segment_rows
from pinot_assets.realtime.model.state import RealtimeState, SegmentStatus
from pinot_assets.realtime.read.reading import open_deep_store, read_state
from pinot_assets.session.values.state import utc_iso

_WIDE = 1000
"""Width in columns, so that no segment name is cut: users copy them."""
_COLOURS = {"": "red", "COMMITTING": "yellow", "IN_PROGRESS": "cyan"}


def status(table: RealtimeTableName, as_json: AsJson = False) -> None:
    """Show every segment of TABLE: status, age, where its copies are.

    Exits 0.
    """
    with open_table(table) as (pinot, name):
        state = read_state(pinot, name)
    rows = segment_rows(state)
    if as_json:
        values = {
            "table": state.table,
            "readMs": state.read_ms,
            "readAt": utc_iso(state.read_ms),
            "version": state.cluster.version,
            "pauseless": state.settings.pauseless,
            "paused": state.pause.reason,
            "pausedTopics": sorted(state.pause.topics),
            "segments": [asdict(row) for row in rows],
            "unread": dict(state.unread),
        }
        show_json(values)
        return
    console, wide = new_console(), Terminal(width=_WIDE, highlight=False)
    console.print(_heading(state))
    columns = segment_table(rows)
    if console.is_terminal and wide.measure(columns).maximum > console.width:
        console.print("\n".join(segment_lines(rows)))
    else:
        wide.print(columns)
    for part, reason in state.unread.items():
        if part == "tmp_uploads":
            continue  # `health` checks these
        console.print(f"[yellow]not known[/] {part}: {escape(reason)}")


def health(
    table: RealtimeTableName,
    as_json: AsJson = False,
    deep_store: DeepStore = None,
    exporters: Annotated[
        list[str] | None,
        typer.Option(
            "--exporter",
            metavar="URL",
            help="http://host:port of a JMX exporter, of controllers and servers.",
        ),
    ] = None,
) -> None:
    """Check TABLE: copies, commits, errors, consumption, answers.

    Exits 0 when every check passes, 2 when one fails or is not known, 1 when the table cannot be read.
    """
    with open_table(table) as (pinot, name):
        state = read_state(pinot, name, deep_store=open_deep_store(pinot, deep_store))
    answers = examine_state(state)
    numbers = metrics(state, read_exporters(exporters or ()))
    values = {
        "table": state.table,
        "readMs": state.read_ms,
        "readAt": utc_iso(state.read_ms),
        "checks": [{**asdict(answer), "numbers": dict(answer.numbers)} for answer in answers],
        "metrics": [asdict(metric) for metric in numbers],
        "unread": dict(state.unread),
    }
    show_answer(as_json, values, _health_lines(state, answers, numbers))
    raise typer.Exit(ExitCode.DONE if all(answer.passed for answer in answers) else ExitCode.REFUSED)


COLUMNS = ("segment", "status", "age", "copy", "replicas", "rows", "offsets", "note")


def segment_table(rows: Sequence[SegmentRow]) -> Table:
    """Return the segments as a table for the terminal."""
    shown = Table(*COLUMNS, box=None, header_style="bold", padding=(0, 2, 0, 0))
    for row in rows:
        shown.add_row(*_cells(row))
    return shown


def segment_lines(rows: Sequence[SegmentRow]) -> Iterator[str]:
    """Yield the segments for a terminal in which the table has no room: a name, and below it what it is."""
    for row in rows:
        name, status, age, copy, replicas, number, offsets, note = _cells(row)
        yield name
        rows_text = f"{number} rows" if number else ""
        yield "  " + ", ".join(filter(None, (status, age, copy, replicas, rows_text, f"offsets {offsets}")))
        if note:
            yield f"  {note}"


def _cells(row: SegmentRow) -> tuple[str, ...]:
    """Return a text with markup for each of `COLUMNS`."""
    colour = _COLOURS.get(row.status, "green")
    return (
        escape(row.segment),
        f"[{colour}]{row.status or 'no status'}[/]",
        _age(row.age_s),
        "" if row.status == SegmentStatus.IN_PROGRESS else row.copy,
        ", ".join(f"{count:,} {state}" for state, count in sorted(Counter(row.replicas.values()).items())),
        "" if row.rows is None else f"{row.rows:,}",
        f"{row.start_offset or '?'}–{row.end_offset or ''}",
        f"[red]{escape(row.note)}[/]" if row.note else "",
    )


def _age(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    for length, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _heading(state: RealtimeState) -> str:
    way = "pauseless" if state.settings.pauseless else "blocking commits"
    peers = f", peers by {state.settings.peer_scheme}" if state.settings.peer_scheme else ""
    pause = f", [yellow]paused: {state.pause.reason}[/]" if state.pause.whole else ""
    return (
        f"[bold]{escape(state.table)}[/] on Pinot {state.cluster.version or '?'}: "
        f"{plural(state.settings.replication, 'replica')}, {way}{peers}{pause}"
    )


def _health_lines(
    state: RealtimeState, answers: Sequence[CheckResult], numbers: Sequence[Metric]
) -> Iterator[str]:
    yield _heading(state)
    for answer in answers:
        mark = answer.pick("[green]ok  [/]", "[yellow]warn[/]", "[red]FAIL[/]")
        yield f"{mark} [bold]{answer.name}[/]: {escape(answer.message)}"
        if answer.next_step:
            yield f"      → {escape(answer.next_step)}"
    for metric in numbers:
        value = "?" if metric.value is None else f"{metric.value:g}"
        yield f"[dim]{metric.name} = {value} ({metric.origin})[/]"
