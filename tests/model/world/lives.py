"""Lives of a table up to a plan, and plans that are watched: they must not change anything anywhere."""

from __future__ import annotations

from collections.abc import Callable

from model.world.process import Kind, Trouble
from model.world.specs import spec_of
from model.world.table import CLUSTER, TABLE, ModelTable, run
from model.world.watched import WRITES

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot import Lineage, LineageEntry, LineageState
from pinot_assets.session.driver import Driver
from pinot_assets.session.plan_report.plan_report import PlanReport
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.values.report import TriggerReport, TriggerResult
from pinot_assets.session.values.state import Pointer, pointer_to_bytes
from pinot_assets.snapshot.receipt import Fingerprint

Change = Callable[[ModelTable], object]


FILE_BY_FILE = {"consistentPushEnabled": "false", "ingestionMode": "sync"}
PUSHES: dict[str, JsonObject] = {
    "plain": FILE_BY_FILE,
    "atomic": {**FILE_BY_FILE, "enableAtomicUpload": "true"},
}
"""Kinds of push beside the modes of `table`; the truth of the model knows of consistent push alone."""


def make_table(mode: str, **options: object) -> ModelTable:
    """Of one of `MODES` or `PUSHES`."""
    keys = {"consistentPushMaxRetries": 3, **PUSHES.get(mode, {}), **options}
    return ModelTable(spec_of, "sync" if mode in PUSHES else mode, keys)


def of_format_1() -> ModelTable:
    """A table that was published in format 1."""
    table = make_table("sync")
    client = table.zookeeper.client()
    path = SessionStore(client, CLUSTER, f"{TABLE}_OFFLINE").path
    client.ensure_path(path)
    client.set(path, pointer_to_bytes(Pointer(next_seq=2, history=("cp1",))))
    table.source.write("A", b"A1")
    table.start(run)
    return table


def planned(table: ModelTable) -> PlanReport:
    """Plan, which must not change anything anywhere."""
    plans: list[PlanReport] = []
    before = state(table)
    table.pinot.calls.clear()

    def plan(driver: Driver) -> None:
        plans.append(driver.plan())

    process = table.start(plan).process
    assert process.error is None, process.error
    assert process.effects == ["list"] * len(process.effects)  # every write anywhere is an effect
    assert WRITES.isdisjoint(table.pinot.calls)
    assert state(table) == before
    return plans[0]


Everything = tuple[dict[str, tuple[bytes, int]], dict[str, Fingerprint], frozenset[str], Lineage]
"""Nodes, the staging area, segments and lineage."""


def state(table: ModelTable) -> Everything:
    """What lies anywhere."""
    nodes = {path: (node.data, node.version) for path, node in table.zookeeper.nodes.items()}
    staged = {info.key: info.fingerprint for info in table.staging.list()}
    return nodes, staged, table.pinot.all_segments(TABLE), table.pinot.lineage(TABLE)


def run_planned(table: ModelTable, plan_hash: str) -> tuple[TriggerReport | None, Exception | None]:
    """The whole job, as planned."""

    def go(driver: Driver) -> TriggerReport:
        report = driver.trigger_planned(plan_hash)
        if report.result in (TriggerResult.STAGED, TriggerResult.FAILED):
            _, findings = driver.audit()
            if not any(f.blocks for f in findings):
                driver.publish()
        return report

    running = table.start(go)
    return running.report, running.process.error


def write(**files: str) -> Change:
    def change(table: ModelTable) -> None:
        for name, text in files.items():
            table.source.write(name, text.encode())

    return change


def remove(name: str) -> Change:
    return lambda table: table.source.remove(name)


def dies(at: str) -> Change:
    def change(table: ModelTable) -> None:
        table.start(run, [Trouble(at, Kind.DIES_AFTER)])
        table.expire()

    return change


def rolled_back(table: ModelTable) -> None:
    def rollback(driver: Driver) -> None:
        driver.rollback()

    table.start(rollback)


def rollback_dies(table: ModelTable) -> None:
    """Right after Pinot has reverted."""

    def rollback(driver: Driver) -> None:
        driver.rollback()

    table.start(rollback, [Trouble("revert_", Kind.DIES_AFTER)])
    table.expire()


def pointer_lost(table: ModelTable) -> None:
    """Somebody deletes the nodes in ZooKeeper."""
    for path in [path for path in table.zookeeper.nodes if "consistentPush" in path]:
        del table.zookeeper.nodes[path]


def start_lands_late(table: ModelTable) -> None:
    """A start of ours, given up for lost, when its switch has been made: it hides what is published (R1)."""
    published = table.pinot.visible_segments(TABLE)
    late = LineageEntry("late", frozenset(), published, LineageState.IN_PROGRESS, table.now_ms)
    table.pinot._put(table.pinot._table(TABLE), late)


def run_now(table: ModelTable) -> None:
    table.start(run)


LIVES: dict[str, list[Change]] = {
    "nothing at all": [],
    "first files": [write(A="A1", B="B1")],
    "all published": [write(A="A1"), run_now],
    "a new, a rewritten, a deleted": [write(A="A1", B="B1"), run_now, write(A="A2", C="C1"), remove("B")],
    "a driver died before its build": [write(A="A1"), dies("zk set cp1")],
    "a driver died in its build": [write(A="A1", B="B1"), dies("build"), write(C="C1")],
    "a driver died at the start": [write(A="A1"), dies("start_")],
    "a driver died at the push": [write(A="A1"), run_now, write(B="B1"), dies("push")],
    "a driver died at the end": [write(A="A1"), dies("end_")],
    "a rollback holds": [write(A="A1"), run_now, write(B="B1"), run_now, rolled_back],
    "a rollback holds some": [write(A="A1"), run_now, write(B="B1"), run_now, rolled_back, write(C="C")],
    "a rollback died": [write(A="A1"), run_now, write(B="B1"), run_now, rollback_dies],
    "the pointer was lost": [write(A="A1"), run_now, write(B="B1"), pointer_lost],
    "a start landed late": [write(A="A1", B="B1"), run_now, start_lands_late, write(A="A2")],
    "somebody merged": [write(A="A1", B="B1"), run_now, ModelTable.merge_foreign, write(C="C1")],
    "somebody pushes beside": [write(A="A1"), run_now, ModelTable.push_foreign, write(B="B1")],
}


UNKNOWN_TO_TRUTH: set[Change] = {rolled_back, rollback_dies, start_lands_late, ModelTable.merge_foreign}
"""What it does not know of, and would report."""


def lived(mode: str, life: str) -> ModelTable:
    table = make_table(mode)
    for change in LIVES[life]:
        change(table)
    return table


def failed(**options: object) -> ModelTable:
    """A session of which one file could not be read; it is repaired."""
    table = make_table("sync", **options)
    table.source.write("A", b"A1")
    table.source.write("B", b"!")
    table.start(run)
    table.source.write("B", b"B1")
    return table
