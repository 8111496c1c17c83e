"""Tables that drivers of each format left half way (tests/golden): this release goes on with them.

What it leaves in turn holds the fields of that format and no others. So a driver or a sensor of 0.1.0 beside
it reads all of a table of format 1 until `state upgrade`: that release refuses a receipt with another field,
and drops one of the pointer.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from golden.life import load, nodes_of
from golden.lives import LIVES
from model.world.builder import ROWS
from model.world.table import CLUSTER, TABLE, ModelTable, clear, run

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.stored_format import RELEASES, parquet_metadata, parquet_table
from pinot_assets.scheduling.files_tick import decide_tick
from pinot_assets.scheduling.stalled_session import decide_session
from pinot_assets.session.detect.observe import list_source, observe
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import Mode, Outcome, PushKind, Session, State

GOLDEN = Path(__file__).parents[1] / "golden"
Left = tuple[int, str]
LEFT: list[Left] = [(number, life) for number in RELEASES for life in LIVES]
"""Of which format, and which life."""

each_left = pytest.mark.parametrize("left", LEFT, ids=lambda left: f"{left[1]}-of-{left[0]}")


def table_of_life(left: Left) -> ModelTable:
    number, life = left
    folder = GOLDEN / f"format-{number}"
    pool = json.loads((folder / "pool.json").read_text())
    return load(json.loads((folder / "lives" / f"{life}.json").read_text()), pool)


def objects_of(number: int) -> Path:
    return GOLDEN / f"format-{number}" / "objects"


def store_of(table: ModelTable) -> SessionStore:
    return SessionStore(table.zookeeper.client(), CLUSTER, f"{TABLE}_OFFLINE")


def open_session(table: ModelTable) -> Session:
    store = store_of(table)
    session = store.active_session(store.pointer())
    assert session is not None
    return session


def rows_in_sight(table: ModelTable) -> Counter[str]:
    fake_table = table.pinot._tables[TABLE]
    return Counter(fake_table.metadata[name].custom[ROWS] for name in fake_table.visible)


def keys_of(node: bytes) -> set[str]:
    return set(json.loads(node)["simpleFields"])


class Fields:
    """Which fields the objects of a format have."""

    def __init__(self, number: int) -> None:
        self._folder = objects_of(number)
        self.nodes = {name: keys_of(self.read(f"{name}.json")) for name in ("pointer", "session")}
        kinds = ("receipt", "switch", "hold", "header", "files-cursor", "session-cursor")
        self.keys = {name: set(json.loads(self.read(f"{name}.json"))) for name in kinds}
        cut = objects_of(2) / "cut-in-format-1.json" if number == 1 else self._folder / "cut.json"
        self.keys["cut"] = set(json.loads(cut.read_bytes()))
        # A session that this release begins knows what builds its files; 0.1.0 reads nothing of it.
        later = () if number == 1 else ("plan-with-recipe", "manifest-with-revisions")  # without packs
        of_rows = ("plan", "manifest", *later)
        self.rows = {
            kind: [rows_kind(self.read(f"{name}.parquet")) for name in of_rows if name.startswith(kind)]
            for kind in ("plan", "manifest")
        }
        more = {"header": "header-with-recipes"} if number > 1 else {}
        more |= {"hold": "hold-with-versions"} if number > 2 else {}
        self.with_more = {kind: set(json.loads(self.read(f"{name}.json"))) for kind, name in more.items()}
        self.output = set(json.loads(self.read("receipt.json"))["outputs"][0])
        self.audit = set(json.loads(self.read("header.json"))["audit"])
        self.failures = json.loads(self.read("failures.json"))

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()


def failures_in(value: list[JsonObject] | dict[str, list[JsonObject]]) -> list[JsonObject]:
    """Of format 1 a list, of a later one in an object that says so."""
    return value if isinstance(value, list) else value["failures"]


def rows_kind(data: bytes) -> tuple[pa.Schema, set[str]]:
    """Return the columns of a Parquet object and the names of its metadata."""
    return parquet_table(data).schema.remove_metadata(), set(parquet_metadata(data))


FIELDS = {number: Fields(number) for number in RELEASES}


def assert_format(table: ModelTable, number: int) -> None:
    """Every object holds exactly the fields of that format."""
    fields = FIELDS[number]
    for name, node in nodes_of(table).items():
        assert keys_of(node) == fields.nodes["session" if name else "pointer"]
        value = json.loads(node)["simpleFields"]
        int(value["seq" if name else "epoch"].partition(" (needs")[0])
        if audit := value.get("audit"):
            assert set(json.loads(audit)) == fields.audit
    for info in table.staging.list():
        data, kind = table.staging.read(info.key), _kind(info.key)
        if kind in ("plan", "manifest"):
            assert rows_kind(data) in fields.rows[kind]
        elif kind == "failures":
            value = json.loads(data)
            assert type(value) is type(fields.failures)
            for failure in failures_in(value):
                assert set(failure) == set(failures_in(fields.failures)[0])
        elif kind:
            value = json.loads(data)
            assert set(value) in (fields.keys[kind], fields.with_more.get(kind))
            for output in value.get("outputs", value.get("segmentsTo", ())):
                assert set(output) == fields.output


def _kind(key: str) -> str:
    """Of our own objects; tars and the mark of the cluster are not."""
    if key.startswith("snapshots/"):
        return "header" if key.endswith(".json") else "manifest"
    if not key.startswith("sessions/"):
        return ""
    name = key.split("/", 2)[2]
    if name.startswith("cut/"):
        return "cut"
    return "receipt" if name.startswith("files/") else name.partition("-")[0]


@pytest.mark.parametrize("number", RELEASES)
def test_each_state_of_a_session_is_there(number: int) -> None:
    assert {path.stem for path in (GOLDEN / f"format-{number}" / "lives").iterdir()} == set(LIVES)
    sessions = {life: open_session(table_of_life((number, life))) for life in LIVES}
    assert {session.format for session in sessions.values()} == {number}
    assert {session.state for session in sessions.values()} == {State.INIT, State.IN_PROGRESS, State.SWITCH}
    assert sessions["in-progress"].failures is not None
    assert sessions["switch-before-start"].lineage_entry_id == ""
    assert sessions["switch-end-issued"].end_sent
    assert sessions["rollback-issued"].revert_sent
    assert {s.mode for s in sessions.values()} == {*Mode}
    assert {s.push for s in sessions.values()} == {*PushKind}


def test_counts_of_cut_values_are_there() -> None:
    cut = {life for number, life in LEFT if number > 1 and has_cut(table_of_life((number, life)))}
    assert cut >= {f"{mode}-switch-pushed" for mode in ("append", "swap", "atomic", "plain")}


def has_cut(table: ModelTable) -> bool:
    return any("/cut/" in info.key for info in table.staging.list("sessions"))


@each_left
def test_it_is_gone_on_with(left: Left) -> None:
    table = table_of_life(left)
    number, life = left
    session = open_session(table)
    receipts = [i.key for i in table.staging.list() if i.key.startswith(f"sessions/{session.id}/files/")]
    if life == "in-progress":
        table.source.write("E", b"E1")
    for _ in range(3):
        table.later(60)
        last = table.start(run)
        assert last.process.error is None, last.process.error
        if last.report is not None and last.report.result in (TriggerResult.NOTHING, TriggerResult.HELD):
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
    if life.endswith("in-build"):
        assert has_cut(table), "what it builds beside the receipts of another release"
    assert_format(table, number)


@each_left
def test_it_can_be_given_up(left: Left) -> None:
    table = table_of_life(left)
    table.later(60)
    process = table.start(clear).process
    pointer = store_of(table).pointer()
    if process.error is None:
        assert pointer.active_session == ""
    else:  # a revert that was sent may still happen
        assert left[1] == "rollback-issued"
    assert_format(table, left[0])


def test_a_new_session_of_an_old_table_is_of_its_format() -> None:
    table = table_of_life((1, "switch-ended"))
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
    assert_format(table, 1)


@each_left
def test_a_sensor_of_this_release_beside_a_driver_of_another(left: Left) -> None:
    """It reads what that driver left, changes nothing, and keeps cursors that that driver's release reads."""
    table, fields = table_of_life(left), FIELDS[left[0]]
    before, store = nodes_of(table), store_of(table)
    staged = {info.key: info for info in table.staging.list()}
    observation = observe(store, Staging(table.staging))
    inventory = list_source(table.spec, table.source)
    cursor = fields.read("files-cursor.json").decode()
    tick = decide_tick(table.spec, inventory, observation, cursor, 1_700_000_900)
    assert set(json.loads(tick.cursor)) == fields.keys["files-cursor"]
    watched = fields.read("session-cursor.json").decode()
    verdict = decide_session(table.spec, observation, {}, watched, 1_700_000_900)
    assert set(json.loads(verdict.cursor)) == fields.keys["session-cursor"]
    assert nodes_of(table) == before
    assert {info.key: info for info in table.staging.list()} == staged


@each_left
def test_a_field_that_another_release_left_survives_the_whole_session(left: Left) -> None:
    table = table_of_life(left)
    client, store = table.zookeeper.client(), store_of(table)
    session = open_session(table)
    for path in (store.path, f"{store.path}/{session.node}"):
        record: JsonObject = json.loads(client.get(path)[0])
        record["simpleFields"]["colour"] = "blue"
        client.set(path, json.dumps(record).encode())
    if left[1] == "in-progress":
        table.source.write("E", b"E1")
    table.later(60)
    table.start(run)
    assert store.session(session.node).outcome is Outcome.PUBLISHED
    for path in (store.path, f"{store.path}/{session.node}"):
        assert json.loads(client.get(path)[0])["simpleFields"]["colour"] == "blue"
