"""The instruments of the crash matrix: a write that they took for a read would be forgotten."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest
from crash import names
from crash.gate import Fate, Gate, Point, fates_of, point_from
from crash.points import Course, Verdict
from crash.reads import Reads
from crash.scenarios import Round
from crash.watch import Phase, Rows
from crash.zookeeper_proxy import name_of
from kazoo.protocol.serialization import (
    CheckVersion,
    Close,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Ping,
    SetData,
    Transaction,
)
from kazoo.security import OPEN_ACL_UNSAFE

from pinot_assets.ingest.contract.task_outputs import file_id

TOP = "/pinot/PROPERTYSTORE/MINION_TASK_METADATA/t_OFFLINE/FileIngestionTask/consistentPush"


class Request(Protocol):
    """One of kazoo's."""

    def serialize(self) -> bytes: ...


def frame(request: Request, code: int) -> bytes:
    return struct.pack(">ii", 7, code) + request.serialize()


@pytest.mark.parametrize(
    ("request_", "code", "name"),
    [
        (Create(TOP, b"", OPEN_ACL_UNSAFE, 0), 1, "zk create pointer"),
        (SetData(f"{TOP}/cp3", b"{}", -1), 5, "zk set session"),
        (Delete(f"{TOP}/cp1", -1), 2, "zk delete session"),
        (GetData(TOP, None), 4, None),
        (Exists(TOP, None), 3, None),
        (GetChildren(TOP, None), 8, None),
    ],
)
def test_requests_to_zookeeper(request_: Request, code: int, name: str | None) -> None:
    assert name_of(frame(request_, code)) == name


def test_a_transaction_is_named_by_what_it_writes() -> None:
    transaction = Transaction(
        [
            CheckVersion(f"{TOP}/lease", 0),
            SetData(TOP, b"{}", 3),
            Create(f"{TOP}/cp4", b"{}", OPEN_ACL_UNSAFE, 0),
        ]
    )
    assert name_of(frame(transaction, 14)) == "zk set pointer, create session"
    assert name_of(struct.pack(">ii", 0, Close.type)) == "zk close"
    assert name_of(struct.pack(">ii", -2, Ping.type)) is None


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/b/in/F.csv", None),
        ("HEAD", "/b/in/F.csv", None),
        ("PUT", f"/b/pinot/t_OFFLINE/sessions/cp1-ab12cd/plan-0-{'0' * 64}.parquet", "store PUT plan"),
        ("PUT", "/b/pinot/t_OFFLINE/segments/t__cp1-ab_0_0_0.tar.gz", "store PUT tar"),
        ("PUT", "/b/pinot/t_OFFLINE/segments/t__cp1-ab_0_0_0.metadata.tar.gz", "store PUT metadata tar"),
        ("PUT", "/b/elsewhere", "store PUT another object"),
        ("POST", "/b?delete", "store delete"),
        ("DELETE", "/b/x", "store delete"),
    ],
)
def test_requests_to_the_store(method: str, path: str, name: str | None) -> None:
    assert names.of_store(method, path) == name


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", "/segments/t/lineage?type=OFFLINE", None),
        ("POST", "/v2/segments?tableName=t", "pinot upload"),
        ("POST", "/segments/batchUpload?tableName=t", "pinot upload"),
        ("POST", "/segments/t/startReplaceSegments?type=OFFLINE", "pinot startReplaceSegments"),
        (
            "POST",
            "/segments/t/startReplaceSegments?type=OFFLINE&forceCleanup=true",
            "pinot forced startReplaceSegments",
        ),
        ("POST", "/segments/t_OFFLINE/delete", "pinot delete"),
        ("DELETE", "/segments/t_OFFLINE/s", "pinot s"),
    ],
)
def test_requests_to_the_controller(method: str, path: str, name: str | None) -> None:
    assert names.of_controller(method, path) == name


def test_requests_to_a_broker() -> None:
    assert names.of_broker("POST", "/query/sql") is None
    assert names.of_broker("PUT", "/routing/t_OFFLINE") == "pinot rebuild routing"


