"""All commands of `pinot-assets realtime`, in the order of a table's life."""

from __future__ import annotations

import typer

from pinot_assets.cli.program import reflow
from pinot_assets.cli.realtime.health import health, status
from pinot_assets.cli.realtime.operations import drill, pauseless, rebalance, restart_from
from pinot_assets.cli.realtime.preflight import preflight
from pinot_assets.cli.realtime.repair import repair

app = typer.Typer()

for command in (preflight, status, health, repair, restart_from, rebalance, drill):
    app.command()(command)
app.add_typer(pauseless, name="pauseless")
reflow(app)
