"""The command line: what the Dagster UI does, without the UI."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from pinot_assets.cli.commands import local, partitions, receipts, rollback, run, session, state, tables
from pinot_assets.cli.commands.gc import gc
from pinot_assets.cli.commands.metrics import metrics
from pinot_assets.cli.commands.new_specs import init
from pinot_assets.cli.commands.simulate import simulate
from pinot_assets.cli.commands.watch import watch
from pinot_assets.cli.doctor.doctor import doctor
from pinot_assets.cli.program import Program, arrange, reflow, run_program
from pinot_assets.cli.realtime.lazy_group import realtime_app

app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Files into Apache Pinot, all or nothing: consistent push, retries and rollback.",
    epilog="Start with `pinot-assets doctor`, then `pinot-assets local up`.",
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"pinot-assets {version('pinot-assets')}")
        raise typer.Exit


@app.callback()
def _program(
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """What may stand before a command."""


for command in (
    *(doctor, init, simulate, metrics, gc, watch, local.dev),
    *(run.run, run.plan, run.status),
    *(receipts.why, receipts.where, receipts.history, receipts.diff),
    *(rollback.snapshots, rollback.rollback, rollback.resume),
):
    app.command()(command)
app.command("down")(local.down_with_ui)
app.add_typer(local.app, name="local", help="A real Pinot with its ZooKeeper on this machine.")
app.add_typer(tables.app, name="tables")
app.add_typer(partitions.app, name="partitions")
app.add_typer(realtime_app(), name="realtime")
app.add_typer(session.app, name="session")
app.add_typer(state.app, name="state")
arrange(app)
reflow(app)


def main() -> None:
    """Entry point."""
    run_program(app)
