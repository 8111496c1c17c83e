"""`pinot-assets why`, `where`, `history` and `diff`: what the kept snapshots tell, asked as receipts.

They read the staging area, and ZooKeeper for which snapshot is the current one; nothing is changed, no lease
is taken and Pinot is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, tee, zip_longest
from typing import Annotated

import typer
from rich.markup import escape

from pinot_assets.cli.options import AsJson, Newest, TableName, TablesOption, kept_snapshots, one_table
from pinot_assets.cli.terminal import show_answer
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.text import plural, plural_are
from pinot_assets.errors import SessionError, SpecError
from pinot_assets.session.connect import open_session_store, open_staging
from pinot_assets.session.stores.stored_snapshots import StoredSnapshot, find_target, published
from pinot_assets.session.values.state import table_of, utc_text
from pinot_assets.settings.environment import load_settings
from pinot_assets.snapshot.manifest import PublishedFile, Snapshot, SnapshotRef
from pinot_assets.snapshot.provenance import Stay, difference, of_file, of_segment
from pinot_assets.table_spec import TableSpec

SHOWN = 20
"""Files of a kind that `diff` lists."""


def why(
    segment: Annotated[str, typer.Argument(help="Name of a segment.", metavar="SEGMENT")],
    tables: TablesOption = None,
    as_json: AsJson = False,
) -> None:
    """Tell where SEGMENT comes from: its file and version, who published it, and what the audit found.

    Exits 1 when no kept snapshot names it.
    """
    table = table_of(segment)
    if table is None:
        raise SpecError(
            f"{segment} is no segment of this project",
            why="its segments are named <table>__cp<session>_<attempt>_<file>_<number>",
            hint="another program pushed it; for a file, ask `pinot-assets where <table> <file>`",
        )
    spec = one_table(table, tables)
    stay = of_segment(_kept(spec), segment)
    if stay is None:
        raise SessionError(
            f"no kept snapshot of {spec.name} names {segment}",
            why=_kept_text(_kept(spec)),
            hint="it may be staged and not published yet: `pinot-assets session show`",
        )
    values = _stay_values(stay) | _segment_values(stay, segment)
    show_answer(as_json, values, _labelled(values))


def where(
    table: TableName,
    file: Annotated[str, typer.Argument(help="URI of a file, or the end of it.", metavar="FILE")],
    tables: TablesOption = None,
    as_json: AsJson = False,
) -> None:
    """Tell which segments of TABLE hold FILE, in each version that was published.

    Exits 1 when no kept snapshot has the file.
    """
    spec = one_table(table, tables)
    found = of_file(_kept(spec), file)
    if not found:
        raise SessionError(
            f"no kept snapshot of {table} has a file {file}",
            why=_kept_text(_kept(spec)),
            hint="name its URI, or the end of that from a / on; "
            f"`pinot-assets status {table}` tells what waits to be published",
        )
    rows = [_stay_values(stay) | {"segments": [one.segment for one in stay.file.outputs]} for stay in found]
    lines = chain.from_iterable(["", *_labelled(row)] for row in rows)
    next(lines)  # blank lines stand between two only
    show_answer(as_json, rows, lines)


def history(
    table: TableName,
    tables: TablesOption = None,
    newest: Newest = 20,
    as_json: AsJson = False,
) -> None:
    """List what each switch of TABLE changed, newest first, as far as snapshots are kept. Exits 0."""
    kept, before = tee(_kept(one_table(table, tables)))
    next(before, None)
    rows = [_change(older, newer) for newer, older in islice(zip_longest(kept, before), newest)]
    show_answer(as_json, rows, [*map(_line, rows)] or [f"{table} has never been published"])


def diff(
    table: TableName,
    older: Annotated[
        str,
        typer.Argument(
            help="Number or session of a kept snapshot.", metavar="OLDER", autocompletion=kept_snapshots
        ),
    ],
    newer: Annotated[
        str,
        typer.Argument(
            help="Another one; the current one if none is named.",
            metavar="NEWER",
            autocompletion=kept_snapshots,
        ),
    ] = "",
    tables: TablesOption = None,
    as_json: AsJson = False,
) -> None:
    """Show what lies between two published states of TABLE: files, segments, rows. Exits 0."""
    spec = one_table(table, tables)
    current = _current(spec)
    staging = open_staging(spec)
    before = find_target(staging, current, older).snapshot
    after = find_target(staging, current, newer).snapshot if newer else current.snapshot
    found = difference(before, after)
    values = _change(before, after) | {
        "files": {
            "added": [f.uri for f in found.added],
            "removed": [f.uri for f in found.removed],
            "rewritten": [new.uri for _, new in found.rewritten],
        },
        "segmentsTo": list(found.segments_to),
        "segmentsFrom": list(found.segments_from),
    }
    lines = (
        f"from {escape(_state(before))}",
        f"to   {escape(_state(after))}",
        _line(values),
        *_listed("[green]+[/]", found.added),
        *_listed("[red]-[/]", found.removed),
        *_listed("[yellow]~[/]", [new for _, new in found.rewritten]),
    )
    show_answer(as_json, values, lines)


def _newest(spec: TableSpec) -> SnapshotRef | None:
    with open_session_store(spec, load_settings()) as store:
        return store.pointer().current_snapshot


def _current(spec: TableSpec) -> StoredSnapshot:
    ref = _newest(spec)
    if ref is None:
        raise SessionError(f"{spec.name} has never been published", hint=f"`pinot-assets run {spec.name}`")
    return StoredSnapshot(ref, open_staging(spec).snapshot(ref))


def _kept(spec: TableSpec) -> Iterator[Snapshot]:
    """The current snapshot and the kept ones before it, newest first, each read when it is asked for."""
    ref = _newest(spec)
    if ref is not None:
        staging = open_staging(spec)
        yield from (kept.snapshot for kept in published(staging, StoredSnapshot(ref, staging.snapshot(ref))))


def _kept_text(kept: Iterable[Snapshot]) -> str:
    published = [snapshot.published_ms for snapshot in kept]
    if not published:
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
        "since": utc_text(stay.since.published_ms),
        "until": None if stay.until is None else utc_text(stay.until.published_ms),
        "replacedBy": None if stay.until is None else f"{stay.until.session} ({stay.until.mode})",
    }


def _segment_values(stay: Stay, segment: str) -> JsonObject:
    output = stay.output(segment)
    return {
        "segment": segment,
        "segmentRows": output.rows,
        "crc": output.crc,
        "tar": output.tar_uri,
        "lineageEntry": (stay.since.lineage_entry_id or None) if stay.brought else None,
        "audit": stay.since.audit.get("summary") if stay.brought else None,
    }


def _change(older: Snapshot | None, newer: Snapshot) -> JsonObject:
    """What `newer` changed; all that it has where no older snapshot is kept."""
    empty = replace(newer, files=())
    found = difference(older or empty, newer)
    return {
        "seq": newer.seq,
        "session": newer.session,
        "mode": newer.mode,
        "publishedAt": utc_text(newer.published_ms),
        "filesAdded": len(found.added),
        "filesRewritten": len(found.rewritten),
        "filesRemoved": len(found.removed),
        "segmentsAdded": len(found.segments_to),
        "segmentsRemoved": len(found.segments_from),
        "rows": newer.rows,
        "rowsMore": found.rows,
        "tarBytesMore": found.tar_bytes,
    }


def _line(change: JsonMapping) -> str:
    return (
        f"[bold]{change['seq']:>5}[/]  {change['session']}  {change['mode']:<8}  {change['publishedAt']}  "
        f"files +{change['filesAdded']} ~{change['filesRewritten']} -{change['filesRemoved']}  "
        f"segments +{change['segmentsAdded']} -{change['segmentsRemoved']}  "
        f"rows {change['rows']:,} ({change['rowsMore']:+,})"
    )


def _state(snapshot: Snapshot) -> str:
    return f"{snapshot.session} of {utc_text(snapshot.published_ms)}, {plural(snapshot.rows, 'row')}"


def _listed(mark: str, listed: Sequence[PublishedFile]) -> Iterator[str]:
    for file in listed[:SHOWN]:
        yield f"  {mark} {escape(file.uri)} ({plural(file.rows, 'row')})"
    if len(listed) > SHOWN:
        yield f"  {mark} and {len(listed) - SHOWN} more; --json names them all"


def _labelled(values: JsonMapping) -> Iterator[str]:
    for label, value in values.items():
        if value is not None and value != []:
            text = ", ".join(value) if isinstance(value, list) else str(value)
            yield f"[bold]{label:<12}[/]  {escape(text)}"
