"""`pinot-assets partitions`: how a table's files are spread over Dagster's partitions, and how to change it.

Dagster is imported by the commands alone: it takes longer to load than most other commands take to run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import track

from pinot_assets.connect import open_session_store, open_source, open_staging
from pinot_assets.errors import PinotAssetsError
from pinot_assets.local import default_home
from pinot_assets.session.observe import list_source, observe
from pinot_assets.settings import load_settings
from pinot_assets.spec import TableSpec

if TYPE_CHECKING:
    from pinot_assets.assets.history import TableHistory
    from pinot_assets.assets.picture import Picture

SpecOf = Callable[[str], TableSpec]
TableName = Annotated[str, typer.Argument(help="Table name, as in tables/<name>.yaml.", metavar="TABLE")]


def partitions_app(spec_of: SpecOf) -> typer.Typer:
    """The `partitions` commands.

    :param spec_of: finds a table spec by name.
    """
    app = typer.Typer(
        no_args_is_help=True,
        help="Dagster's partitions of a table: one per file, or per group of files when there are many.",
    )

    @app.command()
    def show(table: TableName) -> None:
        """Show how the files of TABLE are spread over partitions now."""
        with _both(spec_of(table)) as (history, now, _):
            there = history.partitions()
            missing, gone = set(now.source) - there, there - set(now.source)
            console = _console()
            console.print(
                f"{len(now.files)} files in {len(now.source)} partitions, by {now.partitioning.name}"
            )
            if missing or gone:
                console.print(
                    f"{len(missing)} are not in Dagster yet, {len(gone)} have gone from the source: "
                    "the next tick of the files sensor, or an observation of source_files, sets them right"
                )

    @app.command()
    def migrate(
        table: TableName,
        plan: Annotated[bool, typer.Option("--plan", help="Only show what would change.")] = False,
    ) -> None:
        """Spread the files of TABLE anew, as its spec says now.

        A table that was grouped once stays grouped, and a changed `partitionGroup` leaves old keys behind
        until the next observation: this command decides from the spec alone, gives every file its new
        partition and tells Dagster what is published there, so that nothing looks missing. The events of
        the former partitions stay in Dagster's history; Pinot is not touched.
        """
        with _both(spec_of(table)) as (history, now, target):
            there = history.partitions()
            console = _console()
            console.print(
                f"by {now.partitioning.name} → by {target.partitioning.name}: "
                f"{len(set(target.source) - there)} partitions come, {len(there - set(target.source))} go"
            )
            if plan:
                return
            due = len(target.source) + len(target.published)
            _report(history, target, due)
            console.print(f"{len(target.source)} partitions stand in Dagster")

    return app


def _report(history: TableHistory, target: Picture, due: int) -> None:
    def events() -> Iterator[None]:
        for told in (target.observations(history), target.publications(history)):
            for event in told:
                history.store(event)
                yield

    for _ in track(events(), "telling Dagster", total=due, console=Console(stderr=True), transient=True):
        pass


@contextmanager
def _both(spec: TableSpec) -> Iterator[tuple[TableHistory, Picture, Picture]]:
    """What Dagster knows, the table as it is spread now, and as its spec alone would have it."""
    import dagster as dg

    from pinot_assets.assets.history import TableHistory
    from pinot_assets.assets.picture import Picture

    if not os.environ.get("DAGSTER_HOME") and (default_home() / "dagster").is_dir():
        os.environ["DAGSTER_HOME"] = str(default_home() / "dagster")
    if not os.environ.get("DAGSTER_HOME"):
        raise PinotAssetsError(
            "no Dagster instance to talk to",
            why="DAGSTER_HOME is not set, and `pinot-assets dev` has not run here",
            hint="export DAGSTER_HOME=<the folder of its dagster.yaml>",
        )
    with dg.DagsterInstance.get() as instance:
        history = TableHistory(instance, spec)
        with open_session_store(spec, load_settings()) as store:
            snapshot = observe(store, open_staging(spec)).snapshot
        files = list_source(spec, open_source(spec)).files
        now = Picture.take(spec, files, snapshot, history.partitions())
        yield history, now, Picture.take(spec, files, snapshot, ())


def _console() -> Console:
    # Made at each use: the output of today's command, not of the one that imported this first.
    return Console(soft_wrap=True, highlight=False)
