"""`pinot-assets state`: show the format of a table's stored state, and upgrade it (docs/upgrading.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version

import typer
from rich.markup import escape

from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, DryRun, TableName, TablesOption, Yes, one_table
from pinot_assets.cli.terminal import fields, new_console, show_answer, show_json, unanswered
from pinot_assets.core.stored_format import NEWEST, RELEASES
from pinot_assets.errors import NeedsNewerRelease
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.session.stores.formats import POINTER, StoredObject, stored_objects
from pinot_assets.settings.environment import load_settings
from pinot_assets.table_spec import TableSpec

app = typer.Typer(no_args_is_help=True, help="The format of a table's stored state, and its upgrade.")


@app.command()
def show(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """Show the format of the stored state of TABLE, and which releases can work on it.

    Reads the nodes in ZooKeeper, what they name, and the newest object of each kind in the staging area.
    Also shows state that only a newer release can read. Changes nothing and takes no lease. Exits 0.
    """
    objects = _look(one_table(table, tables))
    lines = fields(((label, escape(text)) for label, text in _lines(objects)), 8)
    values = {
        "table": table,
        "format": _format_of(objects),
        "needs": _needed(objects) or None,
        "release": version("pinot-assets"),
        "newestKnown": NEWEST,
        "readable": all(one.marks.is_known for one in objects),
        "objects": [
            {"kind": one.kind, "name": one.name, "format": one.marks.format, "known": one.marks.is_known}
            for one in objects
        ],
    }
    show_answer(as_json, values, lines)


@app.command()
def upgrade(
    table: TableName,
    tables: TablesOption = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Let new sessions of TABLE be written in the newest format: older releases then stop at the table.

    Upgrade sensors, drivers and Spark's executors first. An open session ends in the format in which it
    began. Shows first what it would do, and asks (with --json it cannot: add --yes or --dry-run). The
    upgrade cannot be undone. Exits 0, also when there was nothing to do.
    """
    if as_json and not (yes or dry_run):
        raise unanswered()
    spec = one_table(table, tables)
    objects = _look(spec)
    for one in objects:
        one.marks.require_known(one.name)
    number = _format_of(objects)
    is_due = number is not None and number < NEWEST
    console = new_console()
    if not as_json:
        for line in _foreseen(table, objects):
            console.print(escape(line))
    is_done = False
    if is_due and not dry_run:
        if not yes:
            typer.confirm(f"Upgrade the state of {table}?", abort=True)
        with open_driver(spec, "state upgrade") as driver:
            is_done = driver.upgrade()
    if as_json:
        show_json({"table": table, "from": number, "to": NEWEST, "due": is_due, "upgraded": is_done})
    elif is_done:
        console.print(f"[green]upgraded[/]: the next session of {table} writes format {NEWEST}")


def _look(spec: TableSpec) -> list[StoredObject]:
    """:raises NodeUnreadable: the pointer is damaged, so its format is not known."""
    with open_session_store(spec, load_settings()) as store:
        with suppress(NeedsNewerRelease):  # shown below; but a damaged pointer is an error
            store.pointer()
        return [*stored_objects(store, open_staging(spec))]


def _format_of(objects: Sequence[StoredObject]) -> int | None:
    """Return the format of the table's state; None if it has no state yet."""
    return next((one.marks.format for one in objects if one.kind == POINTER), None)


def _needed(objects: Sequence[StoredObject]) -> str:
    """Return the oldest release that can work on the table; "" if that is not stored."""
    newest = max((one.marks for one in objects), key=lambda marks: marks.format, default=None)
    return "" if newest is None else newest.needs or RELEASES.get(newest.format, "")


def _lines(objects: Sequence[StoredObject]) -> Iterator[tuple[str, str]]:
    number = _format_of(objects)
    yield "release", f"pinot-assets {version('pinot-assets')}, which knows formats up to {NEWEST}"
    if number is None:
        yield "format", f"no state yet: the first session writes format {NEWEST}"
        return
    yield "format", f"{number}: what the next session writes"
    kinds = Counter((one.kind, one.marks.format) for one in objects)
    listed = (
        f"{n} x {kind} of format {of}" if n > 1 else f"{kind} of format {of}"
        for (kind, of), n in kinds.items()
    )
    yield "objects", ", ".join(listed)
    yield "needs", f"pinot-assets {_needed(objects) or 'of a newer release'} or newer"
    for one in objects:
        if not one.marks.is_known:
            yield "unknown", f"{one.name} is of format {one.marks.format}: this release does nothing here"


def _foreseen(table: str, objects: Sequence[StoredObject]) -> Iterator[str]:
    if (number := _format_of(objects)) is None:
        yield f"{table} has no state yet: its first session writes format {NEWEST}"
    elif number >= NEWEST:
        yield f"{table} already has format {number}, the newest that this release writes: nothing to do"
    else:
        yield f"{table}: from format {number} to {NEWEST}"
        yield f"pinot-assets before {RELEASES[NEWEST]} then stops at {table}, and so do its sensors"
        yield f"an open session ends in format {number}; the upgrade cannot be undone"
