"""`pinot-assets realtime drill`."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.errors import PinotAssetsError
from pinot_assets.realtime.cli_table import AsJson, TableName
from pinot_assets.realtime.cli_work import Work, console, open_work, tell
from pinot_assets.realtime.drill import Finding, Lengths
from pinot_assets.realtime.drilling import Drill, told

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
Seconds = Annotated[
    float, typer.Option("--seconds", min=1, help="How long it is watched, before and in the outage.")
]

COMMAND_S = 300.0


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def drill(
        table: TableName,
        break_command: Break,
        mend_command: Mend,
        test_table: TestTable,
        load_from_peers: Peers = "",
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
            with work.hold("drill") as lease:
                found = Drill(
                    work.read,
                    _runs(break_command),
                    _runs(mend_command),
                    _query(work),
                    work.repair(lease),
                    _runs(load_from_peers) if load_from_peers else None,
                    lengths=Lengths(before=seconds, outage=seconds),
                    tell=tell,
                ).run()
        _show(found, as_json)
        if any(finding.passed is False for finding in found):
            raise typer.Exit(2)


def _runs(command: str) -> Callable[[], None]:
    """:raises PinotAssetsError: when it is run and fails."""
    words = shlex.split(command)
    if not words:
        raise PinotAssetsError("an empty command cannot break or mend a deep store")

    def run() -> None:
        try:
            subprocess.run(words, check=True, timeout=COMMAND_S, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError) as error:
            # Their own words repeat the whole command, and what is secret in it.
            raise PinotAssetsError(f"the command {words[0]} failed", why=_reason(error)) from None

    return run


def _reason(error: OSError | subprocess.SubprocessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return f"exit status {error.returncode}"
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it was not over after {COMMAND_S:.0f} s"
    return getattr(error, "strerror", None) or type(error).__name__


def _query(work: Work) -> Callable[[], object]:
    broker = work.pinot.brokers_of(work.table)[0]
    return lambda: work.pinot.answered_rows(broker, work.table)


def _show(found: Sequence[Finding], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(told(found), indent=2))
        return
    marks = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[dim]·[/]"}
    for finding in found:
        console().print(f"{marks[finding.passed]} {finding.name}: {escape(finding.text)}")
