"""All commands of `pinot-assets realtime`, in the order of a table's life."""

from __future__ import annotations

import typer

from pinot_assets.cli.realtime.health import health, status
from pinot_assets.cli.realtime.operations import drill, pauseless, rebalance, restart_from
from pinot_assets.cli.realtime.preflight import preflight
from pinot_assets.cli.realtime.repair import repair

app = typer.Typer(
    no_args_is_help=True,
    epilog="Start with `pinot-assets realtime preflight TABLE`; docs/guides/realtime.md has a command "
    "for each kind of trouble.",
)

for command in (preflight, status, health, repair, restart_from, rebalance, drill):
    app.command()(command)
app.add_typer(pauseless, name="pauseless")
