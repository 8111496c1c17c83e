"""`pinot-assets snapshots`, `why`, `where`, `history` and `diff`: show what the kept snapshots contain.

These commands read the staging area, and from ZooKeeper which snapshot is the current one. They change
nothing and take no lease. `rollback` brings a table back to a kept snapshot; `resume` ends the hold.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain, islice, tee, zip_longest
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import (
    AsJson,
    DryRun,
    Newest,
    TableName,
    TablesOption,
    Yes,
    kept_snapshots,
    one_table,
)
from pinot_assets.cli.snapshot_list import (
    HISTORY,
    WAYS,
    counts,
    history_row,
    hold_end_values,
    listing,
    way_row,
)
from pinot_assets.cli.terminal import command_line, new_console, show_answer, unanswered
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonMapping, JsonObject, JsonValue
from pinot_assets.core.text import plural, plural_are
from pinot_assets.errors import PinotError, SessionError, SpecError
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.rendering import way_lines
from pinot_assets.session.rollback.rollback_plan import RollbackPlan
from pinot_assets.session.stores.clients import open_session_store, open_staging
from pinot_assets.session.stores.stored_snapshots import StoredSnapshot, find_target, snapshots_of
from pinot_assets.session.values.outdated import change_values
from pinot_assets.session.values.state import Pointer, table_of, utc_iso, utc_text
from pinot_assets.settings.environment import load_settings
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.provenance import Stay, of_file, of_segment, snapshot_difference
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.recipes import StoredRecipe
from pinot_assets.table_spec import TableSpec

SHOWN = 20
"""The most files of each kind that `diff` lists."""


def why(
    segment: Annotated[str, typer.Argument(help="Name of a segment.", metavar="SEGMENT")],
    tables: TablesOption = None,
    as_json: AsJson = False,
) -> None:
    """Show where SEGMENT comes from: its files and versions, who published it, and what the audit found.

    Exits 1 when no kept snapshot names it.
    """
    if (table := table_of(segment)) is None:
        raise SpecError(
            f"{segment} is not a segment of this project",
            why="its segments are named <table>__cp<session>_<attempt>_<file>_<number>",
            hint="another program pushed it; for a file, ask `pinot-assets where <table> <file>`",
        )
    spec = one_table(table, tables)
    if not (stays := of_segment(_kept(spec), segment)):
        raise SessionError(
            f"no kept snapshot of {spec.name} names {segment}",
            why=_kept_text(_kept(spec)),
            hint="it may be staged and not published yet: `pinot-assets session show`",
        )
    stay, packed = stays[0], sorted({one.file.uri for one in stays if one.file.packs})
    output = stay.output(segment)
    pack = next((p for p in stay.since.packs if segment in (one.segment for one in p.outputs)), None)
    values = _stay_values(stay) | {
        **({"pack": pack.name} if pack is not None else {}),
        **({"cell": pack.cell} if pack is not None and pack.cell else {}),
        "segment": segment,
        "segmentRows": output.rows,
        "crc": output.crc,
        "tar": output.tar_uri,
        "lineageEntry": (stay.since.lineage_entry_id or None) if stay.brought else None,
        "audit": stay.since.audit.get("summary") if stay.brought else None,
    }
    in_words = values | _times_in_words(stay)
    if others := packed[1:]:
        in_words |= {"file": f"{stay.file.uri}, and {plural(len(others), 'other file')}"}
    show_answer(as_json, values | ({"files": packed} if packed else {}), _labelled(in_words))


def where(
    table: TableName,
    file: Annotated[str, typer.Argument(help="URI of a file, or the end of it.", metavar="FILE")],
    tables: TablesOption = None,
    as_json: AsJson = False,
) -> None:
    """Show which segments of TABLE have the rows of FILE, in each version that was published.

    Exits 1 when no kept snapshot has the file.
    """
    spec = one_table(table, tables)
    if not (stays := of_file(_kept(spec), file)):
        raise SessionError(
            f"no kept snapshot of {table} has a file {file}",
            why=_kept_text(_kept(spec)),
            hint=f"give its URI, or the end of it, beginning after a /; `pinot-assets status {table}` "
            "shows what waits to be published",
        )
    rows = [
        _stay_values(stay) | _packs_of(stay.file) | {"segments": [one.segment for one in stay.outputs]}
        for stay in stays
    ]
    shown = (row | _times_in_words(stay) for row, stay in zip(rows, stays, strict=True))
    lines = chain.from_iterable(["", *_labelled(row)] for row in shown)
    next(lines)  # no blank line before the first one
    show_answer(as_json, rows, lines)


def history(
    table: TableName, tables: TablesOption = None, newest: Newest = 20, as_json: AsJson = False
) -> None:
    """List what each switch of TABLE changed, newest first, as far as snapshots are kept.

    Exits 0.
    """
    spec = one_table(table, tables)
    pointer = _pointer(spec)
    kept, before = tee(_kept_of(spec, pointer))
    next(before, None)
    rows = [
        _change(older, newer) | hold_end_values(pointer.hold_ended, newer.seq)
        for newer, older in islice(zip_longest(kept, before), newest)
    ]
    show_answer(as_json, rows, listing(table, (HISTORY, *map(history_row, rows)), pointer.hold_ended))


def diff(
    table: TableName,
    older: Annotated[
        str,
        typer.Argument(
            help="Number or session of a kept snapshot (default: the one before the current one).",
            metavar="OLDER",
            autocompletion=kept_snapshots,
        ),
    ] = "",
    newer: Annotated[
        str,
        typer.Argument(
            help="Snapshot to compare with (default: the current one).",
            metavar="NEWER",
            autocompletion=kept_snapshots,
        ),
    ] = "",
    tables: TablesOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the difference between two published states of TABLE: files, segments, rows.

    Exits 0.
    """
    spec = one_table(table, tables)
    current = _current(spec)
    staging = open_staging(spec)
    before = find_target(staging, current, older).snapshot
    after = find_target(staging, current, newer).snapshot if newer else current.snapshot
    changes = snapshot_difference(before, after)
    values = _change(before, after) | {
        "files": {
            "added": [f.uri for f in changes.added],
            "removed": [f.uri for f in changes.removed],
            "rewritten": [new.uri for _, new in changes.rewritten],
        },
        "segmentsTo": list(changes.segments_to),
        "segmentsFrom": list(changes.segments_from),
    }
    lines = (
        f"from {escape(_state(before))}",
        f"to   {escape(_state(after))}",
        "files {}  segments {}  rows {}".format(*counts(values)),
        *_listed("[green]+[/]", changes.added),
        *_listed("[red]-[/]", changes.removed),
        *_listed("[yellow]~[/]", [new for _, new in changes.rewritten]),
    )
    show_answer(as_json, values, lines)


