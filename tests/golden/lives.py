"""Writes golden lives with the code of one release: tables that a driver left half way, with all around them.

The code is that of the release that brought the format, never of a newer one; README.md says how it is run. A
life that is there stays as it is.
"""

from __future__ import annotations

import itertools
import json
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fakes.stores import memory as objects_module
from golden.life import Pool, dump, new_table
from model.world.process import Kind, Trouble
from model.world.table import ModelTable, run

from pinot_assets.session.driver import Driver

Change = Callable[[ModelTable], None]


def dies(job: Callable[[Driver], object], at: str, kind: Kind) -> Change:
    """A driver that dies there."""

    def happen(table: ModelTable) -> None:
        process = table.start(job, [Trouble(at, kind)]).process
        assert process.dead, process.effects
        table.expire()

    return happen


def rollback(driver: Driver) -> None:
    driver.rollback()


def rollback_two(driver: Driver) -> None:
    driver.rollback("1")


def fails(table: ModelTable) -> None:
    """A file of the session cannot be read."""
    table.source.write("E", b"!")
    table.start(run)


def rewritten(table: ModelTable) -> None:
    """Two snapshots, and changes of every kind since."""
    table.source.write("A", b"A1a A1b")
    table.source.write("B", b"B1")
    table.start(run)
    table.source.write("A", b"A2")
    table.start(run)
    table.source.write("C", b"C1")
    table.source.write("D", b"D1a D1b")
    table.source.remove("B")


def thrice_rewritten(table: ModelTable) -> None:
    """Three snapshots: what is older than the one before comes back from its tars."""
    table.source.write("A", b"A1a A1b")
    table.source.write("B", b"B1")
    for content in (b"", b"A2", b"A3"):
        if content:
            table.source.write("A", content)
        table.start(run)
    table.source.write("C", b"C1")
    table.source.write("D", b"D1a D1b")
    table.source.remove("B")


LONG = "D1" + 600 * "d"
"""A value that is cut at the maxLength of its column, which this project counts from 0.2.0 on."""


def grown(table: ModelTable) -> None:
    """Two snapshots, and new files alone since."""
    table.source.write("A", b"A1a A1b")
    table.start(run)
    table.source.write("B", b"B1")
    table.start(run)
    table.source.write("C", b"C1")
    table.source.write("D", f"{LONG} D2".encode())


def rewritten_long(table: ModelTable) -> None:
    """As `rewritten`, with a value that is cut."""
    rewritten(table)
    table.source.write("D", f"{LONG} D2".encode())


@dataclass(frozen=True)
class Life:
    """One life.

    :ivar mode: as `golden.life.new_table` knows it.
    :ivar before: what was published, and has changed since.
    :ivar end: how its driver ends.
    """

    mode: str
    before: Change
    end: Change


BEFORE, AFTER = Kind.DIES_BEFORE, Kind.DIES_AFTER
_MODES = {"append": grown, "swap": rewritten_long, "atomic": rewritten_long, "plain": rewritten_long}
_ENDS = {
    "in-build": dies(run, "build", AFTER),
    "switch-pushed": dies(run, "push", AFTER),
    "switch-ended": dies(run, "end_", AFTER),
}
LIVES: dict[str, Life] = {
    "init": Life("sync", rewritten, dies(run, "zk set consistentPush, create cp", AFTER)),
    "in-progress": Life("sync", rewritten, fails),
    "switch-before-start": Life("sync", rewritten, dies(run, "start_", BEFORE)),
    "switch-started": Life("sync", rewritten, dies(run, "start_", AFTER)),
    "switch-pushed": Life("sync", rewritten, dies(run, "push", AFTER)),
    "switch-end-issued": Life("sync", rewritten, dies(run, "end_", BEFORE)),
    "switch-ended": Life("sync", rewritten, dies(run, "end_", AFTER)),
    "rollback-issued": Life("sync", rewritten, dies(rollback, "revert_", BEFORE)),
    "rollback-reverted": Life("sync", rewritten, dies(rollback, "revert_", AFTER)),
    "rollback-republished": Life("sync", thrice_rewritten, dies(rollback_two, "push", AFTER)),
    **{f"{m}-{how}": Life(m, before, end) for m, before in _MODES.items() for how, end in _ENDS.items()},
}


def life(name: str) -> ModelTable:
    """The table of that life."""
    numbers = itertools.count(1)
    secrets.token_hex = lambda nbytes=None: f"{next(numbers):06x}"  # the same names in all lives
    objects_module._numbers = itertools.count(1)
    one = LIVES[name]
    table = new_table(one.mode)
    one.before(table)
    one.end(table)
    return table


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "lives").mkdir(parents=True, exist_ok=True)
    pool_path = folder / "pool.json"
    pool: Pool = json.loads(pool_path.read_text()) if pool_path.exists() else {}
    for name in LIVES:
        path = folder / "lives" / f"{name}.json"
        if not path.exists():
            path.write_text(
                json.dumps(dump(life(name), LIVES[name].mode, pool), indent=1, sort_keys=True) + "\n"
            )
    pool_path.write_text(json.dumps(pool, indent=1, sort_keys=True) + "\n")
