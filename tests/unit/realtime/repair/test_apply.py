"""A repair does what is planned, and believes only what it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fakes.realtime.hurt_pinot import Clock, HurtPinot
from fakes.realtime.hurt_tables import BYPASS, NOW, OLD, consuming, replicas, segment, table
from fakes.zookeeper.memory import FakeZooKeeper

from pinot_assets.errors import LeaseLost, PinotError, SessionError, SwitchStateUnknown
from pinot_assets.realtime.lease import OperationsStore
from pinot_assets.realtime.model.settings import ClusterSettings
from pinot_assets.realtime.model.state import RealtimeState, SegmentStatus, TmpUpload
from pinot_assets.realtime.repair.apply import Repair, StepResult, preview_repair
from pinot_assets.realtime.repair.model import (
    SUBJECT,
    USUAL_LIMITS,
    Means,
    Memory,
    RepairLimits,
    Step,
    StepKind,
)
from pinot_assets.session.values.state import Owner

PEERS_ONLY = segment(SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE"), "")
COMMITTING = segment(SegmentStatus.COMMITTING, replicas(a="ONLINE", b="ONLINE"))
OWNER = Owner("test", "host", 1, NOW)


class HurtTable:
    """A table, its Pinot and its ZooKeeper."""

    def __init__(self, state: RealtimeState) -> None:
        self.clock = Clock(NOW)
        self.pinot = HurtPinot(state, self.clock)
        self.zookeeper = FakeZooKeeper()
        self.zookeeper.client().ensure_path("/pinot/PROPERTYSTORE")
        self.client = self.zookeeper.client()
        self.store = OperationsStore(self.client, "pinot", state.table)  # type: ignore[arg-type]
        self.told: list[str] = []

    def repair(self, limits: RepairLimits = USUAL_LIMITS) -> Repair:
        return Repair(
            self.pinot,
            self.pinot.read,
            self.store.take(OWNER),
            self.pinot.delete_upload,
            limits,
            self.told.append,
            self.clock.now_ms,
            self.clock.sleep,
        )


def results(repair: Repair) -> list[tuple[StepKind, StepResult]]:
    return [(one.step.kind, one.result) for one in repair.round()[1]]


def test_everything_is_mended_in_rounds() -> None:
    broken = segment(
        SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE>ERROR"), "s3://d/t/9", partition=1, sequence=0
    )
    lost = segment(SegmentStatus.COMMITTING, replicas(a="ONLINE>ERROR", b="ONLINE>ERROR"), partition=2)
    stuck = segment(SegmentStatus.COMMITTING, replicas(a="ONLINE", b="ONLINE"), partition=3)
    stopped = segment(SegmentStatus.IN_PROGRESS, replicas(a="OFFLINE", b="OFFLINE"), partition=4)
    hurt = HurtTable(
        table(
            *(PEERS_ONLY, broken, lost, stuck, stopped),
            *(consuming(p) for p in range(4)),
            tmp_uploads=(TmpUpload(f"{broken.name}.tmp.1", 1, OLD - 1),),
            committing_listed=frozenset({broken.name}),
        )
    )
    all_rounds = list(hurt.repair().rounds(10))
    assert all(one.helped for _, outcomes in all_rounds for one in outcomes)
    assert all_rounds[-1][0].all_well
    done = [one.step.kind for _, outcomes in all_rounds for one in outcomes]
    assert set(done) == set(StepKind) - {StepKind.RESTART}
    assert hurt.store.recall(SUBJECT) == ""


@pytest.mark.parametrize(
    ("version", "call"),
    [
        ("1.5.1", ("upload_to_deep_store", PEERS_ONLY.name)),
        ("1.4.0", ("run_validation_with",)),
        ("1.2.0", ("server_uploads", "http://a:8097", PEERS_ONLY.name)),
    ],
)
def test_each_release_in_its_own_way(version: str, call: tuple[str, ...]) -> None:
    hurt = HurtTable(table(PEERS_ONLY, consuming(), cluster=ClusterSettings(version)))
    assert results(hurt.repair()) == [(StepKind.UPLOAD, StepResult.DONE)]
    assert hurt.pinot.calls[0] == call


def test_a_node_is_written_with_the_crc_of_what_was_uploaded() -> None:
    """A replica that built the segment by itself may have another one than the committer's, which it has."""
    hurt = HurtTable(table(replace(PEERS_ONLY, crc="77"), consuming(), cluster=ClusterSettings("1.2.0")))
    assert results(hurt.repair()) == [(StepKind.UPLOAD, StepResult.DONE)]
    assert hurt.pinot.segment(PEERS_ONLY.name).crc == hurt.pinot.crc == "88"


