"""The command line: it does what the Dagster UI does, without the UI."""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_group

from pinot_assets.cli.commands import local, partitions, run, session, snapshots, state, tables
from pinot_assets.cli.commands.gc import gc
from pinot_assets.cli.commands.metrics import metrics
from pinot_assets.cli.commands.new_specs import init
from pinot_assets.cli.commands.simulate import simulate
from pinot_assets.cli.commands.watch import watch
from pinot_assets.cli.doctor.doctor import doctor
from pinot_assets.cli.program import Program, arrange, reflow, run_program

if TYPE_CHECKING:  # typer keeps its Click private, so no code imports it when it runs
    from typer._click.core import Command, Context

app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Files into Apache Pinot, all or nothing: consistent push, retries and rollback.",
    epilog="Start with `pinot-assets doctor`, then `pinot-assets local up`.",
)


class _RealtimeGroup(TyperGroup):
    """Delegate to `pinot_assets.cli.realtime.group`, and import it only when one of its commands is used."""

    @cached_property
    def _whole(self) -> TyperGroup:
        from pinot_assets.cli.realtime.group import app

        return get_group(app)

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names of the other group's commands."""
        return self._whole.list_commands(ctx)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return one command of the other group."""
        return self._whole.get_command(ctx, cmd_name)


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
    *(snapshots.snapshots, snapshots.why, snapshots.where, snapshots.history, snapshots.diff),
    *(snapshots.rollback, snapshots.resume),
):
    app.command()(command)
app.command("down")(local.down_with_ui)
app.add_typer(local.app, name="local", help="A real Pinot with its ZooKeeper on this machine.")
app.add_typer(tables.app, name="tables")
app.add_typer(partitions.app, name="partitions")
app.add_typer(
    typer.Typer(
        cls=_RealtimeGroup,
        no_args_is_help=True,
        help="REALTIME tables: check, watch and mend them, switch pauseless consumption, rebalance.",
        epilog="Start with `pinot-assets realtime preflight TABLE`; docs/guides/realtime.md has a command "
        "for each kind of trouble.",
    ),
    name="realtime",
)
app.add_typer(session.app, name="session")
app.add_typer(state.app, name="state")
arrange(app)
reflow(app)


def main() -> None:
    """Run the command line."""
    run_program(app)
