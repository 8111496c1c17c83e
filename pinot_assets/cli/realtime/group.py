"""All commands of `pinot-assets realtime`.

Each module of the list has a `register(app)` that adds its own; the order is that of a table's life.
"""

from __future__ import annotations

import typer

from pinot_assets.cli.help import reflow
from pinot_assets.cli.realtime import drill, health, pauseless, preflight, rebalance, repair, restart

app = typer.Typer()

for module in (preflight, health, repair, restart, pauseless, rebalance, drill):
    module.register(app)
reflow(app)