def test_before_1_3_a_lost_consuming_segment_is_recreated_by_resuming() -> None:
    stored = replace(PEERS_ONLY, url="s3://d/t/0")
    hurt = HurtTable(table(stored, settings=BYPASS, cluster=ClusterSettings("0.11.0")))
    assert results(hurt.repair()) == [(StepKind.VALIDATE, StepResult.DONE)]
    assert hurt.pinot.calls == [("resume",)]


def test_a_200_that_does_nothing_is_no_success_and_is_not_repeated_at_once() -> None:
    hurt = HurtTable(table(PEERS_ONLY, consuming()))
    hurt.pinot.deaf.add("upload_to_deep_store")
    repair = hurt.repair()
    _, outcomes = repair.round()
    assert [one.result for one in outcomes] == [StepResult.NO_EFFECT]
    assert hurt.clock.now_ms() >= NOW + 360_000
    assert "deep store" in outcomes[0].text
    assert repair.round()[1] == ()
    hurt.clock.sleep(600)
    hurt.pinot.deaf.clear()
    assert results(repair) == [(StepKind.UPLOAD, StepResult.DONE)]


def test_a_round_that_may_not_go_on_for_so_long_leaves_what_it_began_under_way() -> None:
    hurt = HurtTable(table(PEERS_ONLY, consuming()))
    hurt.pinot.deaf.add("upload_to_deep_store")
    repair = replace(hurt.repair(), longest_ms=20_000)
    assert repair.round()[1] == ()
    assert hurt.clock.now_ms() < NOW + 60_000
    found, _ = repair.round()
    assert "still be in progress" in found.waiting[0].why


def test_a_restarted_repair_knows_what_was_begun() -> None:
    hurt = HurtTable(table(PEERS_ONLY, consuming()))

    def dies(seconds: float) -> None:
        raise KeyboardInterrupt

    repair = replace(hurt.repair(), sleep=dies)
    with pytest.raises(KeyboardInterrupt):
        repair.round()
    repair.lease.release()
    found, outcomes = hurt.repair().round()
    assert outcomes == ()
    assert "still be in progress" in found.waiting[0].why
    assert len(hurt.pinot.calls) == 1


def test_a_run_that_dies_amid_a_call_has_it_remembered() -> None:
    hurt = HurtTable(table(PEERS_ONLY, consuming()))
    upload = hurt.pinot.upload_to_deep_store

    def dies(*args: object) -> None:
        raise KeyboardInterrupt

    hurt.pinot.upload_to_deep_store = dies  # type: ignore[method-assign, assignment]
    repair = hurt.repair()
    with pytest.raises(KeyboardInterrupt):
        repair.round()
    repair.lease.release()
    hurt.pinot.upload_to_deep_store = upload  # type: ignore[method-assign]
    found, outcomes = hurt.repair().round()
    assert (outcomes, hurt.pinot.calls) == ((), [])
    assert "still be in progress" in found.waiting[0].why


def test_a_lost_answer_is_looked_up() -> None:
    hurt = HurtTable(table(PEERS_ONLY, consuming()))
    hurt.pinot.failing["upload_to_deep_store"] = SwitchStateUnknown("no answer came")
    hurt.pinot._due.append((NOW + 5_000, lambda: hurt.pinot._store([PEERS_ONLY.name])))
    assert results(hurt.repair()) == [(StepKind.UPLOAD, StepResult.DONE)]


