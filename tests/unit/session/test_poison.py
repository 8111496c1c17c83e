"""Stored objects that somebody else wrote: each names itself, and stops only what needs it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.stores.memory import new_memory
from fakes.stores.poison import NO_OBJECT, poisoned
from fakes.zookeeper.memory import FakeZooKeeper
from hypothesis import given, settings
from hypothesis import strategies as st
from model.world.specs import spec_of
from model.world.table import CLUSTER, ModelTable, run

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.stored_format import WITH_PACKS
from pinot_assets.errors import NodeUnreadable, PinotAssetsError, SessionError, SnapshotCorrupt
from pinot_assets.ingest.contract.task_outputs import file_id
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.scheduling.files_tick import FilesCursor
from pinot_assets.scheduling.stalled_session import StallCursor
from pinot_assets.session.detect.listing import ListingCursor
from pinot_assets.session.detect.observe import UnreadableSession, kept_sessions, observe, session_values
from pinot_assets.session.stores.plan_parquet import plan_to_parquet
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging, Switch
from pinot_assets.session.stores.stored_snapshots import StoredSnapshot, snapshots_of
from pinot_assets.session.values.hold import Hold
from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.session.values.report import TriggerResult
from pinot_assets.session.values.state import (
    AuditReceipt,
    Mode,
    ObjectRef,
    Owner,
    Pointer,
    PushKind,
    Session,
    pointer_to_bytes,
    published_audit,
    session_to_bytes,
)
from pinot_assets.snapshot.batch_receipt import BatchReceipt, StoredRows, rows_key
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef, header_to_bytes, sha256_hex
from pinot_assets.snapshot.published_files import PublishedFile, files_to_parquet
from pinot_assets.snapshot.receipt import (
    ColumnFacts,
    Failure,
    FilePiece,
    Fingerprint,
    Output,
    Receipt,
    RowsChunk,
    SegmentFacts,
)
from pinot_assets.source import open_store

SESSION = "cp1-00000a"
NAME = f"t__{SESSION}_0_0_0"
VERSION = Fingerprint(3, 4, "e", None)


def output(uri: str = "mem://0") -> Output:
    return Output(
        NAME, 1, 1, f"{uri}/segments/a.tar.gz", 3, "00", f"{uri}/segments/a.metadata.tar.gz", 1, None, 9
    )


def receipt(uri: str) -> Receipt:
    facts = (SegmentFacts(1, (ColumnFacts("c", "INT", "1", None),)),)
    return Receipt(
        "file:///a", 0, 0, VERSION, "00", 1, 0, (output(uri),), 0.5, "w/1", ("t",), "", ("m",), 1, 0, facts
    )


SNAPSHOT = Snapshot(
    7,
    "t_OFFLINE",
    "cp7-00000a",
    "SYNC",
    "entry",
    SnapshotRef("snapshots/6-00.json", "00"),
    "digest",
    "config",
    1_700_000_000_000,
    (PublishedFile("file:///a", VERSION, "00", 1, 0, SESSION, (output(),), "v", 0.5),),
    {"switch": 1, "passed": True, "left": {"key": "k", "sha256": "00"}},
    "pinot-1",
)
GOLDEN_SESSION = Session(
    id=SESSION,
    seq=1,
    mode=Mode.SYNC,
    config_fingerprint="f",
    created_ms=1,
    plan=ObjectRef("p", "00"),
    failures=ObjectRef("f", "00"),
    switch=1,
    switch_object=ObjectRef("s", "00"),
    audit=AuditReceipt(1, "00", True, 1, "ok"),
    target=SnapshotRef("k", "00"),
    counts={"files": 1},
    push=PushKind.PLAIN,
)
POINTER = Pointer(
    "cp1", 3, Owner("run", "host", 1, 1), 2, ("cp1",), SnapshotRef("k", "00"), "", ObjectRef("h", "00")
)
PLAN = Plan(SESSION, 0, Mode.SYNC, (Row("file:///a", 0, VERSION, RowStatus.BUILD),), (), {}, "digest")


@pytest.fixture
def staging() -> Staging:
    return Staging(new_memory())


def put(staging: Staging, data: bytes, suffix: str = "json") -> ObjectRef:
    sha256 = sha256_hex(data)
    key = f"snapshots/7-{sha256}.{suffix}"
    staging.store.put_if_absent(key, data)
    return ObjectRef(key, sha256)


def refusal(read: Callable[[], Any]) -> PinotAssetsError | None:
    """The error of ours that it ends with, if any; another one goes through."""
    try:
        read()
    except PinotAssetsError as error:
        return error
    return None


# --- the staging area: JSON --------------------------------------------------------------------------


def _switch(ref: ObjectRef, staging: Staging) -> Any:
    return staging.switch(ref).names_to


def _hold(ref: ObjectRef, staging: Staging) -> Any:
    return staging.hold(ref).files


def _failures(ref: ObjectRef, staging: Staging) -> Any:
    return [failure.reason for failure in staging.failures(ref)]


def _header(ref: ObjectRef, staging: Staging) -> Any:
    snapshot = staging.outline(SnapshotRef(ref.key, ref.sha256))
    return snapshot.seq, published_audit(snapshot.audit)


def golden_objects() -> dict[str, tuple[bytes, Callable[[ObjectRef, Staging], Any]]]:
    staging = Staging(new_memory())
    store = staging.store
    refs = {
        "switch": (staging.put_switch(SESSION, Switch(1, ("x",), (output(),))), _switch),
        "hold": (staging.put_hold(SESSION, Hold({"file:///a": "0123"}, ("file:///b",))), _hold),
        "failures": (
            staging.put_failures(SESSION, 0, [Failure("file:///a", 0, 0, "UNREADABLE", "why")]),
            _failures,
        ),
    }
    found = {name: (store.read(ref.key), read) for name, (ref, read) in refs.items()}
    return found | {"header": (header_to_bytes(SNAPSHOT, SnapshotRef("snapshots/7.parquet", "00")), _header)}


GOLDEN = golden_objects()


@pytest.mark.parametrize("kind", GOLDEN)
def test_a_poison_object_is_one_error_that_names_it(staging: Staging, kind: str) -> None:
    golden, read = GOLDEN[kind]
    assert read(put(staging, golden), staging) is not None
    refused = 0
    for what, body in [*NO_OBJECT.items(), *poisoned(golden)]:
        ref = put(staging, body)
        if (error := refusal(lambda ref=ref: read(ref, staging))) is not None:
            refused += 1
            assert ref.key in error.what, what
            assert error.hint, what
        else:
            assert what not in NO_OBJECT or (kind, what) == ("failures", "a list")
    assert refused > len(NO_OBJECT)


@pytest.mark.parametrize("kind", GOLDEN)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_whatever_lies_there_is_no_other_error(kind: str, data: st.DataObject) -> None:
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    )
    golden, read = GOLDEN[kind]
    value = json.loads(golden)
    if isinstance(value, dict) and data.draw(st.booleans()):
        value[data.draw(st.sampled_from([*value]))] = data.draw(values)
    else:
        value = data.draw(values)
    staging = Staging(new_memory())
    ref = put(staging, json.dumps(value).encode())
    error = refusal(lambda: read(ref, staging))
    assert error is None or ref.key in error.what


# --- the staging area: Parquet -----------------------------------------------------------------------


def parquet_poisons(golden: bytes) -> Iterator[tuple[str, bytes]]:
    table = pq.read_table(io.BytesIO(golden))
    yield from NO_OBJECT.items()
    yield "cut", golden[: len(golden) // 2]
    yield "torn in the middle", golden[:8] + b"\xff" * 40 + golden[48:]
    for name in table.column_names:
        yield f"without {name}", _parquet(table.drop_columns([name]))
        place = table.column_names.index(name)
        for other in (pa.array([None], pa.null()), pa.array([1.5]), pa.array([[1]]), pa.array([b"\xff"])):
            yield f"{name} is {other.type}", _parquet(table.set_column(place, name, other))
        empty = pa.array([None], table.schema.field(name).type)
        yield f"{name} has no value", _parquet(table.set_column(place, pa.field(name, empty.type), empty))
    yield "no metadata", _parquet(table.replace_schema_metadata(None))
    yield "other metadata", _parquet(table.replace_schema_metadata({"attempt": "x"}))


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def test_a_poison_plan_is_one_error_that_names_it(staging: Staging) -> None:
    plan = replace(PLAN, touched={"file:///b": VERSION}, removals=("file:///c",))
    (golden,) = {plan_to_parquet(plan)}
    assert staging.plan(put(staging, golden, "parquet")) == plan
    one = plan_to_parquet(PLAN)
    outcomes = {what: _refused(staging, body, staging.plan) for what, body in parquet_poisons(one)}
    assert {what for what in NO_OBJECT if not outcomes[what]} == set()
    assert outcomes["without uri"]
    assert outcomes["uri has no value"]
    assert outcomes["size has no value"], "a file that is planned has a version"
    assert outcomes["status is double"]
    assert outcomes["no metadata"]
    assert outcomes["cut"]


def test_poison_files_of_a_snapshot_are_one_error_that_names_them(staging: Staging) -> None:
    golden = files_to_parquet(SNAPSHOT.files)

    def read(ref: ObjectRef) -> None:
        header = header_to_bytes(SNAPSHOT, SnapshotRef(ref.key, ref.sha256))
        at = put(staging, header)
        snapshot = staging.snapshot(SnapshotRef(at.key, at.sha256))
        _ = snapshot.ledger, snapshot.segments, snapshot.rows, staging.reach(SnapshotRef(at.key, at.sha256))

    read(put(staging, golden, "parquet"))
    outcomes = {what: _refused(staging, body, read) for what, body in parquet_poisons(golden)}
    assert {what for what in NO_OBJECT if not outcomes[what]} == set()
    assert outcomes["without outputs"]
    assert outcomes["outputs has no value"]
    assert outcomes["outputs is list<item: int64>"]
    assert outcomes["session has no value"]
    assert outcomes["torn in the middle"]
    assert not outcomes["without version"], "the first release wrote none"


def test_more_rows_than_are_read_are_refused_before_they_are_unpacked(
    staging: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = put(staging, _parquet(pa.table({"uri": pa.repeat(pa.scalar("x"), 1000)})), "parquet")
    monkeypatch.setattr("pinot_assets.core.stored_format.MOST_ROWS", 999)
    with pytest.raises(SnapshotCorrupt, match="1,000 rows"):
        staging.plan(ref)


def _refused(staging: Staging, body: bytes, read: Callable[[ObjectRef], Any]) -> bool:
    ref = put(staging, body, "parquet")
    error = refusal(lambda: read(ref))
    assert error is None or ref.key in error.what
    return error is not None


# --- receipts ----------------------------------------------------------------------------------------


def test_a_poison_receipt_is_none_and_its_file_is_built_again(staging: Staging) -> None:
    golden = receipt(staging.store.uri).to_bytes()
    for n, (what, body) in enumerate([*NO_OBJECT.items(), *poisoned(golden)]):
        key = f"sessions/{SESSION}/files/{file_id('file:///a')}-{n}-0.json"
        staging.store.put_if_absent(key, body)
        assert staging.receipts(PLAN).keys() == ({0} if what == ".outputs = []" else set()), what
        done = replace(PLAN, rows=(replace(PLAN.rows[0], status=RowStatus.DONE, receipt=key),))
        error = refusal(lambda done=done: staging.accepted_receipts(done))
        assert error is None or key in error.what
        assert error is not None or what not in NO_OBJECT
        staging.store.delete(key)


@pytest.mark.parametrize("has_cells", [False, True])
def test_a_poison_receipt_of_a_batch_is_none_and_its_files_are_read_again(
    staging: Staging, has_cells: bool
) -> None:
    rows = b"rows"
    digest = sha256_hex(rows)
    staging.store.put_if_absent(rows_key(digest), rows)
    small = replace(receipt("mem://0"), outputs=(), tars=(), facts=(), format=WITH_PACKS)
    if has_cells:
        chunks = (RowsChunk("YEAR 2025", digest, 0, 1, 5), RowsChunk("YEAR 2026", digest, 1, 3, 6))
        pieces = tuple(FilePiece(chunk, 0, count) for chunk, count in zip(chunks, (1, 2), strict=True))
        small = replace(small, pieces=pieces, rows=3)
        batch = BatchReceipt("", 0, "", (small,), (StoredRows(digest, 4, ""),), format=WITH_PACKS)
    else:
        small = replace(small, rows_object=digest)
        batch = BatchReceipt(digest, len(rows), "", (small,), format=WITH_PACKS)
    golden = batch.to_bytes()
    plan = replace(PLAN, rows=(replace(PLAN.rows[0], is_small=True),), format=WITH_PACKS)
    taken = set()
    for n, (what, body) in enumerate([("golden", golden), *NO_OBJECT.items(), *poisoned(golden)]):
        key = f"sessions/{SESSION}/batches/0-{n:064x}.json"
        staging.store.put_if_absent(key, body)
        if found := staging.receipts(plan).get(0):
            taken.add(what)
            assert found[1].rows_objects == (digest,), what
            assert found[1].rows == sum(piece.rows for piece in found[1].places), what
        row = replace(plan.rows[0], status=RowStatus.DONE, receipt=key)
        error = refusal(lambda row=row: staging.accepted_receipts(replace(plan, rows=(row,))))
        assert error is None or key in error.what, what
        staging.store.delete(key)
    assert "golden" in taken
    assert not taken & {*NO_OBJECT}


@pytest.mark.parametrize(
    "elsewhere", ["file:///etc/passwd", "s3://other/a", "{root}/../x", "{root}/a//b", ""]
)
def test_a_receipt_of_tars_that_lie_elsewhere_is_none(tmp_path: Path, elsewhere: str) -> None:
    staging = Staging(open_store(str(tmp_path), {}, UNLIMITED))
    there = elsewhere.replace("{root}", staging.store.uri)
    one = replace(receipt(staging.store.uri), outputs=(replace(output(staging.store.uri), tar_uri=there),))
    staging.store.put_if_absent(f"sessions/{SESSION}/files/{file_id('file:///a')}-v-0.json", one.to_bytes())
    assert staging.receipts(PLAN) == {}


# --- ZooKeeper ---------------------------------------------------------------------------------------


@pytest.fixture
def store() -> SessionStore:
    zookeeper = FakeZooKeeper().client()
    made = SessionStore(zookeeper, "pinot", "t_OFFLINE")  # type: ignore[arg-type]
    zookeeper.ensure_path(made.path)
    return made


def write(store: SessionStore, node: str, data: bytes) -> None:
    path = f"{store.path}/{node}".rstrip("/")
    store.zk.ensure_path(path)
    store.zk.set(path, data)


def test_a_poison_pointer_is_one_error_that_names_it(store: SessionStore, staging: Staging) -> None:
    golden = pointer_to_bytes(POINTER)
    write(store, "", golden)
    assert store.pointer() == POINTER
    refused = 0
    for what, body in [*NO_OBJECT.items(), *poisoned(golden)]:
        write(store, "", body)
        if (error := refusal(lambda: str(store.pointer().owner))) is not None:
            refused += 1
            assert isinstance(error, NodeUnreadable)
            assert "t_OFFLINE" in error.what, what
            assert store.path in str(error.hint), what
        else:
            assert what not in NO_OBJECT or not body
        refusal(lambda: observe(store, staging))
    assert refused > len(NO_OBJECT)


def test_a_poison_session_names_itself_and_keeps_nobody_from_the_others(store: SessionStore) -> None:
    golden, other = session_to_bytes(GOLDEN_SESSION), replace(GOLDEN_SESSION, id="cp2-00000b", seq=2)
    write(store, "cp2", session_to_bytes(other))
    for what, body in [*NO_OBJECT.items(), *poisoned(golden)]:
        write(store, "cp1", body)
        newest, poison = kept_sessions(store)
        assert newest == other
        assert store.newest_session() == other
        if isinstance(poison, UnreadableSession):
            assert poison.why, what
            assert store.sessions() == [other]
            with pytest.raises(NodeUnreadable, match="node cp1 of t_OFFLINE"):
                store.session("cp1")
        else:
            assert what not in NO_OBJECT
            json.dumps(session_values(poison))


def test_a_node_larger_than_any_is_not_parsed(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinot_assets.session.values.znrecord.NODE_BYTES", 1000)
    write(store, "cp1", session_to_bytes(replace(GOLDEN_SESSION, last_error="x" * 1000)))
    with pytest.raises(NodeUnreadable, match="bytes are more than is read"):
        store.session("cp1")


@pytest.mark.parametrize(
    "body", [*NO_OBJECT.values(), b'{"run": 1}', b'{"run": 1, "host": 1, "pid": 1, "since_ms": 1}']
)
def test_a_poison_lease_is_one_error_that_names_it(store: SessionStore, body: bytes) -> None:
    write(store, "lease", body)
    with pytest.raises(NodeUnreadable, match="consistentPush/lease cannot be read"):
        store.holder()


def test_poison_memories_of_operations_are_one_error_that_names_them() -> None:
    client = FakeZooKeeper().client()
    store = OperationsStore(client, "pinot", "t_REALTIME")  # type: ignore[arg-type]
    client.ensure_path(store.path)
    for body in NO_OBJECT.values():
        if body:
            client.set(store.path, body)
            with pytest.raises(NodeUnreadable, match="what operations on t_REALTIME remember"):
                store.recall("drain")
    client.set(store.path, b'{"simpleFields": {"drain": 7}}')
    with pytest.raises(SessionError):
        store.recall("drain")


# --- cursors -----------------------------------------------------------------------------------------


def test_a_poison_cursor_counts_as_none() -> None:
    mark = ListingCursor("of", "after", 1, "listings/part.arrow", 1)
    for what, body in [*NO_OBJECT.items(), *poisoned(FilesCursor("l", "s", 1, sweep=mark).text.encode())]:
        cursor = FilesCursor.read(body.decode("utf-8", "replace"))
        assert cursor == FilesCursor() or what not in NO_OBJECT
        _ = cursor.wait_s, cursor.text, cursor.restless
    for what, body in [*NO_OBJECT.items(), *poisoned(StallCursor(1, 2, "p", 3, 4).text.encode())]:
        watch = StallCursor.read(body.decode("utf-8", "replace"))
        assert watch == StallCursor() or what not in NO_OBJECT
        _ = watch.due_s("p"), watch.text


# --- a whole table -----------------------------------------------------------------------------------


def a_table() -> ModelTable:
    table = ModelTable(spec_of, "sync")
    for n in range(3):
        table.source.write("A", f"A{n}".encode())
        table.start(run)
    return table


def test_a_poison_session_of_history_stops_no_run() -> None:
    table = a_table()
    table.source.write("B", b"B")
    client = table.zookeeper.client()
    path = SessionStore(client, CLUSTER, table.spec.name_with_type).path  # type: ignore[arg-type]
    for node in client.get_children(path):
        record = json.loads(client.get(f"{path}/{node}")[0])
        record["simpleFields"]["plan"] = "[" * 9000
        client.set(f"{path}/{node}", json.dumps(record).encode())
    running = table.start(run)
    assert running.report is not None
    assert running.report.result is not TriggerResult.NOOP
    assert not table.truth.violations


def test_a_node_whose_name_only_looks_like_a_sessions_is_none() -> None:
    table = a_table()
    client = table.zookeeper.client()
    store = SessionStore(client, CLUSTER, table.spec.name_with_type)  # type: ignore[arg-type]
    nodes, sessions = store.session_nodes(), store.sessions()
    for name in ("cp²", "cp٣", f"cp{'9' * 5000}", "cp", "cp-1"):
        client.create(f"{store.path}/{name}", b"{}")
    assert store.session_nodes() == nodes
    assert store.sessions() == sessions


def test_poison_snapshots_of_history_and_poison_receipts_stop_no_run() -> None:
    table = a_table()
    staging = Staging(table.staging)
    for seq in (1, 2, 99):
        for body in (b"null", b"[" * 9000, b'{"files": {}}'):
            staging.store.put_if_absent(f"snapshots/{seq}-{sha256_hex(body)}.json", body)
    table.source.write("B", b"B")
    running = table.start(run)
    assert running.report is not None
    assert running.report.result is not TriggerResult.NOOP
    assert not table.truth.violations
    client = table.zookeeper.client()
    store = SessionStore(client, CLUSTER, table.spec.name_with_type)  # type: ignore[arg-type]
    ref = store.pointer().current_snapshot
    assert ref is not None
    assert len([*snapshots_of(staging, StoredSnapshot(ref, staging.snapshot(ref)))]) > 1