def _pointer(spec: TableSpec) -> Pointer:
    with open_session_store(spec, load_settings()) as store:
        return store.pointer()


def _current(spec: TableSpec) -> StoredSnapshot:
    if (ref := _pointer(spec).current_snapshot) is None:
        raise SessionError(f"{spec.name} has never been published", hint=f"`pinot-assets run {spec.name}`")
    return StoredSnapshot(ref, open_staging(spec).snapshot(ref))


def _kept(spec: TableSpec) -> Iterator[Snapshot]:
    """Yield the current snapshot and the kept ones before it, newest first; reads each one lazily."""
    yield from _kept_of(spec, _pointer(spec))


def _kept_of(spec: TableSpec, pointer: Pointer) -> Iterator[Snapshot]:
    if (ref := pointer.current_snapshot) is not None:
        staging = open_staging(spec)
        current = StoredSnapshot(ref, staging.snapshot(ref))
        yield from (kept.snapshot for kept in snapshots_of(staging, current))


def _kept_text(kept: Iterable[Snapshot]) -> str:
    if not (published := [snapshot.published_ms for snapshot in kept]):
        return "the table has never been published"
    return f"{plural_are(len(published), 'snapshot')} kept, the oldest of {utc_text(published[-1])}"


def _stay_values(stay: Stay) -> JsonObject:
    file = stay.file
    return {
        "file": file.uri,
        "version": file.version,
        "sha256": file.sha256,
        "rows": file.rows,
        "badRows": file.bad_rows,
        "publishedBy": file.session,
        "since": utc_iso(stay.since.published_ms),
        "until": None if stay.until is None else utc_iso(stay.until.published_ms),
        "replacedBy": None if stay.until is None else f"{stay.until.session} ({stay.until.mode})",
    }


