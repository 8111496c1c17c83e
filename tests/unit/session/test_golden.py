"""Objects of each format (tests/golden): each is read by its reader and written back unchanged.

Of format 2, what is written says so, a field of a later release survives, and a newer format is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fakes.stores.memory import new_memory

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.stored_format import (
    NEWEST,
    RELEASES,
    parquet_metadata,
    parquet_table,
    plain,
    structured,
)
from pinot_assets.errors import NeedsNewerRelease, SnapshotCorrupt
from pinot_assets.ingest.contract.task_outputs import CutValues
from pinot_assets.scheduling.files_tick import FilesCursor
from pinot_assets.scheduling.stalled_session import StallCursor
from pinot_assets.session.stores.plan_parquet import plan_from_parquet, plan_to_parquet
from pinot_assets.session.stores.staging import Staging
from pinot_assets.session.values.state import (
    ObjectRef,
    Owner,
    pointer_from_bytes,
    pointer_to_bytes,
    session_from_bytes,
    session_to_bytes,
)
from pinot_assets.snapshot.batch_receipt import BatchReceipt
from pinot_assets.snapshot.manifest import (
    Snapshot,
    SnapshotRef,
    header_from_bytes,
    header_to_bytes,
    sha256_hex,
    snapshot_from,
)
from pinot_assets.snapshot.packs import (
    PublishedPack,
    members_from_parquet,
    members_to_parquet,
    packs_from_parquet,
    packs_to_parquet,
)
from pinot_assets.snapshot.published_files import PublishedFiles, files_to_parquet
from pinot_assets.snapshot.receipt import Receipt
from pinot_assets.source.listing import part_from_arrow, part_to_arrow

GOLDEN = Path(__file__).parents[2] / "golden"
FORMATS = [*RELEASES]
CUT = "cut.json"
IN_FORMAT_1 = "cut-in-format-1.json"
"""What 0.2.0 writes beside a receipt of format 1; 0.1.0 knows no such object."""


def objects_of(number: int) -> Path:
    return GOLDEN / f"format-{number}" / "objects"


def golden(name: str, number: int = 1) -> bytes:
    if (name, number) == (CUT, 1):
        return (objects_of(2) / IN_FORMAT_1).read_bytes()
    return (objects_of(number) / name).read_bytes()


class Disk:
    """A staging area with one object in it."""

    def __init__(self, data: bytes) -> None:
        self.staging = Staging(new_memory())
        self.ref = ObjectRef("read.json", sha256_hex(data))
        self.staging.store.put_if_absent(self.ref.key, data)

    def read(self, ref: ObjectRef) -> bytes:
        return self.staging.store.read(ref.key)


@dataclass(frozen=True)
class Kind:
    """A kind of object: from bytes to a value, and from that, in some format, to bytes."""

    read: Callable[[bytes], Any]
    write: Callable[[Any, int], bytes]


def _failures(data: bytes) -> Any:
    disk = Disk(data)
    return disk.staging.failures(disk.ref)


def _write_failures(value: Any, number: int) -> bytes:
    disk = Disk(b"")
    return disk.read(disk.staging.put_failures("cp7-0a1b2c", 2, value, number))


def _switch(data: bytes) -> Any:
    disk = Disk(data)
    return disk.staging.switch(disk.ref)


def _write_switch(value: Any, number: int) -> bytes:
    disk = Disk(b"")
    return disk.read(disk.staging.put_switch("cp7-0a1b2c", replace(value, format=number)))


def _hold(data: bytes) -> Any:
    disk = Disk(data)
    return disk.staging.hold(disk.ref)


def _write_hold(value: Any, number: int) -> bytes:
    disk = Disk(b"")
    return disk.read(disk.staging.put_hold("cp7-0a1b2c", replace(value, format=number)))


def _header(data: bytes) -> Any:
    return snapshot_from(header_from_bytes(data), PublishedFiles(golden("manifest.parquet")))


def _write_header(value: Any, number: int) -> bytes:
    return header_to_bytes(replace(value, format=number), SnapshotRef("snapshots/7.parquet", "b" * 64))


def _header_with_packs(data: bytes) -> Snapshot:
    return snapshot_from(
        header_from_bytes(data), PublishedFiles(golden("manifest-with-packs.parquet", 3)), PACKS
    )


def _write_header_with_packs(value: Snapshot, number: int) -> bytes:
    refs = SnapshotRef("snapshots/7.parquet", "b" * 64), SnapshotRef("snapshots/7-packs.parquet", "a" * 64)
    return header_to_bytes(replace(value, format=number), *refs)


def _owner(data: bytes) -> Owner:
    return structured(Owner, json.loads(data), "an owner")


def _part(data: bytes) -> Any:
    return part_from_arrow(data)


POINTER = Kind(pointer_from_bytes, lambda v, n: pointer_to_bytes(replace(v, format=n)))
SESSION = Kind(session_from_bytes, lambda v, n: session_to_bytes(replace(v, format=n)))
RECEIPT = Kind(Receipt.from_bytes, lambda v, n: replace(v, format=n).to_bytes())
SWITCH, HOLD, HEADER = (
    Kind(_switch, _write_switch),
    Kind(_hold, _write_hold),
    Kind(_header, _write_header),
)
FILES_CURSOR = Kind(
    lambda data: FilesCursor.read(data.decode()), lambda v, n: replace(v, format=n).text.encode()
)
SESSION_CURSOR = Kind(
    lambda data: StallCursor.read(data.decode()), lambda v, n: replace(v, format=n).text.encode()
)
JSON_KINDS = {
    "receipt.json": RECEIPT,
    "receipt-empty.json": RECEIPT,
    "switch.json": SWITCH,
    "hold.json": HOLD,
    "header.json": HEADER,
    "files-cursor.json": FILES_CURSOR,
    "session-cursor.json": SESSION_CURSOR,
}
ZNODES = {
    "pointer.json": POINTER,
    "pointer-fresh.json": POINTER,
    "session.json": SESSION,
    "session-new.json": SESSION,
    "session-done.json": SESSION,
}
FAILURES = {"failures.json": Kind(_failures, _write_failures)}
LEASES = {"lease.json": Kind(_owner, lambda v, _: json.dumps(plain(v)).encode())}
CUTS = {CUT: Kind(CutValues.from_bytes, lambda v, n: replace(v, format=n).to_bytes())}
ROWS = {
    "plan.parquet": Kind(plan_from_parquet, lambda v, n: plan_to_parquet(replace(v, format=n))),
    "manifest.parquet": Kind(PublishedFiles, files_to_parquet),
}
SINCE_2 = {
    "header-with-recipes.json": HEADER,
    "plan-with-recipe.parquet": ROWS["plan.parquet"],
    "manifest-with-revisions.parquet": ROWS["manifest.parquet"],
}
"""What 0.1.0 never wrote."""
PACKS = (PublishedPack("cp7-0a1b2c", 4, "a" * 64, 1, 7, (), 2.5, 3),)
SINCE_3 = {
    "hold-with-versions.json": HOLD,
    "receipt-of-cells.json": Kind(Receipt.from_bytes, lambda v, _: v.to_bytes()),
    "batch-of-cells.json": Kind(BatchReceipt.from_bytes, lambda v, _: v.to_bytes()),
    "members-of-cell.parquet": Kind(
        members_from_parquet, lambda v, n: members_to_parquet(replace(v, format=n))
    ),
    "packs-of-cells.parquet": Kind(packs_from_parquet, lambda v, _: packs_to_parquet(v)),
    "batch.json": Kind(BatchReceipt.from_bytes, lambda v, _: v.to_bytes()),
    "header-with-packs.json": Kind(_header_with_packs, _write_header_with_packs),
    "members.parquet": Kind(members_from_parquet, lambda v, n: members_to_parquet(replace(v, format=n))),
    "packs.parquet": Kind(packs_from_parquet, lambda v, _: packs_to_parquet(v)),
    "plan-with-packs.parquet": ROWS["plan.parquet"],
    "manifest-with-packs.parquet": ROWS["manifest.parquet"],
    "manifest-of-cells.parquet": ROWS["manifest.parquet"],
}
"""What needs packs."""
LATER = {2: SINCE_2, 3: SINCE_2 | SINCE_3}
TEXTS = {**JSON_KINDS, **ZNODES, **FAILURES, **LEASES, **CUTS}


def test_each_format_has_golden_files_and_each_is_looked_at() -> None:
    looked_at = {*TEXTS, *ROWS, "part.arrow"}
    assert {path.name for path in objects_of(1).iterdir()} == looked_at - {CUT}
    for number in FORMATS[1:]:
        assert {path.name for path in objects_of(number).iterdir()} - {IN_FORMAT_1} == looked_at | LATER[
            number
        ].keys()


@pytest.mark.parametrize("number", FORMATS)
@pytest.mark.parametrize("name", TEXTS)
def test_what_a_release_wrote_is_written_back_unchanged(name: str, number: int) -> None:
    kind = TEXTS[name]
    data = golden(name, number)
    assert kind.write(kind.read(data), number) == data


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for number, kinds in LATER.items() for name in kinds if name.endswith(".json")],
)
def test_a_header_with_more_too(name: str, number: int) -> None:
    kind, data = LATER[number][name], golden(name, number)
    assert kind.write(kind.read(data), number) == data


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, number) for name in ROWS for number in FORMATS),
        *((name, number) for number, kinds in LATER.items() for name in kinds if name.endswith(".parquet")),
    ],
)
def test_its_rows_too(name: str, number: int) -> None:
    """By value, type and metadata: the same rows have other bytes with another release of Arrow."""
    kind = LATER[number][name] if number in LATER and name in LATER[number] else ROWS[name]
    data = golden(name, number)
    written = parquet_table(kind.write(kind.read(data), number))
    assert written.equals(parquet_table(data), check_metadata=True)


@pytest.mark.parametrize("number", FORMATS)
def test_its_part_of_a_listing_too(number: int) -> None:
    data = golden("part.arrow", number)
    part, beside = part_from_arrow(data)
    again = pa.ipc.open_stream(part_to_arrow(part, beside)).read_all()
    assert again.equals(pa.ipc.open_stream(data).read_all(), check_metadata=True)


# --- format 2 --------------------------------------------------------------------------------------


def _said(name: str, data: bytes) -> JsonObject:
    if name in ROWS:
        return parquet_metadata(data)
    value: JsonObject = json.loads(data)
    return value["simpleFields"] if name in ZNODES else value


WITH_FORMAT = {**JSON_KINDS, **ZNODES, **FAILURES, **ROWS, **CUTS}


@pytest.mark.parametrize("name", WITH_FORMAT)
def test_of_format_2_it_says_what_it_needs_and_holds_the_same(name: str) -> None:
    kind = WITH_FORMAT[name]
    value = kind.read(golden(name))
    written = kind.write(value, 2)
    said = _said(name, written)
    assert (int(said["format"]), said["needs"]) == (2, RELEASES[2])
    back = kind.read(written)
    assert back == (value if name in {*FAILURES, "manifest.parquet"} else replace(value, format=2))
    assert kind.write(back, 2) == written


def test_only_the_pointer_stops_a_release_that_knows_no_formats() -> None:
    """0.1.0 reads the epoch by `int`, and shows that error as the reason."""
    pointer = pointer_from_bytes(golden("pointer.json"))
    epoch = json.loads(pointer_to_bytes(replace(pointer, format=2)))["simpleFields"]["epoch"]
    with pytest.raises(ValueError, match=r"'12 \(needs pinot-assets 0\.2\.0 or newer\)'"):
        int(epoch)


@pytest.mark.parametrize("number", [1, 2])
def test_the_keys_of_starttree_stand_at_starttrees_path(number: int) -> None:
    """`state` and the read-only `retryCount` of the session's node (docs/design/session.md#f13)."""
    fields = json.loads(SESSION.write(session_from_bytes(golden("session.json")), number))["simpleFields"]
    assert (fields["state"], fields["retryCount"]) == ("SWITCH", "1")
    assert all(isinstance(text, str) for text in fields.values())