@pytest.mark.parametrize(
    ("fate", "expected"),
    [
        (Fate.BEFORE, ["strike"]),
        (Fate.AFTER, ["carry out", "strike"]),
        (Fate.LOST, ["carry out"]),
    ],
)
def test_the_gate_strikes_once_at_its_point(fate: Fate, expected: list[str]) -> None:
    said: list[str] = []
    gate = Gate(land_s=0)
    gate.begin(Point("b", 2, fate), lambda: said.append("strike"))
    assert [gate.pass_by(effect, lambda: "reply") for effect in "aba"] == ["reply"] * 3
    assert not gate.struck_after
    assert gate.pass_by("b", lambda: said.append("carry out")) is None
    assert (said, gate.struck_after) == (expected, ("a", "b", "a", "b"))
    assert gate.pass_by("b", lambda: "reply") == "reply"


def test_a_point_reads_as_it_is_written() -> None:
    for fate in fates_of("pinot upload"):
        point = Point("zk set pointer, set session", 2, fate)
        assert point_from(str(point)) == point


def test_the_watch_sees_a_half_and_a_step_back() -> None:
    before, after = ("a",), ("b", "c")
    courses: list[tuple[list[Rows], int]] = [
        ([before, after], 0),
        ([after], 0),
        ([before, ("a", "b"), after], 1),
        ([after, before], 1),
        ([before, (), after], 1),
    ]
    for went, mixed in courses:
        phase = Phase(ways=((before, after),))
        for rows in went:
            phase.see("broker", rows)
        assert bool(phase.mixed) == bool(mixed), went


def test_a_revert_has_one_gap_a_broker_and_no_other_step_has_one() -> None:
    taken_back, round_ = ("a", "stays"), Round(("a", "stays"), ("b", "stays"), "rollback")
    assert (round_.gap, replace(round_, step="run").gap) == (("stays",), None)
    for went, mixed in [
        ([taken_back, ("stays",), round_.after], 0),
        ([taken_back, ("stays",), ("stays",), round_.after], 1),
        ([taken_back, ("b",), round_.after], 1),
        ([taken_back, (), round_.after], 1),
    ]:
        phase = Phase(ways=((round_.before, round_.after),), gap=round_.gap)
        for rows in went:
            phase.see("broker", rows)
        assert bool(phase.mixed) == bool(mixed), went


LOOK = ("GET", "/lake?list-type=2&prefix=staging%2Fsessions%2Fcp3-aa%2Ffiles%2F")
READ = ("GET", "/lake/in/F1.csv")
RECEIPT = ("PUT", f"/lake/staging/sessions/cp3-aa/files/{file_id('s3://lake/in/F1.csv')}-v1-1.json")


@pytest.mark.parametrize(
    ("requests", "again"),
    [
        ([READ, RECEIPT], 0),
        ([READ, RECEIPT, READ], 1),
        ([READ, RECEIPT, LOOK, READ], 1),
        ([READ, LOOK, READ, RECEIPT], 0),  # its first run died
        ([READ, LOOK, RECEIPT, READ, RECEIPT], 0),  # the receipt of that run arrived after the look
        ([READ, LOOK, RECEIPT, READ, LOOK, READ], 1),
    ],
)
def test_a_file_that_is_read_again_although_a_driver_knew_it_done(
    requests: list[tuple[str, str]], again: int
) -> None:
    reads = Reads("lake")
    for method, path in [("PUT", "/lake/staging/sessions/cp3-aa/plan-1-abc.parquet"), *requests]:
        reads.see(method, path, 200)
    assert len(reads.again) == again
    assert reads.count == requests.count(READ)


@pytest.mark.parametrize(
    ("problems_by_try", "tries"),
    [
        ([()], 1),
        ([("other effects than recorded: …",), ()], 2),
        ([("other effects than recorded: …",)] * 3, 3),
        ([("other effects than recorded: …", "orphan segments ['s']")], 1),
    ],
)
def test_only_a_point_that_lay_elsewhere_is_tried_again(
    problems_by_try: list[tuple[str, ...]], tries: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    verdicts = [Verdict("sync/change/a #1 before", problems, 1, 0, 1, 0.0) for problems in problems_by_try]
    left = iter(verdicts)
    monkeypatch.setattr(Course, "_try", lambda course, point: next(left))
    course = Course(None, "sync", "change", tmp_path)  # type: ignore[arg-type]
    assert course.try_point(Point("a", 1, Fate.BEFORE)) is verdicts[tries - 1]
    assert len(list(left)) == len(problems_by_try) - tries