def _packs_of(file: PublishedFile) -> JsonObject:
    """Return the packs that have rows of a file: one, or with cells several."""
    if len(file.packs) > 1:
        return {"packs": [*file.packs]}
    return {"pack": file.packs[0]} if file.packs else {}


def _times_in_words(stay: Stay) -> JsonObject:
    until = None if stay.until is None else utc_text(stay.until.published_ms)
    return {"since": utc_text(stay.since.published_ms), "until": until}


def _change(older: Snapshot | None, newer: Snapshot) -> JsonObject:
    """Return what `newer` changed; everything in it counts as new if no older snapshot is kept."""
    changes = snapshot_difference(older or replace(newer, files=(), packs=()), newer)
    return {
        "seq": newer.seq,
        "session": newer.session,
        "mode": newer.mode,
        "publishedAt": utc_iso(newer.published_ms),
        "askedBy": newer.asked_by or None,
        "filesAdded": len(changes.added),
        "filesRewritten": len(changes.rewritten),
        "filesRemoved": len(changes.removed),
        "segmentsAdded": len(changes.segments_to),
        "segmentsRemoved": len(changes.segments_from),
        "rows": newer.rows,
        "rowsMore": changes.rows,
        "tarBytesMore": changes.tar_bytes,
    }


def _state(snapshot: Snapshot) -> str:
    return f"{snapshot.session} of {utc_text(snapshot.published_ms)}, {plural(snapshot.rows, 'row')}"


def _listed(mark: str, listed: Sequence[PublishedFile]) -> Iterator[str]:
    yield from (f"  {mark} {escape(file.uri)} ({plural(file.rows, 'row')})" for file in listed[:SHOWN])
    if len(listed) > SHOWN:
        yield f"  {mark} and {len(listed) - SHOWN:,} more; --json names them all"


def _labelled(values: JsonMapping) -> Iterator[str]:
    for label, value in values.items():
        if value is not None and value != []:
            yield f"[bold]{label:<12}[/]  {escape(_text(value))}"


def _text(value: JsonValue) -> str:
    """Return a value for people: of a long list the first ones, and how many more there are."""
    if not isinstance(value, list):
        return str(value)
    more = f", and {len(value) - SHOWN:,} more; --json lists all" if len(value) > SHOWN else ""
    return ", ".join(map(str, value[:SHOWN])) + more


# --- the way back ---------------------------------------------------------------------------------


def snapshots(
    table: TableName, tables: TablesOption = None, newest: Newest = 20, as_json: AsJson = False
) -> None:
    """List the kept snapshots of TABLE, newest first, and how each can be reached.

    `revert` undoes the newest switch at once, as long as Pinot keeps what it replaced; `re-publish`
    pushes a snapshot's staged segments again. Changes nothing and takes no lease.

    Exits 0.
    """
    with open_driver(one_table(table, tables), "snapshots") as driver:
        ways, ended = driver.rollback_plans(newest), driver.hold_ended()
    values = [_plan_values(way) | hold_end_values(ended, way.target.snapshot.seq) for way in ways]
    show_answer(as_json, values, listing(table, (WAYS, *map(way_row, ways)), ended))


