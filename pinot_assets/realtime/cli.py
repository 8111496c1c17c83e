"""All commands of `pinot-assets realtime`.

Each module of the list has a `register(app)` that adds its own; the order is that of a table's life.
"""

from __future__ import annotations

import typer

from pinot_assets.cli_panels import flow
from pinot_assets.realtime import (
    drain_cli,
    drill_cli,
    health_cli,
    preflight_cli,
    rebalance_cli,
    repair_cli,
    restart_cli,
)

app = typer.Typer()

for module in (preflight_cli, health_cli, repair_cli, restart_cli, drain_cli, rebalance_cli, drill_cli):
    module.register(app)
flow(app)
