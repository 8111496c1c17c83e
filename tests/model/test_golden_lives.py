"""Tables that drivers of release 0.1.0 left half way (tests/golden): this release goes on with them.

Until `state upgrade`, what it leaves in turn holds the fields of format 1 and no others, so that a driver or
a sensor of 0.1.0 beside it reads all of it: that release refuses a receipt with another field, and drops one
of the pointer.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from golden.life import load, nodes_of
from golden.make import LIVES
from model.builder import ROWS
from model.table import CLUSTER, TABLE, Table, clear, run

from pinot_assets.parquet_bytes import metadata_of, table_of
from pinot_assets.sensors.decision import decide
from pinot_assets.sensors.standstill import decide_session
from pinot_assets.session.driver import Driver
from pinot_assets.session.model import Mode, Outcome, Session, State
from pinot_assets.session.observe import list_source, observe
from pinot_assets.session.report import Result
from pinot_assets.session.staging import Staging
from pinot_assets.session.store import SessionStore

GOLDEN = Path(__file__).parents[1] / "golden" / "format-1"
OBJECTS = GOLDEN / "objects"


def left(life: str) -> Table:
    pool = json.loads((GOLDEN / "pool.json").read_text())
    return load(json.loads((GOLDEN / "lives" / f"{life}.json").read_text()), pool)


def store_of(table: Table) -> SessionStore:
    return SessionStore(table.zookeeper.client(), CLUSTER, f"{TABLE}_OFFLINE")  # type: ignore[arg-type]


def open_session(table: Table) -> Session:
    store = store_of(table)
    session = store.active_session(store.pointer())
    assert session is not None
    return session


def rows_in_sight(table: Table) -> Counter[str]:
    found = table.pinot._tables[TABLE]
    return Counter(found.metadata[name].custom[ROWS] for name in found.visible)


def keys_of(node: bytes) -> set[str]:
    return set(json.loads(node)["simpleFields"])


KEYS: dict[str, set[str]] = {
    name: set(json.loads((OBJECTS / f"{name}.json").read_bytes()))
    for name in ("receipt", "switch", "hold", "header", "files-cursor", "session-cursor")
}
OUTPUT = set(json.loads((OBJECTS / "receipt.json").read_bytes())["outputs"][0])
AUDIT = set(json.loads((OBJECTS / "header.json").read_bytes())["audit"])


def assert_format_1(table: Table) -> None:
    """Every object holds exactly the fields that 0.1.0 writes."""
    for name, node in nodes_of(table).items():
        golden = (OBJECTS / ("session.json" if name else "pointer.json")).read_bytes()
        assert keys_of(node) == keys_of(golden)
        int(json.loads(node)["simpleFields"]["seq" if name else "epoch"])
        if audit := json.loads(node)["simpleFields"].get("audit"):
            assert set(json.loads(audit)) == AUDIT
    for info in table.staging.list():
        data, kind = table.staging.read(info.key), _kind(info.key)
        if kind in ("plan", "manifest"):
            wanted = (OBJECTS / f"{kind}.parquet").read_bytes()
            assert table_of(data).schema.equals(table_of(wanted).schema)
            assert metadata_of(data).keys() == metadata_of(wanted).keys()
        elif kind == "failures":
            wanted = json.loads((OBJECTS / "failures.json").read_bytes())
            assert {key for failure in json.loads(data) for key in failure} == set(wanted[0])
        elif kind:
            value = json.loads(data)
            assert set(value) == KEYS[kind]
            for output in value.get("outputs", value.get("segmentsTo", ())):
                assert set(output) == OUTPUT


def _kind(key: str) -> str:
    """Of our own objects; tars and the mark of the cluster are not."""
    if key.startswith("snapshots/"):
        return "header" if key.endswith(".json") else "manifest"
    if not key.startswith("sessions/"):
        return ""
    name = key.split("/", 2)[2]
    return "receipt" if name.startswith("files/") else name.partition("-")[0]


def test_each_state_of_a_session_is_there() -> None:
    assert {path.stem for path in (GOLDEN / "lives").iterdir()} == set(LIVES)
    found = {life: open_session(left(life)) for life in LIVES}
    assert {session.state for session in found.values()} == {State.INIT, State.IN_PROGRESS, State.SWITCH}
    assert found["in-progress"].failures is not None
    assert found["switch-before-start"].lineage_entry_id == ""
    assert found["switch-end-issued"].ending
    assert found["rollback-issued"].reverting
    assert {s.mode for s in found.values()} == {Mode.SYNC, Mode.ROLLBACK}


@pytest.mark.parametrize("life", LIVES)
def test_it_is_gone_on_with(life: str) -> None:
    table = left(life)
    session = open_session(table)
    receipts = [i.key for i in table.staging.list() if i.key.startswith(f"sessions/{session.id}/files/")]
    if life == "in-progress":
        table.source.write("E", b"E1")
    for _ in range(3):
        table.later(60)
        last = table.start(run)
        assert last.process.error is None, last.process.error
        if last.report is not None and last.report.result in (Result.NOTHING, Result.HELD):
            break
    closed = store_of(table).session(session.node)
    assert (closed.id, closed.outcome) == (session.id, Outcome.PUBLISHED)
    assert closed.retry_count == (1 if life == "in-progress" else 0)
    if receipts:  # what was built is not built again
        assert set(receipts) <= {info.key for info in table.staging.list()}
        assert closed.config_fingerprint == session.config_fingerprint
    if session.mode is Mode.ROLLBACK:
        # Back at A's first version, which is held; then the other changes of the source.
        assert rows_in_sight(table) == Counter(["A1a", "A1b", "C1", "D1a", "D1b"])
    else:
        rows = [row for content in table.files.values() for row in content.decode().split()]
        assert rows_in_sight(table) == Counter(rows)
    assert_format_1(table)


@pytest.mark.parametrize("life", LIVES)
def test_it_can_be_given_up(life: str) -> None:
    table = left(life)
    table.later(60)
    process = table.start(clear).process
    pointer = store_of(table).pointer()
    if process.error is None:
        assert pointer.active_session == ""
    else:  # a revert that was sent may still happen
        assert life == "rollback-issued"
    assert_format_1(table)


def test_a_new_session_of_an_old_table_is_of_its_format() -> None:
    table = left("switch-ended")
    table.later(60)
    table.start(run)
    for name in ("F", "G"):
        table.source.write(name, f"{name}1".encode())
        assert table.start(run).process.error is None
    table.source.write("H", b"!")
    table.start(run)
    table.start(clear)

    def back(driver: Driver) -> None:
        driver.rollback()

    assert table.start(back).process.error is None
    assert_format_1(table)


@pytest.mark.parametrize("life", LIVES)
def test_a_sensor_of_this_release_beside_a_driver_of_the_one_before(life: str) -> None:
    """It reads what that driver left, changes nothing, and keeps cursors that the sensor of 0.1.0 reads."""
    table = left(life)
    before, store = nodes_of(table), store_of(table)
    seen = observe(store, Staging(table.staging))
    inventory = list_source(table.spec, table.source)
    cursor = (OBJECTS / "files-cursor.json").read_text()
    tick = decide(table.spec, inventory, seen, cursor, 1_700_000_900)
    assert set(json.loads(tick.cursor)) == KEYS["files-cursor"]
    watched = (OBJECTS / "session-cursor.json").read_text()
    verdict = decide_session(table.spec, seen, (), watched, 1_700_000_900)
    assert set(json.loads(verdict.cursor)) == KEYS["session-cursor"]
    assert nodes_of(table) == before


@pytest.mark.parametrize("life", LIVES)
def test_a_field_that_another_release_left_survives_the_whole_session(life: str) -> None:
    table = left(life)
    client, found = table.zookeeper.client(), store_of(table)
    session = open_session(table)
    for path in (found.path, f"{found.path}/{session.node}"):
        record: dict[str, Any] = json.loads(client.get(path)[0])
        record["simpleFields"]["colour"] = "blue"
        client.set(path, json.dumps(record).encode())
    if life == "in-progress":
        table.source.write("E", b"E1")
    table.later(60)
    table.start(run)
    assert found.session(session.node).outcome is Outcome.PUBLISHED
    for path in (found.path, f"{found.path}/{session.node}"):
        assert json.loads(client.get(path)[0])["simpleFields"]["colour"] == "blue"
