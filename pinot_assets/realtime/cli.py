"""All commands of `pinot-assets realtime`.

Each module of the list has a `register(app)` that adds its own; the order is that of a table's life.
"""

from __future__ import annotations

import typer

from pinot_assets.realtime import health_cli, preflight_cli

app = typer.Typer()

for module in (preflight_cli, health_cli):
    module.register(app)
