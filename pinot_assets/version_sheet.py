"""What `pinot-assets doctor` says of the Pinot that is there: what its version lacks, what we do instead."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from rich.table import Table

from pinot_assets.errors import PinotAssetsError
from pinot_assets.pinot import PinotCluster, PinotConnection, Timeouts
from pinot_assets.pinot.versions import EXCLUSIVE_DELETE, REFERENCE, honours_lineage_settings, traits_of
from pinot_assets.settings import load_settings

_TIMEOUTS = Timeouts(connect=1.0, call=3.0)


def show_version_sheet(console: Console) -> None:
    """Print the sheet where a controller answers; nothing where none is configured or none does."""
    try:
        connection = load_settings().pinot
        version, guard = _asked(replace(connection, timeouts=_TIMEOUTS))
    except PinotAssetsError:
        return
    named = f"Pinot {version}" if version else f"This Pinot names no version and is taken for {REFERENCE}"
    console.print(f"\n[bold]{named}[/], at {connection.controller_url}")
    console.print(sheet(version))
    if guard == "false":
        console.print(
            f"[yellow]warn[/] {EXCLUSIVE_DELETE} is off on this controller: segments of an open replacement "
            "can be deleted by anybody.\n→ remove the setting from the controller's configuration"
        )


def sheet(version: str) -> Table:
    """The rows of `pinot_assets.pinot.versions` that hold for that release."""
    table = Table("what", "this Pinot", "so here", box=None, header_style="bold", padding=(0, 2, 0, 0))
    for trait in traits_of(version):
        table.add_row(trait.topic, trait.pinot, trait.here)
    return table


def _asked(connection: PinotConnection) -> tuple[str, str | None]:
    """The version, and what a controller that knows the guard of open replacements says of it."""
    with PinotCluster(connection) as pinot:
        version = pinot.version()
        return version, pinot.controller_setting(EXCLUSIVE_DELETE) if honours_lineage_settings(
            version
        ) else None
