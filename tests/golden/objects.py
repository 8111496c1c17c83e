"""Writes golden objects of the newest format with the code of this release: one of each kind.

It is run once, by the release that brings the format; the objects are what a release has to read for ever:

    PYTHONPATH=tests python tests/golden/objects.py tests/golden/format-<n>/objects
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from fakes.stores.memory import new_memory

from pinot_assets.core.stored_format import NEWEST, Stored, plain
from pinot_assets.core.untrusted import typed
from pinot_assets.ingest.contract.task_outputs import CutValues
from pinot_assets.scheduling.files_tick import FilesCursor
from pinot_assets.scheduling.stalled_session import StallCursor
from pinot_assets.segment.values.normalize import Cut
from pinot_assets.session.detect.listing import ListingCursor
from pinot_assets.session.stores.plan_parquet import plan_to_parquet
from pinot_assets.session.stores.staging import Staging, Switch
from pinot_assets.session.values.hold import HeldVersion, Hold
from pinot_assets.session.values.plan import Plan, Row, RowStatus
from pinot_assets.session.values.state import (
    AuditReceipt,
    Checked,
    Mode,
    ObjectRef,
    Outcome,
    Owner,
    Pointer,
    PushKind,
    Session,
    State,
    pointer_to_bytes,
    session_to_bytes,
)
from pinot_assets.snapshot.batch_receipt import BatchReceipt, StoredRows
from pinot_assets.snapshot.manifest import Snapshot, SnapshotRef, header_to_bytes
from pinot_assets.snapshot.packs import (
    Member,
    MemberList,
    PublishedPack,
    members_to_parquet,
    packs_to_parquet,
)
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
from pinot_assets.snapshot.recipes import StoredRecipe
from pinot_assets.source.file_table import COLUMNS
from pinot_assets.source.listing import ListingPart, part_to_arrow

T = TypeVar("T", bound=Stored)

A, B = "a" * 64, "b" * 64
NAME = "model__cp7-0a1b2c_2_3_0"
OWNER = Owner("run-7", "worker-1", 4711, 1_700_000_000_123)
PLAN = ObjectRef(f"sessions/cp7-0a1b2c/plan-2-{A}.parquet", A)
OUTPUT = Output(NAME, 3_735_928_559, 12, f"s3://b/{NAME}.tar.gz", 345, B, f"s3://b/{NAME}.m", -5, 9, 678)
BARE = Output("model__cp7-0a1b2c_2_4_0", 1, 2, "s3://b/x.tar.gz", 3, B, "s3://b/x.m")
EMPTY = Fingerprint(0, 2)
READ = Fingerprint(99, 1_700_000_000_000_001, "etag", "v1")


def newest(value: T) -> T:
    """The value, to be written in the newest format."""
    return replace(value, format=NEWEST)


def objects() -> dict[str, bytes]:
    """One of each kind, with all that it can say; and the barest where that differs."""
    audit = AuditReceipt(
        2,
        B,
        False,
        1_700_000_001_000,
        "rows: 11, not 12",
        True,
        True,
        (Checked("rows", False, 12, 11.5),),
        "p",
    )
    session = Session(
        id="cp7-0a1b2c",
        seq=7,
        mode=Mode.SYNC,
        config_fingerprint="fp",
        created_ms=1_700_000_000_000,
        plan=PLAN,
        state=State.SWITCH,
        retry_count=1,
        attempt=2,
        attempt_started_ms=1_700_000_000_500,
        failures=ObjectRef("sessions/cp7-0a1b2c/failures-2.json", B),
        switch=2,
        switch_object=ObjectRef("sessions/cp7-0a1b2c/switch-2.json", B),
        switch_attempt=2,
        switch_ms=1_700_000_000_600,
        lineage_entry_id="entry",
        end_issued="entry",
        revert_issued="former",
        audit=audit,
        stalls=1,
        target=SnapshotRef("snapshots/5.json", A),
        last_error="why: é\n2nd line",
        counts={"files": 3, "done": 2, "failed": 1},
        push=PushKind.ATOMIC,
        trouble_since_ms=1_700_000_000_400,
    )
    pointer = Pointer(
        "cp7", 12, OWNER, 8, ("cp6", "cp7"), SnapshotRef("snapshots/6.json", A), "t", ObjectRef("h", B)
    )
    rows = (
        Row("s3://in/a", 0, READ, RowStatus.DONE, "sessions/cp7-0a1b2c/files/x.json"),
        Row("s3://in/b", 1, Fingerprint(1, 2), RowStatus.BUILD),
        Row("s3://in/c", 2, Fingerprint(3, 4, "e"), RowStatus.GONE),
    )
    plan = Plan("cp7-0a1b2c", 2, Mode.SYNC, rows, ("s3://in/gone",), {"s3://in/t": READ}, "digest")
    facts = (SegmentFacts(12, (ColumnFacts("v", "STRING", "a", None),)),)
    receipt = Receipt(
        "s3://in/a",
        3,
        2,
        READ,
        A,
        12,
        1,
        (OUTPUT,),
        1.25,
        "w/1",
        ("tok",),
        "s3://b/bad",
        ("m",),
        14,
        1,
        facts,
    )
    files = (
        PublishedFile("s3://in/a", READ, A, 12, 1, "cp7-0a1b2c", (OUTPUT, BARE), READ.token, 1.25),
        PublishedFile("s3://in/b", EMPTY, "", 0, 0, "cp6-0a1b2d", (), EMPTY.token),
    )
    snapshot = Snapshot(
        7, "model_OFFLINE", "cp7-0a1b2c", "SYNC", "entry", SnapshotRef("snapshots/6.json", A), "digest", "fp",
        1_700_000_002_000, files, typed(plain(audit), dict), "pinot-1-2",
    )  # fmt: skip
    members = MemberList(
        (
            Member("s3://in/b", READ, A, 5, 1, "cp7-0a1b2c", B, 0),
            Member("s3://in/d", EMPTY, B, 2, 0, "x", B, 5),
        ),
        "0123456789ab",
    )
    pack = PublishedPack("cp7-0a1b2c", 4, A, 1, 7, (OUTPUT, BARE), 2.5, 3)
    with_packs = replace(
        snapshot, files=(files[0], replace(files[1], rows=7, packs=(pack.name,))), packs=(pack,)
    )
    day, next_day = RowsChunk("DAY 2026-11-03", B, 0, 90, 7), RowsChunk("DAY 2026-11-04", B, 90, 80, 8)
    of_cells = Receipt(
        "s3://in/b", 1, 2, READ, A, 7, 1, (), 0.5, "h/1",
        pieces=(FilePiece(day, 0, 5), FilePiece(next_day, 3, 2)), segment_bytes=99, format=NEWEST,
    )  # fmt: skip
    before = replace(of_cells, ordinal=0, uri="s3://in/a", rows=3, pieces=(FilePiece(next_day, 0, 3),))
    in_cell = (
        Member("s3://in/a", READ, A, 3, 1, "cp7-0a1b2c", B, 0, 90, 80, 8),
        Member("s3://in/b", READ, A, 2, 1, "cp7-0a1b2c", B, 3, 90, 80, 8),
    )
    cell_packs = tuple(
        PublishedPack("cp7-0a1b2c", n, A, 1, 7, (OUTPUT,), 2.5, 3, chunk.cell)
        for n, chunk in enumerate((day, next_day), start=4)
    )
    both = tuple(pack.name for pack in cell_packs)
    plan_of_packs = replace(
        plan,
        rows=(replace(rows[0], is_small=True),),
        packs=(Row(f"packs/{A}.parquet", 4, Fingerprint(345, 0), RowStatus.BUILD),),
    )
    recipe = StoredRecipe(
        3,
        {"schema.columns.v": "STRING DIMENSION", "transforms.v": "upper(v)"},
        {"indexes.v": ["inverted"]},
        "w/1",
        "0.11.0",
        {"schemaName": "model"},
        {"tableName": "model_OFFLINE"},
    )
    with_recipes = replace(
        snapshot,
        files=tuple(replace(file, revision=3 * number) for number, file in enumerate(files)),
        recipes=(recipe,),
    )
    staging = Staging(new_memory())
    failure = Failure("s3://in/b", 1, 2, "UNREADABLE", "line 3: é")
    switch = Switch(2, ("old",), (OUTPUT, BARE), "carried")
    hold = Hold({"s3://in/a": READ.token}, ("s3://in/c",))
    held = hold.with_versions({"s3://in/a": (HeldVersion(READ.token, 99, A),)})
    staged = {
        "failures.json": staging.put_failures("cp7-0a1b2c", 2, [failure], NEWEST),
        "switch.json": staging.put_switch("cp7-0a1b2c", newest(switch)),
        "hold.json": staging.put_hold("cp7-0a1b2c", newest(hold)),
        "hold-with-versions.json": staging.put_hold("cp7-0a1b2c", newest(held)),
    }
    mark = ListingCursor("0123456789ab", "in/m", 5, f"listings/part-{'c' * 32}.arrow", 77)
    cursor = FilesCursor("d1", "snapshots/6.json", 100, 2, "d2", 90, "q", 80, "s", 70, "told", mark)
    part = ListingPart(
        pa.Table.from_pylist([], schema=COLUMNS), 1, 2, frozenset({"d"}), frozenset({"e"}), "in/m"
    )
    beside = {"before": {"key": "listings/before.arrow", "crc32": 5}, "hints": ["h"]}
    new = Session("cp1-00000a", 1, Mode.APPEND, "fp", 5, PLAN)
    done = Session("cp1-00000a", 1, Mode.SWAP, "fp", 5, PLAN, State.DONE, Outcome.PUBLISHED, done_ms=9)
    empty = Receipt("s3://in/b", 1, 0, EMPTY, "", 0, 0, (), 0.0, "")
    small = Receipt(
        "s3://in/b", 1, 2, READ, A, 7, 1, (), 0.5, "h/1", rows_object=B, segment_bytes=99, format=NEWEST
    )
    nothing = replace(newest(empty), ordinal=3, attempt=2, first=7)
    cut = CutValues({"v": Cut(1, 2), "w": Cut(0, 3)})
    return {
        "pointer.json": pointer_to_bytes(newest(pointer)),
        "pointer-fresh.json": pointer_to_bytes(newest(Pointer())),
        "session.json": session_to_bytes(newest(session)),
        "session-new.json": session_to_bytes(newest(new)),
        "session-done.json": session_to_bytes(newest(done)),
        "lease.json": json.dumps(plain(OWNER)).encode(),
        "plan.parquet": plan_to_parquet(newest(plan)),
        "plan-with-recipe.parquet": plan_to_parquet(newest(replace(plan, recipe=recipe))),
        "receipt.json": newest(receipt).to_bytes(),
        "receipt-empty.json": newest(empty).to_bytes(),
        "manifest.parquet": files_to_parquet(files, NEWEST),
        "manifest-with-revisions.parquet": files_to_parquet(with_recipes.files, NEWEST),
        "header-with-recipes.json": header_to_bytes(
            newest(with_recipes), SnapshotRef("snapshots/7.parquet", B)
        ),
        "header.json": header_to_bytes(newest(snapshot), SnapshotRef("snapshots/7.parquet", B)),
        "files-cursor.json": newest(cursor).text.encode(),
        "session-cursor.json": newest(StallCursor(12, 100, "cp7-0a1b2c SWITCH 2", 90, 3)).text.encode(),
        "part.arrow": part_to_arrow(part, beside),
        "cut.json": newest(cut).to_bytes(),
        "batch.json": BatchReceipt(B, 345, "t", (small, nothing), format=NEWEST).to_bytes(),
        "members.parquet": members_to_parquet(newest(members)),
        "packs.parquet": packs_to_parquet(with_packs.packs),
        "plan-with-packs.parquet": plan_to_parquet(newest(plan_of_packs)),
        "manifest-with-packs.parquet": files_to_parquet(with_packs.files, NEWEST),
        "header-with-packs.json": header_to_bytes(
            newest(with_packs),
            SnapshotRef("snapshots/7.parquet", B),
            SnapshotRef("snapshots/7-packs.parquet", A),
        ),
        "receipt-of-cells.json": of_cells.to_bytes(),
        "batch-of-cells.json": BatchReceipt(
            "", 0, "", (before, of_cells), (StoredRows(B, 170, "t"),), format=NEWEST
        ).to_bytes(),
        "members-of-cell.parquet": members_to_parquet(newest(MemberList(in_cell, "0123", next_day.cell))),
        "packs-of-cells.parquet": packs_to_parquet(cell_packs),
        "manifest-of-cells.parquet": files_to_parquet((files[0], replace(files[1], packs=both)), NEWEST),
        **{name: staging.store.read(ref.key) for name, ref in staged.items()},
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    for name, data in objects().items():
        (folder / name).write_bytes(data)
