"""The fence: state of a newer release stops this one, by its name, before anything is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.pinot.staged import EMPTY
from golden.life import nodes_of
from kazoo.exceptions import ConnectionLoss
from model.world.lives import failed, make_table, of_format_1, rolled_back, run_now, state, write
from model.world.process import Kind, Trouble
from model.world.table import CLUSTER, TABLE, Job, ModelTable, clear, run
from model.world.watched import WRITES

from pinot_assets.core.stored_format import FIRST, NEWEST, RELEASES
from pinot_assets.errors import NeedsNewerRelease, SessionError
from pinot_assets.gc.collect import collect
from pinot_assets.gc.orphans import garbage
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.formats import _KINDS, require_known
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.snapshot.receipt import Output
from pinot_assets.snapshot.recipes import StoredRecipe

FUTURE = {"format": NEWEST + 1, "needs": "7.5.0"}


def store_of(table: ModelTable) -> SessionStore:
    return SessionStore(table.zookeeper.client(), CLUSTER, f"{TABLE}_OFFLINE")


def rolls_back(driver: Driver) -> None:
    driver.rollback()


def shows_a_rollback(driver: Driver) -> None:
    driver.rollback_plan()


def lists_snapshots(driver: Driver) -> None:
    driver.rollback_plans(5)


def resumes(driver: Driver) -> None:
    driver.resume()


def collects(driver: Driver) -> None:
    collect(driver, 0, lambda done, total: None)


def shows_garbage(driver: Driver) -> None:
    garbage(driver, 0)


def plans(driver: Driver) -> None:
    driver.plan()


def goes_by_a_plan(driver: Driver) -> None:
    driver.trigger_planned("0" * 64)


def audits(driver: Driver) -> None:
    driver.audit()


def publishes(driver: Driver) -> None:
    driver.publish()


def triggers_alone(driver: Driver) -> None:
    driver.trigger_without_retry()


def is_scheduled(driver: Driver) -> None:
    driver.trigger_scheduled()


def rebuilds(driver: Driver) -> None:
    driver.rebuild()


def upgrades(driver: Driver) -> None:
    driver.upgrade()


def sets_configs_back(driver: Driver) -> None:
    driver.apply_recipe(StoredRecipe(1, {}, {}, schema={"schemaName": TABLE}, table_config={}))


ENTRIES: list[Job] = [
    run,
    triggers_alone,
    is_scheduled,
    goes_by_a_plan,
    plans,
    audits,
    publishes,
    clear,
    rolls_back,
    shows_a_rollback,
    lists_snapshots,
    resumes,
    collects,
    shows_garbage,
    rebuilds,
    upgrades,
    sets_configs_back,
]


def in_a_switch() -> ModelTable:
    """A table in the middle of a switch, with a stray in sight that a trigger would delete."""
    table = make_table("sync")
    for change in (write(A="A1"), run_now, write(A="A2", B="B1"), run_now, write(C="C1")):
        change(table)
    table.start(run, [Trouble("push", Kind.DIES_AFTER)])
    table.expire()
    table.pinot.push(TABLE, [Output(f"{TABLE}__cp1-ffffff_0_0_0", 1, 1, "", 1, "", "")], staged=EMPTY)
    return table


def rewrite_node(table: ModelTable, node: str) -> None:
    store = store_of(table)
    path = f"{store.path}/{node}" if node else store.path
    record = json.loads(table.zookeeper.nodes[path].data)
    record["simpleFields"] |= {key: str(value) for key, value in FUTURE.items()}
    table.zookeeper.nodes[path].data = json.dumps(record).encode()


def newer_text() -> bytes:
    return json.dumps({"what": "nobody knows", **FUTURE}).encode()


def newer_rows() -> bytes:
    said = {key: str(value) for key, value in FUTURE.items()}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"what": ["nobody knows"]}).replace_schema_metadata(said), sink)
    return bytes(sink.getvalue())


def put_newer(folder: str, name: str) -> Callable[[ModelTable], None]:
    """A release of the future has worked here, and ZooKeeper was restored to a moment before."""

    def put(table: ModelTable) -> None:
        session = store_of(table).pointer().active_session
        identity = store_of(table).session(session).id
        key = f"{folder.format(session=identity)}/{name}"
        table.staging.put_if_absent(key, newer_rows() if name.endswith(".parquet") else newer_text())

    return put


MARKED: dict[str, Callable[[ModelTable], None]] = {
    "pointer": lambda table: rewrite_node(table, ""),
    "open session": lambda table: rewrite_node(table, store_of(table).pointer().active_session),
    "former session": lambda table: rewrite_node(table, "cp2"),
    "header": put_newer("snapshots", f"9-{'a' * 64}.json"),
    "receipt": put_newer("sessions/{session}/files", "0123456789abcdef-0123456789ab-7.json"),
    "batch": put_newer("sessions/{session}/batches", f"7-{'a' * 64}.json"),
    "switch": put_newer("sessions/{session}", f"switch-7-{'a' * 64}.json"),
    "failures": put_newer("sessions/{session}", f"failures-7-{'a' * 64}.json"),
    "plan": put_newer("sessions/{session}", f"plan-7-{'a' * 64}.parquet"),
    "hold": put_newer("sessions/{session}", f"hold-{'a' * 64}.json"),
    "cut": put_newer("sessions/{session}/cut", "0123456789abcdef-0123456789ab-7.json"),
}


LOOKS = {"observe", "count", "notes", "given_up", "hold_ended", "last_failures", "report_to"}
"""What changes nothing, and is asked between the others."""
HOLDS = {"take", "release", "guard"}
"""The lease itself: whoever takes it calls one of the others then."""
DOORS = {"carry_out", "require_known"}
"""For what stands above the driver: `collect` and `garbage` go through them."""
BOTH = {"gate_and_publish"}
"""Two of the others, one after the other."""


def test_whatever_a_driver_can_do_is_tried_at_the_fence() -> None:
    doing = {name for name in vars(Driver) if not name.startswith("_")} - LOOKS - HOLDS - DOORS - BOTH
    called = {name for entry in ENTRIES for name in (entry.__code__.co_names) if name in doing}
    assert called == doing


def test_each_kind_that_the_fence_knows_is_marked() -> None:
    """Of a snapshot it reads the header; a node is its pointer or one of two sessions."""
    kinds = {kind for kind, _ in _KINDS} - {"snapshot"}
    assert set(MARKED) == kinds | {"header", "pointer", "open session", "former session"}


@pytest.mark.parametrize("what", MARKED)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.__name__)
def test_nothing_is_done_where_something_is_of_a_newer_format(entry: Job, what: str) -> None:
    table = in_a_switch()
    MARKED[what](table)
    before = state(table)
    table.pinot.calls.clear()
    process = table.start(entry).process
    assert isinstance(process.error, NeedsNewerRelease), process.error
    assert "needs pinot-assets 7.5.0; this is " in str(process.error)
    assert WRITES.isdisjoint(table.pinot.calls)
    assert state(table) == before


def test_what_cannot_be_read_at_all_is_not_the_fences() -> None:
    table = make_table("sync")
    table.source.write("A", b"A1")
    table.start(run)
    table.staging.put_if_absent(f"snapshots/9-{'a' * 64}.json", b"{torn")
    table.source.write("B", b"B1")
    assert table.start(run).report is not None


def test_a_zookeeper_that_falls_silent_shuts_the_fence() -> None:
    """What could not be looked at is not known to be of a known format."""
    table = in_a_switch()
    client = table.zookeeper.client()
    reads = iter(range(100))

    def falls_silent() -> None:
        if next(reads) >= 4:
            raise ConnectionLoss

    client.on_read = falls_silent
    store = SessionStore(client, CLUSTER, f"{TABLE}_OFFLINE")
    with pytest.raises(SessionError, match="ZooKeeper does not answer"):
        require_known(store, Staging(table.staging))


# --- which format ----------------------------------------------------------------------------------


def test_a_new_table_begins_in_the_newest_format() -> None:
    table = failed()
    pointer = store_of(table).pointer()
    assert pointer.format == NEWEST
    said = [json.loads(node)["simpleFields"] for node in nodes_of(table).values()]
    assert {(one["format"], one["needs"]) for one in said} == {(str(NEWEST), RELEASES[NEWEST])}
    for info in table.staging.list("sessions"):
        if info.key.endswith(".json"):
            value = json.loads(table.staging.read(info.key))
            assert (value["format"], value["needs"]) == (NEWEST, RELEASES[NEWEST]), info.key


def test_an_upgrade_takes_effect_with_the_next_session() -> None:
    table = of_format_1()
    store = store_of(table)
    assert store.pointer().format == FIRST
    table.source.write("B", b"!")
    table.start(run)
    assert table.start(upgrades).process.error is None
    assert store.pointer() == replace(store.pointer(), format=NEWEST)
    open_one = store.active_session(store.pointer())
    assert open_one is not None
    assert open_one.format == FIRST
    table.source.write("B", b"B1")
    table.start(run)
    assert store.session(open_one.node).format == FIRST
    table.source.write("C", b"C1")
    running = table.start(run)
    assert running.report is not None
    assert running.report.result is TriggerResult.STAGED
    assert store.sessions()[-1].format == NEWEST
    assert table.start(upgrades).process.error is None  # and once more: nothing to do


def test_a_table_of_format_2_whose_pointer_was_lost_is_of_format_2_again() -> None:
    table = make_table("sync")
    table.source.write("A", b"A1")
    table.start(run)
    for path in [path for path in table.zookeeper.nodes if "consistentPush" in path]:
        del table.zookeeper.nodes[path]
    table.source.write("B", b"B1")
    table.start(run)
    assert store_of(table).pointer().format == NEWEST


def test_a_table_of_format_1_whose_pointer_was_lost_stays_of_format_1() -> None:
    table = of_format_1()
    for path in [path for path in table.zookeeper.nodes if "consistentPush" in path]:
        del table.zookeeper.nodes[path]
    table.source.write("B", b"B1")
    table.start(run)
    assert store_of(table).pointer().format == FIRST


def test_a_rollback_writes_the_format_of_its_table() -> None:
    table = make_table("sync")
    for change in (write(A="A1"), run_now, write(A="A2"), run_now, rolled_back):
        change(table)
    assert {json.loads(node)["simpleFields"]["format"] for node in nodes_of(table).values()} == {str(NEWEST)}
    for info in table.staging.list("snapshots"):
        if info.key.endswith(".json"):
            assert json.loads(table.staging.read(info.key))["format"] == NEWEST