# --- what this release does not know ---------------------------------------------------------------


def _with(name: str, data: bytes, more: JsonObject) -> bytes:
    """The object with more among what it says of itself."""
    if name in ROWS:
        table = parquet_table(data)
        metadata = parquet_metadata(data) | {key: str(item) for key, item in more.items()}
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata(metadata), sink)
        return bytes(sink.getvalue())
    value = json.loads(data)
    if name in ZNODES:
        value["simpleFields"] |= {key: str(item) for key, item in more.items()}
    else:
        value |= more
    return json.dumps(value).encode()


@pytest.mark.parametrize("name", [*JSON_KINDS, *ZNODES, "plan.parquet"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_field_of_a_later_release_is_kept(name: str, number: int) -> None:
    kind = WITH_FORMAT[name]
    data = _with(name, kind.write(kind.read(golden(name)), number), {"colour": "blue"})
    assert _said(name, kind.write(kind.read(data), number))["colour"] == "blue"


def test_fields_within_fields_are_kept_too() -> None:
    receipt = json.loads(golden("receipt.json"))
    receipt["outputs"][0]["sorted"], receipt["read"]["crc"] = ["a"], 5
    back = json.loads(Receipt.from_bytes(json.dumps(receipt).encode()).to_bytes())
    assert back == receipt

    pointer = json.loads(golden("pointer.json"))
    for name in ("owner", "currentSnapshot", "hold"):
        inner = json.loads(pointer["simpleFields"][name]) | {"colour": {"hue": 7}}
        pointer["simpleFields"][name] = json.dumps(inner)
    pointer["listFields"]["others"], pointer["mapFields"]["some"] = ["x"], {"k": "v"}
    data = json.dumps(pointer, indent=2).encode()
    assert pointer_to_bytes(pointer_from_bytes(data)) == data


@pytest.mark.parametrize("number", [1, 2])
def test_columns_of_a_later_release_are_kept(number: int) -> None:
    files = parquet_table(golden("manifest.parquet"))
    outputs = files.column("outputs").to_pylist()
    outputs[0][0]["sorted"], outputs[0][1]["sorted"] = "yes", None
    files = files.append_column("cell", pa.array([7, None])).set_column(
        files.schema.get_field_index("outputs"), "outputs", pa.array(outputs)
    )
    sink = pa.BufferOutputStream()
    pq.write_table(files, sink)
    again = parquet_table(files_to_parquet(PublishedFiles(sink.getvalue()), number))
    assert again.column("cell").to_pylist() == [7, None]
    assert again.column("outputs").to_pylist() == outputs

    plan = parquet_table(golden("plan.parquet"))
    pack = [*range(plan.num_rows)]
    sink = pa.BufferOutputStream()
    pq.write_table(plan.append_column("pack", pa.array(pack)), sink)
    read = plan_from_parquet(bytes(sink.getvalue()))
    rows = parquet_table(plan_to_parquet(replace(read, format=number))).to_pylist()
    assert [row["pack"] for row in rows if row["status"] in ("DONE", "BUILD", "GONE")] == pack[:3]


@pytest.mark.parametrize("name", WITH_FORMAT)
@pytest.mark.parametrize("needs", ["3.1.0", ""])
def test_a_newer_format_is_refused_by_every_reader(name: str, needs: str) -> None:
    kind = WITH_FORMAT[name]
    data = _with(name, kind.write(kind.read(golden(name)), 2), {"format": NEWEST + 1, "needs": needs})
    with pytest.raises(NeedsNewerRelease, match=rf"is of format {NEWEST + 1}, which this release") as caught:
        kind.read(data)
    assert f"upgrade pinot-assets here to {needs or 'a newer release'}" in str(caught.value)


def test_a_part_of_a_listing_of_a_newer_format_is_refused() -> None:
    table = pa.ipc.open_stream(golden("part.arrow")).read_all()
    told = json.loads(table.schema.metadata[b"part"]) | {"format": 9}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.with_metadata({"part": json.dumps(told)})) as writer:
        writer.write_table(table.replace_schema_metadata({"part": json.dumps(told)}))
    with pytest.raises(NeedsNewerRelease, match="format 9"):
        _part(bytes(sink.getvalue()))


@pytest.mark.parametrize("name", [*JSON_KINDS, *ZNODES])
@pytest.mark.parametrize("number", ["x", 0, -1, 1.5, None, True, "", [3]])
def test_a_format_that_is_no_number_makes_it_no_object(name: str, number: Any) -> None:
    kind, data = WITH_FORMAT[name], _with(name, golden(name), {"format": number})
    if name.endswith("cursor.json"):
        assert kind.read(data) in (FilesCursor(), StallCursor())
    else:
        with pytest.raises((ValueError, SnapshotCorrupt)) as refusal:
            kind.read(data)
        assert "format" in getattr(refusal.value, "reason", str(refusal.value))


def test_a_header_of_an_unknown_mode_is_none() -> None:
    data = golden("header.json").replace(b'"SYNC"', b'"COMPACT"')
    with pytest.raises(ValueError, match="its mode is COMPACT, which this release of pinot-assets does not"):
        header_from_bytes(data)


@pytest.mark.parametrize("number", FORMATS)
def test_a_cursor_of_a_table_that_cannot_be_looked_at_has_no_other_fields(number: int) -> None:
    """0.1.0 takes a files sensor's cursor with another field, or a time that is no number, for none."""
    before = json.loads(golden("files-cursor.json", number))
    cursor = FilesCursor.read(json.dumps(before | {"quiet": "", "quiet_s": 0}))
    assert cursor.failing_s == FilesCursor.read(json.dumps(before)).failing_s == 0
    failing = cursor.fails(1_700_000_000).fails(1_700_000_030)
    assert json.loads(failing.text) == before | {"quiet": "", "quiet_s": 1_700_000_000}
    assert FilesCursor.read(failing.text).failing_s == 1_700_000_000
    assert json.loads(failing.works.text) == before | {"quiet": "", "quiet_s": 0}
    later = FilesCursor.read(json.dumps(before | {"colour": "blue"}))
    for changed in (later.fails(7), later.fails(7).works, later.fails(7).restless):
        assert json.loads(changed.text)["colour"] == "blue"
