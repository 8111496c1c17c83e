"""`pinot-assets partitions`: show and change how a table's files are divided into Dagster's partitions.

Only the commands import Dagster: importing it takes longer than most other commands take to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track

from pinot_assets.cli.options import AsJson, TableName, one_table
from pinot_assets.cli.terminal import Terminal, new_console, show_answer, show_json
from pinot_assets.core.text import counted, plural
from pinot_assets.errors import PinotAssetsError
from pinot_assets.table_spec import TableSpec

if TYPE_CHECKING:
    from pinot_assets.assets.history import TableHistory
    from pinot_assets.assets.partition_events import PartitionEvents, Spread

app = typer.Typer(
    no_args_is_help=True,
    help="Dagster's partitions of a table: one per file, or per group of files when there are many.",
)


@app.command()
def show(table: TableName, as_json: AsJson = False) -> None:
    """Show which partitions the files of TABLE have now.

    Exits 0.
    """
    with _open(one_table(table)) as opened:
        history, now = opened.history, opened.now
        there = history.partitions()
        missing, gone = set(now.source) - there, there - set(now.source)
        files = now.rows.listed.num_rows
        spread = f"{plural(len(now.source), 'partition')} (`all files` is one of them)"
        lines = [f"{plural(files, 'file')} in {spread}, by {now.partitioning.name}"]
        if missing or gone:
            lines.append(
                f"{counted(len(missing), 'is', 'are')} not in Dagster yet, and "
                f"{counted(len(gone), 'is', 'are')} no longer in the source: the next tick of the "
                "files sensor, or an observation of source_files, corrects this"
            )
        values = _spread_values(now) | {"notInDagster": sorted(missing), "gone": sorted(gone)}
        show_answer(as_json, values, lines)


@app.command()
def migrate(
    table: TableName,
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would change.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give the files of TABLE new partitions, as its spec now says.

    A table whose files were grouped once stays grouped, and after a change of `partitionGroup` old keys are
    left until the next observation. This command decides from the spec alone, gives every file its new
    partition, and reports to Dagster what is published there, so that nothing looks missing. The events of
    the former partitions stay in Dagster's history; Pinot is not changed.

    It refuses while a run of TABLE has not ended. Stop the files sensor of TABLE before. Exits 0; 1 while a
    run has not ended.
    """
    with _open(one_table(table)) as opened:
        history, now, target = opened.history, opened.now, opened.target
        there = history.partitions()
        come, go = set(target.source) - there, there - set(target.source)
        if not plan:
            opened.refuse_beside_runs()
        if as_json:
            if not plan:
                _spread(history, target)
            counts = {"come": len(come), "go": len(go), "migrated": not plan}
            show_json({"from": _spread_values(now), "to": _spread_values(target), **counts})
            return
        console = new_console()
        console.print(
            f"by {now.partitioning.name} → by {target.partitioning.name}: "
            f"{counted(len(come), 'partition is', 'partitions are')} added, "
            f"{counted(len(go), 'is', 'are')} removed"
        )
        if plan:
            return
        _spread(history, target)
        console.print(f"{plural(len(target.source), 'partition')} in Dagster")


def _spread_values(events: PartitionEvents) -> dict[str, object]:
    return {
        "table": events.spec.name,
        "files": events.rows.listed.num_rows,
        "partitions": len(events.source),
        "by": events.partitioning.name,
    }


def _spread(history: TableHistory, target: PartitionEvents) -> None:
    """Write the partitions of `target` to Dagster, twice if needed: a concurrent tick may undo it once.

    :raises PinotAssetsError: it was undone twice.
    """
    for _ in range(2):
        _tell(history, target)
        if history.partitions() == target.source.keys():
            return
    raise PinotAssetsError(
        f"the partitions of {target.spec.name} were changed meanwhile",
        why="a tick of the files sensor or an observation changed them at the same time",
        hint=f"stop the sensor {target.spec.asset_name}_files, run this again, and start it again",
    )


def _tell(history: TableHistory, target: PartitionEvents) -> None:
    def events() -> Iterator[None]:
        # Old partitions go before new ones come: one key of a group makes a table count as grouped.
        history.keep_partitions(target.source)
        for batch in (target.observations(history), target.publications(history)):
            for event in batch:
                history.store(event)
                yield

    due = len(target.source) + len(target.published)
    for _ in track(events(), "telling Dagster", total=due, console=Terminal(stderr=True), transient=True):
        pass


def _open(spec: TableSpec) -> AbstractContextManager[Spread]:
    from pinot_assets.assets.partition_events import open_spread  # imported here, as it imports Dagster

    return open_spread(spec)
