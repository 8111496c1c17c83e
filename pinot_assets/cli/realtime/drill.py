"""`pinot-assets realtime drill`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.options import AsJson, new_console, show_json
from pinot_assets.cli.realtime.table import TableName
from pinot_assets.cli.realtime.work import RUN, open_work, tell
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.errors import PinotAssetsError
from pinot_assets.realtime.health.metrics import peer_downloads
from pinot_assets.realtime.operations.drill import Drill, DrillObservation, Lengths, runs, told
from pinot_assets.realtime.operations.table_operation import TableOperation

Break = Annotated[str, typer.Option("--break", help="Command that makes the deep store unwritable.")]
Mend = Annotated[str, typer.Option("--mend", help="Command that undoes it; run whatever happens.")]
Peers = Annotated[
    str, typer.Option("--load-from-peers", help="Command after which a server loads segments from others.")
]
TestTable = Annotated[
    str,
    typer.Option(
        "--yes-this-is-a-test-table", help="The table's name once more: its deep store is taken away."
    ),
]
Exporters = Annotated[
    list[str] | None,
    typer.Option("--exporter", help="http://host:port of a server's JMX exporter: counts what peers give."),
]
Seconds = Annotated[
    float, typer.Option("--seconds", min=1, help="How long it is watched, before and in the outage.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def drill(
        table: TableName,
        break_command: Break,
        mend_command: Mend,
        test_table: TestTable,
        load_from_peers: Peers = "",
        exporters: Exporters = None,
        seconds: Seconds = 60.0,
        as_json: AsJson = False,
    ) -> None:
        """Take the deep store from a TEST table for a while, and show what that does.

        Consumption must go on at its rate (keep a backlog waiting), past two commits of each partition; what
        only servers have is uploaded afterwards. A deep store is taken from all tables that share it. Exits 2
        when something did not hold.
        """
        with open_work(table) as work:
            if test_table.removesuffix("_REALTIME") != work.table.removesuffix("_REALTIME"):
                raise PinotAssetsError(
                    f"no drill on {work.table}",
                    why=f"--yes-this-is-a-test-table names {test_table or 'no table'}",
                    hint="repeat the table's name there, if it is one that may be broken",
                )
            with work.hold(f"{RUN} drill") as lease:
                found = Drill(
                    work.read,
                    runs(break_command),
                    runs(mend_command),
                    _query(work),
                    work.repair(lease),
                    runs(load_from_peers) if load_from_peers else None,
                    lambda: peer_downloads(exporters or (), work.table),
                    lengths=Lengths(before=seconds, outage=seconds),
                    tell=tell,
                ).run()
        _show(found, as_json)
        if any(finding.passed is False for finding in found):
            raise typer.Exit(ExitCode.REFUSED)


def _query(work: TableOperation) -> Callable[[], object]:
    broker = work.pinot.brokers_of(work.table)[0]
    return lambda: work.pinot.answered_rows(broker, work.table)


def _show(found: Sequence[DrillObservation], as_json: bool) -> None:
    if as_json:
        show_json(told(found))
        return
    marks = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[dim]·[/]"}
    for finding in found:
        new_console().print(f"{marks[finding.passed]} {finding.name}: {escape(finding.text)}")