def rollback(
    table: TableName,
    tables: TablesOption = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="Number or session of a kept snapshot (default: the one before).",
            metavar="SEQ",
            autocompletion=kept_snapshots,
        ),
    ] = "",
    apply_config: Annotated[
        bool,
        typer.Option(
            "--apply-config",
            help="Also set Pinot's schema and table config to those that built the snapshot.",
        ),
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Take TABLE back to a kept snapshot, at one instant: the one before, or any that `snapshots` lists.

    Shows first what it would do, and asks (with --json it cannot: add --yes or --dry-run). What is taken
    out is held: no run publishes it again until `pinot-assets resume`, or until its files change again.
    If another revision of the table spec built that snapshot, it shows what the spec must be again, and
    offers to set Pinot's schema and table config back. The YAML file is yours to change.

    Exits 0 when every broker counts the rows of that snapshot, 2 when one does not, 1 on any other error.
    """
    if as_json and not (yes or dry_run):
        raise unanswered()
    spec, console = one_table(table, tables), new_console()
    with open_driver(spec, "rollback") as driver:
        way = driver.rollback_plan(to)
        labelled = way_lines(way, time.time_ns() // 1_000_000)
        shown = [f"[bold]{label:<8}[/] {escape(text)}" for label, text in labelled]
        if dry_run:
            show_answer(as_json, _rollback_values(way) | {"rolledBack": False}, shown)
            return
        for line in [] if as_json else shown:
            console.print(line)
        if way.way is not None and not yes:
            typer.confirm(f"Take {table} back?", abort=True)
            if way.spec is not None and not apply_config:
                revision = way.spec.recipe.revision
                apply_config = typer.confirm(f"Also set Pinot's configs to those of revision {revision}?")
        snapshot = driver.rollback(to, way)
        counted = driver.count(snapshot)
        is_set = way.spec is not None and apply_config
        if way.spec is not None and apply_config:
            _apply_recipe(driver, table, way.spec.recipe)
    done = (
        f"[green]rolled back[/]: {plural(len(snapshot.ledger), 'file')}, "
        f"{plural(snapshot.rows, 'row')} are visible"
    )
    brokers = [asdict(answer) | {"right": answer.matches} for answer in counted]
    marks = ["[green]✓[/]" if answer.matches else "[red]✗[/]" for answer in counted]
    lines = (f"  {mark} {escape(str(answer))}" for mark, answer in zip(marks, counted, strict=True))
    again = command_line(f"pinot-assets resume {table}")
    held = ("What was taken out is held. To publish it again with the next run:", again)
    values = _rollback_values(way) | {"rolledBack": True, "configSet": is_set, "brokers": brokers}
    show_answer(as_json, values, [done, *lines, *_spec_lines(spec, way, is_set), *held])
    raise typer.Exit(ExitCode.DONE if all(answer.matches for answer in counted) else ExitCode.REFUSED)


def resume(table: TableName, tables: TablesOption = None, as_json: AsJson = False) -> None:
    """End the hold of a rollback of TABLE: the next run publishes again what was held back.

    Exits 0, also when nothing was held.
    """
    with open_driver(one_table(table, tables), "resume") as driver:
        held = driver.resume()
    line = f"the next run of {table} publishes again what was held" if held else f"{table} holds nothing back"
    show_answer(as_json, {"table": table, "letIn": held}, [line])


def _apply_recipe(driver: Driver, table: str, recipe: StoredRecipe) -> None:
    try:
        driver.apply_recipe(recipe)
    except PinotError as error:
        raise type(error)(
            f"{table} is rolled back, but Pinot's schema and table config are not those of revision "
            f"{recipe.revision}",
            why=error.reason,
            hint=error.hint,
        ) from error


def _spec_lines(spec: TableSpec, way: RollbackPlan, is_set: bool) -> Iterator[str]:
    """Yield what is left to do where another revision of the table spec built the snapshot."""
    if way.spec is None:
        return
    revision = way.spec.recipe.revision
    if is_set:
        yield f"Pinot's schema and table config are those of revision {revision}"
    yield f"Set {escape(str(spec.path))} back to revision {revision}, too, before the next run:"
    yield from (f"  {escape(line)}" for line in [*way.spec.lines][1:-1])


def _rollback_values(way: RollbackPlan) -> JsonObject:
    return {
        "current": _plan_values(replace(way, target=way.current)),
        "target": _plan_values(way),
        "drops": {"session": way.drops.id, "files": dict(way.drops.counts)} if way.drops else None,
        "tableSpec": None
        if way.spec is None
        else {
            "revision": way.spec.recipe.revision,
            "now": way.spec.now,
            "changes": [change_values(change) for change in way.spec.changes],
        },
    }


def _plan_values(way: RollbackPlan) -> dict[str, object]:
    snapshot = way.target.snapshot
    return {
        "seq": snapshot.seq,
        "session": snapshot.session,
        "mode": snapshot.mode,
        "at": utc_iso(snapshot.published_ms),
        "askedBy": snapshot.asked_by or None,
        "files": len(snapshot.ledger),
        "segments": len(snapshot.segments),
        "rows": snapshot.rows,
        "current": way.current.ref == way.target.ref,
        "way": way.way,
        "until": utc_iso(way.until_ms),
        "whyNot": way.why_not if way.way is None else None,
    }