def test_a_refusal_is_told_and_does_not_hold_up_other_means() -> None:
    broken = replace(PEERS_ONLY, replicas=replicas(a="ONLINE", b="ONLINE>ERROR"))
    hurt = HurtTable(table(broken, consuming()))
    hurt.pinot.failing["upload_to_deep_store"] = PinotError("refused")
    repair = hurt.repair()
    assert results(repair) == [(StepKind.UPLOAD, StepResult.REFUSED)]
    hurt.clock.sleep(1)
    assert results(repair) == [(StepKind.RESET, StepResult.DONE)]


def test_a_controller_that_is_away_for_a_while_is_waited_for() -> None:
    hurt = HurtTable(table(PEERS_ONLY, consuming()))
    repair = hurt.repair()
    real = hurt.clock.sleep

    def sleep(seconds: float) -> None:
        real(seconds)
        hurt.pinot.unreadable = 1 if hurt.clock.now_ms() < NOW + 5_000 else 0

    assert results(replace(repair, sleep=sleep)) == [(StepKind.UPLOAD, StepResult.DONE)]
    assert any("could not be read" in line for line in hurt.told)


def test_nothing_is_begun_without_the_lease() -> None:
    hurt = HurtTable(table(PEERS_ONLY, consuming()))
    repair = hurt.repair()
    hurt.zookeeper.expire(hurt.client)
    with pytest.raises(LeaseLost):
        repair.round()
    assert hurt.pinot.calls == []


