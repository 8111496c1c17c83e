"""What is done to a REALTIME table only where the run says its name once more: the bulk delete, the drill.

The drill's commands are the code location's own, from its environment: whoever may launch a run need not be
allowed to run any command there.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

import os
from typing import Final

import dagster as dg

from pinot_assets.assets.realtime.operations import Operation, OperationInputs
from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError
from pinot_assets.realtime.operations.drill import Drill, Lengths, runs
from pinot_assets.realtime.operations.restart import Restart, restart_from

BREAK: Final = "PINOT_ASSETS_DRILL_BREAK"
MEND: Final = "PINOT_ASSETS_DRILL_MEND"
LOAD_FROM_PEERS: Final = "PINOT_ASSETS_DRILL_LOAD_FROM_PEERS"


def _is_confirmed(work: OperationInputs) -> bool:
    return str(work.config["confirm"]).removesuffix("_REALTIME") == work.spec.name


def _restart(work: OperationInputs) -> str:
    named = work.config["segments"]
    with work.open() as table:
        if not _is_confirmed(work):
            found = restart_from(table.read(), named)
            for segment in found.going:
                work.log.info(f"would be deleted: {segment.name}")
            for said in (*found.refusals, *found.warnings):
                work.log.warning(said)
            would = f"{plural(len(found.going), 'segment')} would go"
            return f"{would}; only shown, as confirm does not name the table"
        with table.hold(work.run) as lease:
            deleted = Restart(table.pinot, table.read, lease, table.tell).run(named)
    return f"read again from the stream: {plural(len(deleted), 'segment')} deleted"


def _drill(work: OperationInputs) -> str:
    """:raises PinotAssetsError: the run does not say the table's name, or the environment no commands."""
    if not _is_confirmed(work):
        raise PinotAssetsError(
            f"no drill on {work.table}",
            why="confirm does not name it",
            hint="repeat the table's name there, if it is one that may be broken",
        )
    said = {name: os.environ.get(name, "") for name in (BREAK, MEND, LOAD_FROM_PEERS)}
    missing = [name for name in (BREAK, MEND) if not said[name]]
    if missing:
        raise PinotAssetsError(
            f"no drill on {work.table}",
            why=f"{' and '.join(missing)} of the code location's environment not set",
            hint="set the commands that make the deep store unwritable and undo it",
        )
    seconds = work.config["seconds"]
    with work.open() as table, table.hold(work.run) as lease:
        broker = table.pinot.brokers_of(work.table)[0]
        found = Drill(
            table.read,
            runs(said[BREAK]),
            runs(said[MEND]),
            lambda: table.pinot.answered_rows(broker, work.table),
            table.repair(lease),
            runs(said[LOAD_FROM_PEERS]) if said[LOAD_FROM_PEERS] else None,
            lengths=Lengths(before=seconds, outage=seconds),
            tell=table.tell,
        ).run()
    told = "\n".join(f"{one.name}: {one.text}" for one in found)
    if any(one.passed is False for one in found):
        raise dg.Failure(told, allow_retries=False)
    return told


_CONFIRM = dg.Field(str, default_value="", description="The table's name once more: yes, do it.")
CONFIRMED: Final = (
    Operation(
        "restart_from",
        "Delete lost segments and all later ones of their partitions, and read them again in order: the last "
        "resort of dedup and partial upsert tables. Without `confirm`, what would go is only shown.",
        _restart,
        {
            "segments": dg.Field([str], description="Lost segments, by their whole names."),
            "confirm": _CONFIRM,
        },
    ),
    Operation(
        "drill",
        "Take the deep store from a TEST table for a while, and show what that does: by the commands in "
        f"{BREAK} and {MEND}.",
        _drill,
        {
            "confirm": _CONFIRM,
            "seconds": dg.Field(
                float, default_value=60.0, description="How long it is watched, before and in the outage."
            ),
        },
    ),
)
"""In the order of the commands."""
