"""The command line: it does what the Dagster UI does, without the UI.

`PANELS` lists all commands. A command is imported when it is used: most of them need what the others do not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Final

import typer

from pinot_assets.cli.help import HELP
from pinot_assets.cli.program import Entry, Program, run_program
from pinot_assets.cli.version import version_line
from pinot_assets.core.decision_log import LOG_FORMAT, LogFormat

PANELS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Set up": {
        "doctor": Entry(
            "doctor.doctor:doctor",
            "Check this machine, the installation and the local stack.",
        ),
        "init": Entry(
            "commands.new_specs:init",
            "Write the spec of a table for FILES: columns, types, time column and keys, as a sample shows "
            "them.",
        ),
        "scaffold": Entry(
            "commands.scaffold:scaffold",
            "Write the files of a project: workspace.yaml, dagster.yaml, a sample table, the schema "
            "for editors.",
        ),
        "local": Entry("commands.local:app", "A real Pinot with its ZooKeeper on this machine."),
        "tables": Entry("commands.new_specs:app", "Table specs: check them, apply them to Pinot."),
    },
    "Publish files": {
        "plan": Entry(
            "commands.plan:plan",
            "Show what a run of TABLE would do now: files, segments, rows, room, and what cannot be undone.",
        ),
        "run": Entry(
            "commands.run:run",
            "Publish the files of TABLE: build what changed, audit it, and switch to it at one instant.",
        ),
        "rebuild": Entry(
            "commands.rebuild:rebuild",
            "Build published files of TABLE again that its changed spec would build otherwise.",
        ),
        "compact": Entry(
            "commands.compact:compact",
            "Merge the small segments of TABLE, so that it has fewer and larger ones.",
        ),
        "watch": Entry(
            "commands.watch:watch",
            "Look at tables again and again, and run those whose files have changed and are ready.",
        ),
        "status": Entry(
            "commands.status:status",
            "Show what is published, what waits in the source, and the open session, without changing "
            "anything.",
        ),
        "session": Entry("commands.session:app", "The consistent-push sessions of a table."),
    },
    "Show what was published": {
        "query": Entry("commands.query:query", "Run SQL at a broker of Pinot and show its rows."),
        "snapshots": Entry(
            "commands.snapshots:snapshots",
            "List the kept snapshots of TABLE, newest first, and how each can be reached.",
        ),
        "history": Entry(
            "commands.snapshots:history",
            "List what each switch of TABLE changed, newest first, as far as snapshots are kept.",
        ),
        "diff": Entry(
            "commands.snapshots:diff",
            "Show the difference between two published states of TABLE: files, segments, rows.",
        ),
        "why": Entry(
            "commands.snapshots:why",
            "Show where SEGMENT comes from: its files and versions, who published it, and what the "
            "audit found.",
        ),
        "where": Entry(
            "commands.snapshots:where",
            "Show which segments of TABLE have the rows of FILE, in each version that was published.",
        ),
    },
    "Go back, delete what is left over": {
        "rollback": Entry(
            "commands.snapshots:rollback",
            "Take TABLE back to a kept snapshot, at one instant: the one before, or any that `snapshots` "
            "lists.",
        ),
        "resume": Entry(
            "commands.snapshots:resume",
            "End the hold of a rollback of TABLE: the next run publishes again what was held back.",
        ),
        "gc": Entry(
            "commands.gc:gc",
            "Delete what nothing needs any more: old snapshots, staged tars, sessions, segments, nodes.",
        ),
        "forget": Entry(
            "commands.forget:forget",
            "Leave pinot-assets: delete all that it stores about TABLE. The table stays in Pinot as it is.",
        ),
        "state": Entry("commands.state:app", "The format of a table's stored state, and its upgrade."),
    },
    "REALTIME tables": {
        "simulate": Entry(
            "commands.simulate:simulate",
            "Simulate a day of segment commits in three ways: through the controller, with bypass, "
            "pauseless.",
        ),
        "realtime": Entry(
            "realtime.group:app",
            "REALTIME tables: check, watch and repair them, turn pauseless consumption on or off, rebalance.",
        ),
    },
    "Dagster and monitoring": {
        "dev": Entry(
            "commands.local:dev",
            "Start the local stack, sample data and the Dagster UI, and leave them running.",
        ),
        "down": Entry(
            "commands.local:down_with_ui",
            "Stop the Dagster UI and the local stack. Their data are kept.",
        ),
        "metrics": Entry(
            "commands.metrics:metrics",
            "Serve the metrics of tables to Prometheus: sessions, files, ages, audit results, "
            "health, REALTIME tables.",
        ),
        "partitions": Entry(
            "commands.partitions:app",
            "Dagster's partitions of a table: one per file, or per group of files when there are many.",
        ),
    },
}
"""Every command of the program, in the panels of `--help`: in each, those that are groups come last."""


class _AllCommands(Program):
    panels = PANELS


app = typer.Typer(
    cls=_AllCommands,
    context_settings=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Files into Apache Pinot, all or nothing: consistent push, retries and rollback.",
    epilog="Start with `pinot-assets doctor`, then `pinot-assets local up`.",
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(version_line())
        raise typer.Exit


def _set_log_format(log_format: LogFormat | None) -> None:
    if log_format is not None:
        os.environ[LOG_FORMAT] = log_format.value


@app.callback()
def _program(
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(
            metavar="FORMAT",
            help="What a run writes on standard error: text, or json for JSON lines "
            f"(default: ${LOG_FORMAT}, else text).",
            callback=_set_log_format,
        ),
    ] = None,
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line."""
    run_program(app)
