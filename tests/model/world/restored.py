"""A table whose ZooKeeper, staging area or Dagster database is put back to an earlier moment."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from fakes.pinot.lineage import FakeTable
from fakes.zookeeper.memory import Node
from model.world.builder import ROWS
from model.world.lives import PUSHES, make_table, write
from model.world.process import Kind, Trouble
from model.world.table import TABLE, Job, ModelTable, run

from pinot_assets.errors import PinotAssetsError, SessionError
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerReport
from pinot_assets.session.values.state import Pointer
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.receipt import Fingerprint

Rows = Counter[str]
_NODES = "consistentPush"


@dataclass(frozen=True, slots=True)
class Backup:
    """What is stored where at one moment.

    :ivar nodes: those of this project in ZooKeeper.
    :ivar pinot: the rest of ZooKeeper, where Pinot has its segments and its lineage.
    """

    nodes: dict[str, Node]
    pinot: dict[str, FakeTable]
    staging: dict[str, tuple[bytes, Fingerprint]]


def take_backup(table: ModelTable) -> Backup:
    """Of all of it at one moment; nothing is ephemeral in it."""
    nodes = {p: copy.copy(n) for p, n in table.zookeeper.nodes.items() if _NODES in p and not n.owner}
    return Backup(nodes, copy.deepcopy(table.pinot._tables), dict(table.staging._objects))


def restore_nodes(table: ModelTable, backup: Backup) -> None:
    """The pointer and the sessions alone."""
    for path in [path for path in table.zookeeper.nodes if _NODES in path]:
        del table.zookeeper.nodes[path]
    table.zookeeper.nodes |= {path: copy.copy(node) for path, node in backup.nodes.items()}


def restore_pointer(table: ModelTable, backup: Backup) -> None:
    """The pointer alone: sessions stay as they are."""
    for path, node in backup.nodes.items():
        if path.endswith(_NODES):
            table.zookeeper.nodes[path] = copy.copy(node)


def restore_zookeeper(table: ModelTable, backup: Backup) -> None:
    """All of it: Pinot's part as well."""
    restore_nodes(table, backup)
    table.pinot._tables = copy.deepcopy(backup.pinot)


def restore_staging(table: ModelTable, backup: Backup) -> None:
    """The whole staging area."""
    table.staging._objects.clear()
    table.staging._objects.update(backup.staging)


def store_of(table: ModelTable) -> SessionStore:
    return SessionStore(table.zookeeper.client(), "pinot", f"{TABLE}_OFFLINE")


def pointer(table: ModelTable) -> Pointer:
    return store_of(table).pointer()


def snapshot(table: ModelTable) -> Snapshot:
    ref = pointer(table).current_snapshot
    assert ref is not None
    return Staging(table.staging).snapshot(ref)


def rows(table: ModelTable) -> Rows:
    """What queries see."""
    metadata = table.pinot._tables[TABLE].metadata
    visible = table.pinot._tables[TABLE].visible
    return Counter(row for s in visible for row in metadata[s].custom[ROWS].split())


def watch(table: ModelTable) -> list[Rows]:
    """What queries see from now on, after each call to Pinot; the truth of the model knows of no backups."""
    shown = [rows(table)]

    def look() -> None:
        if rows(table) != shown[-1]:
            shown.append(rows(table))

    table.truth.look = look  # type: ignore[method-assign]
    return shown


def start(table: ModelTable, job: Job) -> tuple[tuple[str, ...], PinotAssetsError | None]:
    """Run a job; what its driver noted, and the error that ended it."""
    notes: list[str] = []

    def noting(driver: Driver) -> TriggerReport | None:
        try:
            came_to = job(driver)
        finally:
            notes.extend(driver.notes)
        return came_to if isinstance(came_to, TriggerReport) else None

    error = table.start(noting).process.error
    assert error is None or isinstance(error, PinotAssetsError)
    return tuple(notes), error


# --- moments of a backup ---------------------------------------------------------------------------


def _first(table: ModelTable) -> None:
    write(A="A1", B="B1", C="C1")(table)
    table.start(run)


def between_sessions(table: ModelTable) -> None:
    _first(table)


def before_anything(table: ModelTable) -> None:
    """A session is open, and nothing was ever published."""
    write(A="A1", B="B1", C="C1")(table)
    table.start(run, [Trouble("build", Kind.DIES_AFTER)])
    table.expire()


def _dying(at: str) -> Callable[[ModelTable], None]:
    def moment(table: ModelTable) -> None:
        _first(table)
        write(A="A2")(table)
        table.start(run, [Trouble(at, Kind.DIES_AFTER)])
        table.expire()

    return moment


def held(table: ModelTable) -> None:
    """After a rollback, which holds A2 back."""
    _first(table)
    write(A="A2")(table)
    table.start(run)

    def rollback(driver: Driver) -> None:
        driver.rollback()

    table.start(rollback)


MOMENTS: dict[str, Callable[[ModelTable], None]] = {
    "between sessions": between_sessions,
    "nothing was published": before_anything,
    "amid a build": _dying("build"),
    "amid a switch": _dying("push"),
    "after an end": _dying("end_"),
    "after a rollback": held,
}


def life(mode: str, moment: str) -> tuple[ModelTable, Backup]:
    """A table that has published twice since a backup was taken."""
    table = make_table(mode)
    MOMENTS[moment](table)
    backup = take_backup(table)
    publish_twice(table)
    assert not table.truth.violations or moment == "after a rollback" or mode in PUSHES
    return table, backup


def publish_twice(table: ModelTable) -> None:
    """New files and rewritten ones, and but for append a deleted one."""

    def resumed(driver: Driver) -> TriggerReport:
        driver.resume()
        return run(driver)

    for change in (write(A="A3", D="D1"), write(B="B2", E="E1")):
        table.later(3600)
        change(table)
        table.start(resumed)
    if table.mode != "append":
        table.source.remove("C")
        table.start(run)
    assert not pointer(table).active_session


def rebuild(driver: Driver) -> None:
    """One of the choices that the error names."""
    driver.rebuild()


def converge(table: ModelTable) -> None:
    """Runs until all is published, with the choice that a run asks a person for."""
    before = rows(table)
    table.later(600)
    _, error = start(table, run)
    if error is not None:
        assert rows(table) == before, "it was stopped, and has changed what queries see"
        assert "pinot-assets session rebuild" in str(error)
        assert isinstance(error, SessionError)
        _, error = start(table, rebuild)
        assert error is None
        assert rows(table) == before
        _, error = start(table, run)
    assert error is None
    if pointer(table).hold is not None:  # what a rollback held back when the backup was taken is held again
        _, error = start(table, lambda driver: driver.resume())
        assert error is None
        _, error = start(table, run)
        assert error is None
    for _ in range(2):  # a session of before, and one more
        _, error = start(table, run)
        assert error is None


Restore = Callable[[ModelTable, Backup], None]


def nothing(table: ModelTable, backup: Backup) -> None:
    """It is as it was."""


ZOOKEEPERS: dict[str, Restore] = {
    "new": nothing,
    "old pointer": restore_pointer,
    "old nodes": restore_nodes,
    "old with Pinot's part": restore_zookeeper,
}
STAGINGS: dict[str, Restore] = {"new": nothing, "old": restore_staging}
