"""What `pinot-assets doctor` says of the Pinot that is there.

What its version lacks and what we do instead; and the segment replacements that stand open: a push that died
half way leaves its lineage entry behind, and Pinot refuses the next one that touches the same segments.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from pinot_assets.core.check_result import hours
from pinot_assets.errors import PinotAssetsError, SpecError
from pinot_assets.health.lineage import owned
from pinot_assets.pinot import HttpPinotClient, Timeouts
from pinot_assets.pinot.lineage import LineageEntry, LineageState
from pinot_assets.pinot.versions import (
    EXCLUSIVE_DELETE,
    REFERENCE,
    Trait,
    honours_lineage_settings,
    traits_of,
)
from pinot_assets.session.values.state import seq_of
from pinot_assets.settings.environment import load_settings

_TIMEOUTS = Timeouts(connect=1.0, call=3.0)


@dataclass(frozen=True, slots=True)
class PinotLook:
    """What the Pinot of the environment says.

    :ivar version: empty where it names none.
    :ivar guarded: whether segments of an open replacement are safe from other deletes.
    :ivar traits: what this release lacks, and what is done instead.
    :ivar open: (raw) table and lineage entry of the replacements that stand open; None where that cannot be
        told.
    :ivar trouble: why it cannot.
    :ivar unaskable: why servers cannot be asked what assertions ask; empty where they can.
    """

    url: str
    version: str
    guarded: bool
    traits: tuple[Trait, ...]
    open: tuple[tuple[str, LineageEntry], ...] | None
    trouble: str = ""
    unaskable: str = ""


def look_at_pinot() -> PinotLook | None:
    """Ask the controller; None where none is configured or none answers."""
    try:
        connection = replace(load_settings().pinot, timeouts=_TIMEOUTS)
        with HttpPinotClient(connection) as pinot:
            version = pinot.version()
            # As far as this release lets anybody switch it off.
            guarded = (
                not honours_lineage_settings(version) or pinot.controller_setting(EXCLUSIVE_DELETE) != "false"
            )
            unaskable = _unaskable(pinot)
    except PinotAssetsError:
        return None
    traits = tuple(traits_of(version))
    look = PinotLook(connection.controller_url, version, guarded, traits, None, unaskable=unaskable)
    try:
        with HttpPinotClient(connection) as pinot:
            entries = (
                (table, entry)
                for table in pinot.offline_tables()
                for entry in pinot.lineage(table).in_state(LineageState.IN_PROGRESS)
            )
            return replace(look, open=tuple(entries))
    except PinotAssetsError as error:
        return replace(look, trouble=error.what)


def _unaskable(pinot: HttpPinotClient) -> str:
    try:
        pinot.require_server_queries()
    except SpecError as error:
        return error.in_one_line
    return ""


def show_pinot(console: Console) -> None:
    """Print what a controller answers; nothing where none is configured or none does."""
    look = look_at_pinot()
    if look is None:
        return
    named = (
        f"Pinot {look.version}"
        if look.version
        else f"This Pinot names no version and is taken for {REFERENCE}"
    )
    console.print(f"\n[bold]{named}[/], at {look.url}")
    console.print(sheet(look.version))
    if not look.guarded:
        console.print(
            f"[yellow]warn[/] {EXCLUSIVE_DELETE} is off on this controller: segments of an open replacement "
            "can be deleted by anybody.\n→ remove the setting from the controller's configuration"
        )
    if look.unaskable:
        console.print(f"[yellow]warn[/] assertions of `audit:` cannot be asked: {look.unaskable}")
    if look.open is None:
        console.print(f"[yellow]warn[/] which segment replacements stand open cannot be told: {look.trouble}")
    elif look.open:
        console.print("\n[bold]Segment replacements that stand open[/]")
        console.print(open_replacements(list(look.open), int(time.time() * 1000)))


def sheet(version: str) -> Table:
    """The rows of `pinot_assets.pinot.versions` that hold for that release."""
    table = _grid("what", "this Pinot", "so here")
    for trait in traits_of(version):
        table.add_row(trait.topic, trait.pinot, trait.here)
    return table


def open_replacements(entries: list[tuple[str, LineageEntry]], now_ms: int) -> Table:
    """Whose they are and what ends them; nothing is forced away here.

    :param entries: each with the (raw) name of its table.
    """
    rows = _grid("table", "lineage entry", "open for", "owner", "way on")
    for table, entry in entries:
        age = f"{hours(now_ms - entry.timestamp_ms)} h"
        rows.add_row(table, entry.id, age, *_owner(table, entry))
    return rows


def _grid(*columns: str) -> Table:
    return Table(*columns, box=None, header_style="bold", padding=(0, 2, 0, 0))


def _owner(table: str, entry: LineageEntry) -> tuple[str, str]:
    if not owned(table, entry):
        return "somebody else", "its owner ends or reverts it; it is never forced away from here"
    sessions = sorted(
        {seq for name in entry.segments_to or entry.segments_from if (seq := seq_of(name)) is not None}
    )
    return (
        ", ".join(f"cp{seq}" for seq in sessions),
        f"the next run of {table} ends it or takes it back; see: pinot-assets session show {table}",
    )
