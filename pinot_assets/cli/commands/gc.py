"""`pinot-assets gc`: what lies around that nothing needs any more, and taking it away."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from pinot_assets.cli.completion import table_names
from pinot_assets.cli.options import AsJson, TablesOption, new_console
from pinot_assets.cli.program import error_values, of_system
from pinot_assets.cli.table_selection import Chosen
from pinot_assets.cli.terminal import Terminal
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotAssetsError, PinotNotFound
from pinot_assets.gc.collect import Collected, collect, forget, lines, nodes_of_dropped_table, values
from pinot_assets.gc.orphans import GRACE_HOURS, Garbage, garbage
from pinot_assets.pinot.versions import HOUR_MS
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.table_spec import TableSpec


@dataclass(frozen=True, slots=True)
class GcAnswer:
    """What is told of one table.

    :ivar collected: None for a plan.
    :ivar error: why nothing is known of it, None where something is.
    """

    table: str
    garbage: Garbage
    collected: Collected | None = None
    error: PinotAssetsError | None = None


def add_gc_command(
    app: typer.Typer,
    specs_of: Callable[[str | None, Path | None], Chosen[TableSpec]],
    driver_of: Callable[[TableSpec, str], AbstractContextManager[Driver]],
    open_stores: Callable[[], AbstractContextManager[Sequence[SessionStore]]],
) -> None:
    """Add the command to the program.

    :param specs_of: the table spec of a name; without one, all of them.
    :param driver_of: opens a driver for a command.
    :param open_stores: the nodes of every table that ZooKeeper knows of.
    """

    @app.command()
    def gc(
        table: Annotated[
            str | None,
            typer.Argument(
                help="Table name; without one, all tables.", metavar="TABLE", autocompletion=table_names
            ),
        ] = None,
        apply: Annotated[
            bool, typer.Option("--apply/--plan", help="Take it away, or only say what would go and why.")
        ] = False,
        grace_hours: Annotated[
            float,
            typer.Option("--grace-hours", min=0, max=1e6, help="What is younger stays.", metavar="HOURS"),
        ] = GRACE_HOURS,
        tables: TablesOption = None,
        as_json: AsJson = False,
    ) -> None:
        """Take away what nothing needs any more: old snapshots, staged tars, sessions, segments, nodes.

        With --plan, the default, nothing is written and no lease is taken. --apply takes the lease of the
        table, looks again, and takes away what is still of no use and older than the grace time; it can be
        repeated, and ended at any time. What queries see, what a rollback or an open session needs and what
        is not provably of this project stays, and so do source files, always.

        Without TABLE, what ZooKeeper still knows of tables that Pinot does not have any more goes, too.

        Exits 0, 2 when something could not be taken away, 1 when a table could not be looked at.
        """
        err, grace_ms = Terminal(stderr=True, soft_wrap=True, highlight=False), int(grace_hours * HOUR_MS)
        chosen = specs_of(table, tables)
        answers = [
            _answer(spec, driver_of, grace_ms, _progress_on(err) if apply else None) for spec in chosen.specs
        ]
        answers += [_unknown(one.name, one.error) for one in chosen.left_out]
        if table is None:
            answers += _gone(open_stores, grace_ms, _forgotten if apply else _planned)
        if as_json:
            typer.echo(json.dumps([_values(answer) for answer in answers], indent=2))
        for answer in [] if as_json else answers:
            if answer.error:
                err.print(escape(f"{answer.table}: {answer.error}"))
                continue
            for line in lines(answer.garbage, answer.collected):
                new_console().print(escape(f"{answer.table}: {line}"))
        if any(answer.error for answer in answers):
            raise typer.Exit(ExitCode.ERROR)
        if any(answer.collected and answer.collected.failed for answer in answers):
            raise typer.Exit(ExitCode.REFUSED)


def _answer(
    spec: TableSpec,
    driver_of: Callable[[TableSpec, str], AbstractContextManager[Driver]],
    grace_ms: int,
    progress: Progress | None,
) -> GcAnswer:
    """A table that cannot be looked at keeps no other from its turn."""
    try:
        with driver_of(spec, "gc") as driver:
            if progress is None:
                return GcAnswer(spec.name, garbage(driver, grace_ms))
            with progress:
                task = progress.add_task(spec.name, total=None)
                collected = collect(
                    driver, grace_ms, lambda done, total: progress.update(task, completed=done, total=total)
                )
            return GcAnswer(spec.name, collected.garbage, collected)
    except PinotNotFound:
        note = f"it is not in Pinot; `pinot-assets tables apply {spec.name}` puts it there"
        return GcAnswer(spec.name, Garbage((), (), (), (note,)))
    except PinotAssetsError as error:
        return _unknown(spec.name, error)
    except OSError as error:
        return _unknown(spec.name, of_system(error))


def _gone(
    open_stores: Callable[[], AbstractContextManager[Sequence[SessionStore]]],
    grace_ms: int,
    answered: Callable[[SessionStore, Garbage], GcAnswer],
) -> list[GcAnswer]:
    """Tables that ZooKeeper knows of and Pinot does not have any more."""
    answers: list[GcAnswer] = []
    now_ms = time.time_ns() // 1_000_000
    try:
        with open_stores() as stores:
            for store in stores:
                # One that cannot be looked at, or forgotten, keeps no other from its turn.
                try:
                    answers += _gone_of(store, now_ms, grace_ms, answered)
                except PinotAssetsError as error:
                    answers.append(_unknown(store.table, error))
                except OSError as error:
                    answers.append(_unknown(store.table, of_system(error)))
    except PinotAssetsError as error:
        answers.append(_unknown("tables that are gone", error))
    return answers


def _gone_of(
    store: SessionStore, now_ms: int, grace_ms: int, answered: Callable[[SessionStore, Garbage], GcAnswer]
) -> Iterator[GcAnswer]:
    orphan = nodes_of_dropped_table(store, now_ms)
    if orphan is not None and orphan.age_ms is not None:
        is_old = orphan.age_ms >= grace_ms
        yield answered(store, Garbage((orphan,) if is_old else (), () if is_old else (orphan,), (), ()))


def _unknown(table: str, error: PinotAssetsError) -> GcAnswer:
    return GcAnswer(table, Garbage((), (), (), ()), error=error)


def _planned(store: SessionStore, garbage: Garbage) -> GcAnswer:
    return GcAnswer(store.table, garbage)


def _forgotten(store: SessionStore, garbage: Garbage) -> GcAnswer:
    failed = (
        {} if not garbage.old or forget(store) else {store.table: "it is there again, or being worked on"}
    )
    return GcAnswer(store.table, garbage, Collected(garbage, failed))


def _progress_on(console: Console) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_interactive)


def _values(answer: GcAnswer) -> JsonObject:
    told = error_values(answer.error) if answer.error else values(answer.garbage, answer.collected)
    return {"table": answer.table, **told}