def test_after_a_long_upload_the_table_is_looked_at_again() -> None:
    many = [segment(SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE"), "", sequence=n) for n in range(3)]
    hurt = HurtTable(table(*many, consuming(sequence=3), cluster=ClusterSettings("1.2.0")))
    repair = hurt.repair()
    uploads = hurt.pinot.server_uploads

    def upload(*args: object) -> str:
        # Meanwhile Pinot itself has stored the next one.
        hurt.pinot.change(many[1].name, url="s3://d/t/1")
        return uploads(*args)  # type: ignore[arg-type]

    hurt.pinot.server_uploads = upload  # type: ignore[method-assign, assignment]
    assert results(repair) == [(StepKind.UPLOAD, StepResult.DONE)] * 2
    assert not [call for call in hurt.pinot.calls if call[-1] == many[1].name]


def test_after_a_long_upload_the_next_one_is_done_as_it_is_planned_then() -> None:
    many = [segment(SegmentStatus.DONE, replicas(a="ONLINE", b="ONLINE"), "", sequence=n) for n in range(2)]
    hurt = HurtTable(table(*many, consuming(sequence=2), cluster=ClusterSettings("1.2.0")))
    repair = hurt.repair()
    uploads = hurt.pinot.server_uploads

    def upload(*args: object) -> str:
        servers = hurt.pinot.state.servers
        gone = {**servers, "a": replace(servers["a"], alive=False)}
        hurt.pinot.state = replace(hurt.pinot.state, servers=gone)
        return uploads(*args)  # type: ignore[arg-type]

    hurt.pinot.server_uploads = upload  # type: ignore[method-assign, assignment]
    assert results(repair) == [(StepKind.UPLOAD, StepResult.DONE)] * 2, "the other server has it"


def test_an_upload_never_overwrites_what_pinot_wrote() -> None:
    hurt = HurtTable(table(PEERS_ONLY, consuming(), cluster=ClusterSettings("1.2.0")))
    repair = hurt.repair()
    uploads = hurt.pinot.server_uploads

    def upload(*args: object) -> str:
        hurt.pinot.change(PEERS_ONLY.name, url="s3://d/t/pinots-own")
        return uploads(*args)  # type: ignore[arg-type]

    hurt.pinot.server_uploads = upload  # type: ignore[method-assign, assignment]
    assert results(repair) == [(StepKind.UPLOAD, StepResult.DONE)]
    assert hurt.pinot.segment(PEERS_ONLY.name).url == "s3://d/t/pinots-own"


def test_a_commit_is_finished_by_a_server_only_with_the_same_rows() -> None:
    state = table(COMMITTING, consuming(), settings=BYPASS, cluster=ClusterSettings("1.4.0"))
    hurt = HurtTable(state)
    assert results(hurt.repair()) == [(StepKind.FINISH, StepResult.DONE)]
    assert hurt.pinot.segment(COMMITTING.name).status is SegmentStatus.DONE
    other = HurtTable(state)
    answer = {
        "segment.realtime.status": "DONE",
        "segment.realtime.endOffset": "7",
        "segment.download.url": "s3://x",
    }
    other.pinot.server_uploads_committed = lambda *_: answer  # type: ignore[method-assign, assignment, misc]
    outcome = other.repair().round()[1][0]
    assert outcome.result is StepResult.REFUSED
    assert "other rows" in outcome.text
    assert other.pinot.segment(COMMITTING.name).status is SegmentStatus.COMMITTING


def test_without_the_deep_store_at_hand_nothing_is_swept() -> None:
    stored = replace(PEERS_ONLY, url="s3://d/t/0")
    hurt = HurtTable(table(stored, consuming(), tmp_uploads=(TmpUpload(f"{stored.name}.tmp.1", 1, OLD - 1),)))
    outcome = replace(hurt.repair(), delete_upload=None).round()[1][0]
    assert (outcome.result, hurt.pinot.calls) == (StepResult.REFUSED, [])


def test_a_preview_knows_what_was_tried() -> None:
    state = table(PEERS_ONLY, consuming())
    step = preview_repair(state, "", USUAL_LIMITS).steps[0]
    remembered = Memory().begun(step, NOW).to_text()
    assert not preview_repair(state, remembered, USUAL_LIMITS).steps
    often = Memory().begun(step, NOW).begun(step, NOW).begun(step, NOW)
    later = replace(state, read_ms=NOW + 13 * 3_600_000)
    assert not preview_repair(later, often.to_text(), USUAL_LIMITS).refusals
    with pytest.raises(SessionError, match="cannot be read"):
        preview_repair(state, "[]", USUAL_LIMITS)


def steps() -> Iterator[Step]:
    yield Step(StepKind.RESET, Means.CONTROLLER_RESET, "", ("s",), "a")
    yield Step(StepKind.VALIDATE, Means.VALIDATION, "", partitions=(1, 2))
    yield Step(StepKind.UPLOAD, Means.SEGMENT_VALIDATION, "", ("s", "t"))


def test_memory_as_text() -> None:
    memory = Memory()
    for step in steps():
        memory = memory.begun(step, NOW)
    assert Memory.from_text(memory.to_text()) == memory
    assert Memory().to_text() == ""
    for spoilt in ("[1]", '{"a": {"b": 1}}', "x", '{"a": 1}'):
        with pytest.raises(ValueError, match="not what a repair"):
            Memory.from_text(spoilt)


def test_memory_keeps_what_a_later_release_added_and_its_form() -> None:
    memory = Memory()
    for step in steps():
        memory = memory.begun(step, NOW)
    whole = json.loads(memory.to_text())
    assert {frozenset(tried) for tried in whole.values()} == {
        frozenset(("kind", "means", "at_ms", "until_ms", "times", "segments"))
    }
    later = {key: {**tried, "new": [1]} for key, tried in whole.items()}
    assert json.loads(Memory.from_text(json.dumps(later)).to_text()) == later


def test_a_spoilt_memory_is_told() -> None:
    hurt = HurtTable(table(PEERS_ONLY, consuming()))
    repair = hurt.repair()
    repair.lease.remember(SUBJECT, "[]")
    with pytest.raises(SessionError, match="cannot be read"):
        repair.round()
