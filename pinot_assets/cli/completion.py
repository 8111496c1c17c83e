"""What the shell completes: names of tables, and numbers of their kept snapshots.

Nothing is said when something is wrong: a completion that fails would write into the line that is typed.
"""

from __future__ import annotations

import os
from pathlib import Path

import typer

from pinot_assets.errors import PinotAssetsError

_SUFFIXES = (".yaml", ".yml")


def table_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tables of the directory that the command looks at, by the names of their files: none is read."""
    try:
        found = sorted(path.stem for path in _directory(ctx).iterdir() if path.suffix in _SUFFIXES)
    except OSError:
        return []
    return [name for name in found if name.startswith(incomplete)]


def kept_snapshots(ctx: typer.Context, incomplete: str) -> list[str]:
    """Numbers of the snapshots that are kept of the table that was named before, newest first."""
    from pinot_assets.session.connect import open_staging
    from pinot_assets.session.stores.stored_snapshots import snapshot_refs
    from pinot_assets.table_spec import read_tables

    try:
        spec = read_tables(_directory(ctx)).choose([str(ctx.params.get("table"))])[0]
        keys = [ref.key for ref in snapshot_refs(open_staging(spec))]
    except (PinotAssetsError, OSError):
        return []
    numbers = [str(int(key.removeprefix("snapshots/").partition("-")[0])) for key in keys]
    return [number for number in dict.fromkeys(numbers) if number.startswith(incomplete)]


def _directory(ctx: typer.Context) -> Path:
    return Path(ctx.params.get("tables") or os.environ.get("PINOT_ASSETS_TABLES") or "tables")
