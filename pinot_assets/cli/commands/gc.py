"""`pinot-assets gc`: list and delete orphans, which nothing needs any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from pinot_assets.cli.driver import open_driver
from pinot_assets.cli.options import AsJson, Chosen, TablesOption, offline_tables, one_table, table_names
from pinot_assets.cli.program import error_values, of_system
from pinot_assets.cli.terminal import new_console, show_json
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError, PinotNotFound
from pinot_assets.gc.bad_rows import keeping_bad_rows
from pinot_assets.gc.collect import Collected, collect, forget_table, gc_values, lines, nodes_of_dropped_table
from pinot_assets.gc.orphans import GRACE_HOURS, Garbage, garbage
from pinot_assets.pinot.versions import HOUR_MS
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_known_stores
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.settings.environment import load_settings
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.yaml.values import INT_MAX

NOTHING = Garbage((), (), (), ())


@dataclass(frozen=True, slots=True)
class GcAnswer:
    """The answer about one table.

    :ivar collected: what was deleted; None with --plan.
    :ivar error: why the table could not be examined; None if it could.
    """

    table: str
    garbage: Garbage = NOTHING
    collected: Collected | None = None
    error: PinotAssetsError | None = None


def gc(
    table: Annotated[
        str | None,
        typer.Argument(
            help="Table name; without one, all tables.", metavar="TABLE", autocompletion=table_names
        ),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply/--plan", help="Delete it, or only show what would be deleted, and why.")
    ] = False,
    grace_hours: Annotated[
        float, typer.Option("--grace-hours", min=0, max=1e6, help="What is younger is kept.", metavar="HOURS")
    ] = GRACE_HOURS,
    bad_row_days: Annotated[
        int | None,
        typer.Option(
            "--bad-row-days",
            min=0,
            max=INT_MAX,
            help="For how long rows put aside are kept, instead of badRowDaysToKeep; 0 keeps none.",
            metavar="DAYS",
        ),
    ] = None,
    tables: TablesOption = None,
    as_json: AsJson = False,
) -> None:
    """Delete what nothing needs any more: old snapshots, staged tars, sessions, segments, nodes.

    With --plan, the default, nothing is written and no lease is taken. --apply takes the lease of the
    table, looks again, and deletes what nothing needs even now and what is older than the grace time. You
    can repeat it, and end it at any time. It never deletes what queries see, what a rollback or an open
    session needs, what may not belong to this project, or source files.

    Deletes rows put aside that are older than badRowDaysToKeep of the table spec, whatever the grace time
    is, and those whose file is no longer published. Rows of an open session are kept.

    Without TABLE, also deletes what ZooKeeper still has of tables that Pinot does not have any more.

    Exits 0, 2 when something could not be deleted, 1 when a table could not be read.
    """
    err, grace_ms = new_console(stderr=True), int(grace_hours * HOUR_MS)
    chosen = offline_tables([], tables) if table is None else Chosen([one_table(table, tables)])
    of_table, of_nodes = (_collect, _forget) if apply else (_plan, _plan_nodes)
    specs = [spec if bad_row_days is None else keeping_bad_rows(spec, bad_row_days) for spec in chosen.specs]
    answers = [_answer(spec, grace_ms, of_table) for spec in specs]
    answers += [GcAnswer(one.name, error=one.error) for one in chosen.left_out]
    if table is None:
        answers += _dropped(grace_ms, of_nodes)
    if as_json:
        show_json([_values(answer) for answer in answers])
    for answer in [] if as_json else answers:
        if answer.error:
            err.print(escape(f"{answer.table}: {answer.error}"))
        else:
            for line in lines(answer.garbage, answer.collected):
                new_console().print(escape(f"{answer.table}: {line}"))
    if any(answer.error for answer in answers):
        raise typer.Exit(ExitCode.ERROR)
    if any(answer.collected and answer.collected.failed for answer in answers):
        raise typer.Exit(ExitCode.REFUSED)


def _answer(spec: TableSpec, grace_ms: int, of_table: Callable[[Driver, int], GcAnswer]) -> GcAnswer:
    """Return the answer for one table. Errors become part of it, so that other tables are still handled."""
    try:
        with open_driver(spec, "gc") as driver:
            return of_table(driver, grace_ms)
    except PinotNotFound:
        note = f"it is not in Pinot; `pinot-assets tables apply {spec.name}` makes it"
        return GcAnswer(spec.name, Garbage((), (), (), (note,)))
    except (PinotAssetsError, OSError) as error:
        return GcAnswer(spec.name, error=of_system(error))


def _plan(driver: Driver, grace_ms: int) -> GcAnswer:
    return GcAnswer(driver.spec.name, garbage(driver, grace_ms))


def _collect(driver: Driver, grace_ms: int) -> GcAnswer:
    with _progress() as progress:
        task = progress.add_task(driver.spec.name, total=None)
        collected = collect(driver, grace_ms, lambda n, of: progress.update(task, completed=n, total=of))
    return GcAnswer(driver.spec.name, collected.garbage, collected)


def _dropped(grace_ms: int, of_nodes: Callable[[SessionStore, Garbage], GcAnswer]) -> Iterator[GcAnswer]:
    """Yield answers for tables that have state in ZooKeeper and do not exist in Pinot any more."""
    now_ms = time.time_ns() // 1_000_000
    try:
        with open_known_stores(load_settings()) as stores:
            for store in stores:
                # If one table cannot be examined or deleted, the others are still handled.
                try:
                    if nodes := _nodes_of_dropped(store, now_ms, grace_ms):
                        yield of_nodes(store, nodes)
                except (PinotAssetsError, OSError) as error:
                    yield GcAnswer(store.table, error=of_system(error))
    except PinotAssetsError as error:
        yield GcAnswer("tables that are gone", error=error)


def _nodes_of_dropped(store: SessionStore, now_ms: int, grace_ms: int) -> Garbage | None:
    """Return the nodes of a table that Pinot does not have; None if it has the table, or nothing is there."""
    orphan = nodes_of_dropped_table(store, now_ms)
    if orphan is None or orphan.age_ms is None:
        return None
    return Garbage((orphan,), (), (), ()) if orphan.age_ms >= grace_ms else Garbage((), (orphan,), (), ())


def _plan_nodes(store: SessionStore, nodes: Garbage) -> GcAnswer:
    return GcAnswer(store.table, nodes)


def _forget(store: SessionStore, nodes: Garbage) -> GcAnswer:
    is_left = bool(nodes.old) and not forget_table(store)
    failed = {store.table: "the table is there again, or another process works on it"} if is_left else {}
    return GcAnswer(store.table, nodes, Collected(nodes, failed))


def _progress() -> Progress:
    console = new_console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_interactive)


def _values(answer: GcAnswer) -> JsonObject:
    details = error_values(answer.error) if answer.error else gc_values(answer.garbage, answer.collected)
    return {"table": answer.table, **details}
