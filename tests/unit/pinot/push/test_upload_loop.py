from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from fakes.pinot.staged import Staged

from pinot_assets.errors import LeaseLost, PinotError, PinotUnreachable, PushRefused, SwitchStateUnknown
from pinot_assets.pinot import PushMode, PushReport, StagedObjects, wait_online
from pinot_assets.pinot.client.http import CutOff, UploadFailed
from pinot_assets.pinot.lineage import Replicas
from pinot_assets.pinot.push import upload_loop
from pinot_assets.pinot.push.upload import Uploads
from pinot_assets.pinot.push.upload_loop import UploadLoop
from pinot_assets.snapshot.receipt import Output


def output(name: str, crc: int = 7) -> Output:
    return Output(name, crc, 1, f"stage:{name}.tar.gz", 1, "", f"stage:{name}.metadata.tar.gz")


class Controller:
    """A controller that does what a test says; `script` may raise before or after the effect."""

    def __init__(self, *, batches: bool = False) -> None:
        self.segments: dict[str, int] = {}
        self.metadata_only: dict[str, int] = {}
        self.leftovers: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        self.script: Callable[[str, str], None] = lambda mode, name: None
        self.late: list[Callable[[], None]] = []
        self.batches = batches
        self.takes_over = True
        self._lock = threading.Lock()

    def all_segments(self, table: str) -> frozenset[str]:
        return frozenset(self.segments)

    def registered_segments(self, table: str) -> frozenset[str]:
        registered = frozenset(self.segments) | self.leftovers | self.metadata_only.keys()
        self.leftovers = set()
        return registered

    def segment_crcs(self, table: str) -> dict[str, int]:
        if self.late:
            self.late.pop()()
        return {**self.segments}

    def delete_segments(self, table: str, names: Collection[str]) -> None:
        raise AssertionError("nothing is to be deleted")

    def takes_over_half_uploads(self) -> bool:
        return self.takes_over

    def takes_batches(self) -> bool:
        return self.batches

    def give_up_batches(self) -> None:
        self.batches = False

    def uploader(self, table: str) -> Controller:
        return self

    def batch(self, name: str, tar: bytes) -> None:
        names = listed(tar)
        self.calls.append(("batch", " ".join(names)))
        self.script("batch", " ".join(names))
        self.segments |= dict.fromkeys(names, 7)

    def metadata(self, segment: str, metadata_tar: bytes, download_uri: str) -> None:
        assert metadata_tar == SMALL
        assert download_uri == f"stage:{segment}.tar.gz"
        self._upload("metadata", segment)

    def tar(self, segment: str, tar: Path) -> None:
        assert tar.read_bytes() == f"stage:{segment}.tar.gz".encode()
        self._upload("tar", segment)

    def _upload(self, mode: str, segment: str) -> None:
        with self._lock:
            assert segment not in self.leftovers
            self.calls.append((mode, segment))
            self.script(mode, segment)
            self.segments[segment] = 7


def small_tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name in ("creation.meta", "metadata.properties"):
            entry = tarfile.TarInfo(f"s/{name}")
            entry.size = 4
            tar.addfile(entry, io.BytesIO(b"meta"))
    return out.getvalue()


SMALL = small_tar()


def listed(batch: bytes) -> list[str]:
    """Names in a batch."""
    with tarfile.open(fileobj=io.BytesIO(batch)) as tar:
        file = tar.extractfile("all_segments_metadata")
        assert file is not None
        return file.read().decode().splitlines()[::2]


STAGED = Staged(lambda uri: SMALL if uri.endswith(".metadata.tar.gz") else uri.encode())


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload_loop, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(upload_loop, "SETTLE_SECONDS", 0.1)
    monkeypatch.setattr(upload_loop, "AWAY_SECONDS", 0.2)
    monkeypatch.setattr(upload_loop, "LEFTOVER_SECONDS", 0.1)
    monkeypatch.setattr(upload_loop, "PAUSE", 0.01)


def push_segments(
    pinot: object,
    table: str,
    outputs: Sequence[Output],
    *,
    staged: StagedObjects,
    mode: PushMode | None = None,
    before_upload: Callable[[], None] = lambda: None,
) -> PushReport:
    """What a client does with these."""
    return UploadLoop(cast(Uploads, pinot), table, staged, mode, before_upload).run(outputs)


def test_only_what_is_missing_is_pushed() -> None:
    pinot = Controller()
    pinot.segments = {"a": 7}
    report = push_segments(pinot, "t", [output("a"), output("b"), output("c")], staged=STAGED)
    assert (report.pushed, report.skipped) == (("b", "c"), ("a",))
    assert (report.mode, report.fallback) == (PushMode.METADATA, None)
    assert sorted(pinot.calls) == [("metadata", "b"), ("metadata", "c")]


def test_a_hundred_at_once() -> None:
    pinot = Controller()
    outputs = [output(f"s{n}") for n in range(100)]
    assert len(push_segments(pinot, "t", outputs, staged=STAGED).pushed) == 100
    assert len(pinot.calls) == 100


def test_nothing_to_push() -> None:
    assert push_segments(Controller(), "t", [], staged=STAGED).pushed == ()


@pytest.mark.parametrize("mode", [None, *PushMode])
def test_where_nothing_was_sent_no_mode_has_worked(mode: PushMode | None) -> None:
    pinot = Controller()
    pinot.segments = {"a": 7}
    assert push_segments(pinot, "t", [output("a")], staged=STAGED, mode=mode).mode is None


def test_another_content_under_a_name_is_refused_before_anything_is_sent() -> None:
    pinot = Controller()
    pinot.segments = {"b": 8}
    with pytest.raises(PushRefused, match="b has CRC 8 instead of 7"):
        push_segments(pinot, "t", [output("a"), output("b")], staged=STAGED)
    assert pinot.calls == []


def test_a_name_twice_in_one_push_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="twice"):
        push_segments(Controller(), "t", [output("a"), output("a")], staged=STAGED)


def test_tar_where_the_controller_cannot_reach_the_staging_area() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        if mode == "metadata":
            pinot.leftovers.add(name)
            raise UploadFailed("refused", why="no filesystem for s3")

    pinot.script = script
    report = push_segments(pinot, "t", [output("a"), output("b")], staged=STAGED)
    assert (report.mode, report.fallback) == (PushMode.TAR, "no filesystem for s3")
    assert pinot.calls == [("metadata", "a"), ("tar", "a"), ("tar", "b")]


def test_when_both_ways_fail_both_reasons_are_told() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        raise UploadFailed("refused", why=f"{mode} is bad")

    pinot.script = script
    with pytest.raises(PushRefused) as caught:
        push_segments(pinot, "t", [output("a"), output("b")], staged=STAGED)
    assert "tar is bad" in str(caught.value)
    assert "metadata is bad" in str(caught.value)
    assert pinot.calls == [("metadata", "a"), ("tar", "a")]


def test_a_real_refusal_is_no_reason_to_send_the_tar() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        raise PushRefused("refused", why="over quota")

    pinot.script = script
    with pytest.raises(PushRefused, match="over quota"):
        push_segments(pinot, "t", [output("a"), output("b")], staged=STAGED)
    assert pinot.calls == [("metadata", "a")]


@pytest.mark.parametrize("mode", PushMode)
def test_a_given_mode_is_kept(mode: PushMode) -> None:
    pinot = Controller()
    assert push_segments(pinot, "t", [output("a")], staged=STAGED, mode=mode).mode is mode
    assert pinot.calls == [(mode.value, "a")]


def test_a_lost_reply_is_settled_by_reading() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        pinot.segments[name] = 7
        raise SwitchStateUnknown("lost")

    pinot.script = script
    assert push_segments(pinot, "t", [output("a")], staged=STAGED).pushed == ("a",)
    assert pinot.calls == [("metadata", "a")]


def test_a_lost_call_that_lands_late_is_waited_for() -> None:
    pinot = Controller()

    def land() -> None:
        pinot.segments["a"] = 7

    def script(mode: str, name: str) -> None:
        pinot.late = [land, lambda: None, lambda: None]
        raise SwitchStateUnknown("lost")

    pinot.script = script
    assert push_segments(pinot, "t", [output("a")], staged=STAGED).pushed == ("a",)


def test_a_lost_call_that_does_not_show_up_stays_unknown() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        raise SwitchStateUnknown("lost")

    pinot.script = script
    with pytest.raises(SwitchStateUnknown):
        push_segments(pinot, "t", [output("a")], staged=STAGED)
    assert pinot.calls == [("metadata", "a")]


@pytest.mark.parametrize("batches", [True, False])
@pytest.mark.parametrize("lost", [SwitchStateUnknown("late"), CutOff("reset")])
@pytest.mark.parametrize("read", ["all_segments", "segment_crcs", "registered_segments"])
def test_a_lost_call_that_cannot_be_looked_for_is_never_sent_again(
    read: str, lost: PinotError, batches: bool
) -> None:
    """Pinot may be at work on it: a second upload of 1.5.1 removes what the first one wrote."""
    pinot = Controller(batches=batches)

    def script(mode: str, name: str) -> None:
        def unreachable(table: str) -> frozenset[str]:
            raise PinotUnreachable("no connection")

        setattr(pinot, read, unreachable)
        raise lost

    pinot.script = script
    with pytest.raises(SwitchStateUnknown):
        push_segments(pinot, "t", [output("a"), output("b")], staged=STAGED, mode=PushMode.METADATA)
    assert len(pinot.calls) <= (1 if batches else 2)


def test_a_lost_call_is_looked_for_until_pinot_can_be_read() -> None:
    pinot = Controller()
    reads = [PinotUnreachable("no connection")] * 3

    def away() -> None:
        if reads:
            raise reads.pop()

    def script(mode: str, name: str) -> None:
        pinot.segments[name] = 7
        pinot.late = [away] * 10
        raise CutOff("reset")

    pinot.script = script
    assert push_segments(pinot, "t", [output("a")], staged=STAGED).pushed == ("a",)
    assert pinot.calls == [("metadata", "a")]


def test_what_shows_up_late_is_waited_for_before_it_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut off, no trace of it for a while, and then Pinot begins to work on it after all."""
    monkeypatch.setattr(upload_loop, "SETTLE_SECONDS", 0)
    looks = [frozenset[str](), frozenset[str](), frozenset({"s0"})]

    class Slow(Controller):
        def registered_segments(self, table: str) -> frozenset[str]:
            if looks:
                return looks.pop(0)
            self.segments = {"s0": 7, "s1": 7}
            return frozenset(self.segments)

    pinot = Slow(batches=True)

    def cut(mode: str, name: str) -> None:
        raise CutOff("reset")

    pinot.script = cut
    push_segments(pinot, "t", names(2), staged=STAGED, mode=PushMode.METADATA)
    assert pinot.calls == [("batch", "s0 s1")]


def test_a_refusal_of_what_an_earlier_lost_call_put_there_is_none() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        pinot.segments[name] = 7
        raise PushRefused("it exists")

    pinot.script = script
    outputs = [output(f"s{n}") for n in range(20)]
    assert len(push_segments(pinot, "t", outputs, staged=STAGED, mode=PushMode.TAR).pushed) == 20
    assert len(pinot.segments) == 20


def test_after_a_refusal_nothing_more_is_begun() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        raise PushRefused("over quota")

    pinot.script = script
    with pytest.raises(PushRefused, match="over quota"):
        push_segments(pinot, "t", [output(f"s{n}") for n in range(100)], staged=STAGED, mode=PushMode.TAR)
    assert len(pinot.calls) < 10


def test_a_200_is_not_believed() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        pinot.late = [lambda: pinot.segments.clear()]

    pinot.script = script
    with pytest.raises(PushRefused, match="lacks 1 segment"):
        push_segments(pinot, "t", [output("a")], staged=STAGED)


def test_a_crc_other_than_built_is_not_confirmed() -> None:
    with pytest.raises(PushRefused, match="not in the ideal state with its CRC"):
        push_segments(Controller(), "t", [output("a", crc=8)], staged=STAGED)


def test_leftovers_of_a_failed_upload_are_waited_for() -> None:
    pinot = Controller()
    pinot.leftovers = {"a"}
    assert push_segments(pinot, "t", [output("a")], staged=STAGED).pushed == ("a",)


class HalfThere(Controller):
    """A controller that was killed while it took `a`.

    :ivar deletes: whether a deletion of that does anything.
    """

    def __init__(self) -> None:
        super().__init__()
        self.deletes = True
        self.half = {"a"}

    def registered_segments(self, table: str) -> frozenset[str]:
        return frozenset(self.segments) | self.half

    def delete_segments(self, table: str, names: Collection[str]) -> None:
        self.calls.append(("delete", " ".join(names)))
        self.half -= set(names) if self.deletes else set()


def test_leftovers_that_stay_are_taken_over_where_pinot_does_that() -> None:
    pinot = HalfThere()
    push_segments(pinot, "t", [output("a")], staged=STAGED)
    assert [what for what, _ in pinot.calls] == ["metadata"]


def test_leftovers_that_stay_are_deleted_first_where_pinot_takes_them_for_segments() -> None:
    pinot, owned = HalfThere(), list[int]()
    pinot.takes_over = False
    before_upload = lambda: owned.append(len(pinot.calls))  # noqa: E731
    push_segments(pinot, "t", [output("a"), output("b")], staged=STAGED, before_upload=before_upload)
    assert pinot.calls[0] == ("delete", "a")
    assert [what for what, _ in pinot.calls].count("delete") == 1
    assert owned[0] == 0, "the lease is asked for before anything is deleted"
    assert pinot.segments.keys() == {"a", "b"}


def test_r02_without_the_lease_no_leftover_is_deleted() -> None:
    def lost() -> None:
        raise LeaseLost("another run holds the table")

    pinot = HalfThere()
    pinot.takes_over = False
    with pytest.raises(LeaseLost):
        push_segments(pinot, "t", [output("a")], staged=STAGED, before_upload=lost)
    assert pinot.calls == []


def test_leftovers_that_cannot_be_deleted_are_an_error() -> None:
    pinot = HalfThere()
    pinot.takes_over = pinot.deletes = False
    with pytest.raises(PushRefused, match="half uploaded"):
        push_segments(pinot, "t", [output("a")], staged=STAGED)
    assert pinot.calls == [("delete", "a")]


def test_an_unreadable_staging_area_is_its_own_error() -> None:
    def unreadable(uri: str) -> bytes:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        push_segments(Controller(), "t", [output("a")], staged=Staged(unreadable), mode=PushMode.TAR)


# --- batches -----------------------------------------------------------------------------------------


def names(count: int) -> list[Output]:
    return [output(f"s{n}") for n in range(count)]


def test_a_batch_is_one_upload_after_a_trial_of_one() -> None:
    pinot = Controller(batches=True)
    report = push_segments(pinot, "t", names(4), staged=STAGED)
    assert pinot.calls == [("metadata", "s0"), ("batch", "s1 s2 s3")]
    assert (report.pushed, report.calls, report.mode) == (("s0", "s1", "s2", "s3"), 2, PushMode.METADATA)


def test_with_a_known_mode_the_first_upload_is_the_batch() -> None:
    pinot = Controller(batches=True)
    push_segments(pinot, "t", names(3), staged=STAGED, mode=PushMode.METADATA)
    assert pinot.calls == [("batch", "s0 s1 s2")]


def test_whole_tars_are_never_a_batch() -> None:
    pinot = Controller(batches=True)
    push_segments(pinot, "t", names(2), staged=STAGED, mode=PushMode.TAR)
    assert sorted(pinot.calls) == [("tar", "s0"), ("tar", "s1")]


@pytest.mark.parametrize(
    "refusal", [PushRefused("405"), UploadFailed("500"), PinotError("403"), PinotError("404")]
)
def test_a_refused_batch_goes_up_one_by_one_and_that_is_remembered(refusal: PinotError) -> None:
    pinot = Controller(batches=True)

    def script(mode: str, name: str) -> None:
        if mode == "batch":
            raise refusal

    pinot.script = script
    report = push_segments(pinot, "t", names(3), staged=STAGED, mode=PushMode.METADATA)
    assert pinot.calls[0] == ("batch", "s0 s1 s2")
    assert sorted(pinot.calls[1:]) == [("metadata", "s0"), ("metadata", "s1"), ("metadata", "s2")]
    assert report.calls == 4
    assert not pinot.batches


def test_one_bad_segment_of_a_batch_is_found_and_batches_are_not_given_up() -> None:
    pinot = Controller(batches=True)

    def script(mode: str, name: str) -> None:
        if "s1" in name:
            raise UploadFailed(f"{name} was refused", why="no such object")

    pinot.script = script
    with pytest.raises(PushRefused, match="s1 was refused"):
        push_segments(pinot, "t", names(3), staged=STAGED, mode=PushMode.METADATA)
    assert pinot.batches


def test_metadata_that_cannot_be_read_makes_no_batch() -> None:
    pinot = Controller(batches=True)
    torn = Staged(lambda uri: b"no tar")
    pinot.metadata = lambda segment, tar, uri: pinot._upload("metadata", segment)  # type: ignore[method-assign]
    push_segments(pinot, "t", names(2), staged=torn, mode=PushMode.METADATA)
    assert sorted(pinot.calls) == [("metadata", "s0"), ("metadata", "s1")]


def test_metadata_alone_is_a_left_over_and_pushed_again() -> None:
    """A batch of which one segment could not be copied leaves the metadata of those before it (1.5.1)."""
    pinot = Controller(batches=True)
    pinot.metadata_only = {"s0": 7}
    report = push_segments(pinot, "t", names(2), staged=STAGED, mode=PushMode.METADATA)
    assert report.pushed == ("s0", "s1")
    assert pinot.calls == [("batch", "s0 s1")]


# --- the network -------------------------------------------------------------------------------------


@pytest.mark.parametrize("batches", [True, False])
@pytest.mark.parametrize("trouble", [PinotUnreachable("no connection"), CutOff("reset")])
def test_what_pinot_never_heard_of_is_sent_again(trouble: PinotError, batches: bool) -> None:
    pinot = Controller(batches=batches)
    troubles = [trouble, trouble]

    def script(mode: str, name: str) -> None:
        if troubles:
            raise troubles.pop()

    pinot.script = script
    report = push_segments(pinot, "t", names(2), staged=STAGED, mode=PushMode.METADATA)
    assert report.pushed == ("s0", "s1")
    assert len(pinot.segments) == 2


def test_a_batch_whose_reply_was_lost_is_not_sent_again() -> None:
    pinot = Controller(batches=True)

    def script(mode: str, name: str) -> None:
        pinot.segments |= dict.fromkeys(name.split(), 7)
        raise CutOff("reset")

    pinot.script = script
    assert len(push_segments(pinot, "t", names(3), staged=STAGED, mode=PushMode.METADATA).pushed) == 3
    assert pinot.calls == [("batch", "s0 s1 s2")]


def test_what_pinot_is_still_at_work_on_is_not_sent_again() -> None:
    pinot = Controller(batches=True)

    def script(mode: str, name: str) -> None:
        pinot.metadata_only = {"s0": 7}
        raise CutOff("reset")

    pinot.script = script
    with pytest.raises(SwitchStateUnknown):
        push_segments(pinot, "t", names(3), staged=STAGED, mode=PushMode.METADATA)
    assert len(pinot.calls) == 1


def test_only_what_a_half_done_batch_lacks_is_sent_again() -> None:
    pinot = Controller(batches=True)

    def script(mode: str, name: str) -> None:
        if len(pinot.calls) == 1:
            pinot.segments["s1"] = 7
            raise UploadFailed("half done")

    pinot.script = script
    push_segments(pinot, "t", names(3), staged=STAGED, mode=PushMode.METADATA)
    assert sorted(pinot.calls) == [("batch", "s0 s1 s2"), ("metadata", "s0"), ("metadata", "s2")]


def test_a_controller_that_stays_away_is_told_after_some_tries() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        raise PinotUnreachable("no connection")

    pinot.script = script
    with pytest.raises(PinotUnreachable):
        push_segments(pinot, "t", names(1), staged=STAGED)
    assert len(pinot.calls) == upload_loop.ATTEMPTS


@pytest.mark.parametrize(("batches", "looks"), [(True, [0, 1]), (False, [0, 1, 5, 9])])
def test_r02_lease_and_entry_are_looked_at_before_every_upload(batches: bool, looks: list[int]) -> None:
    pinot = Controller(batches=batches)
    sent: list[int] = []
    push_segments(pinot, "t", names(10), staged=STAGED, before_upload=lambda: sent.append(len(pinot.calls)))
    assert sent == looks


@pytest.mark.parametrize("mode", PushMode)
@pytest.mark.parametrize("batches", [True, False])
def test_r02_nothing_is_read_between_the_look_and_the_upload(mode: PushMode, batches: bool) -> None:
    """To download a tar may take as long as the lease lasts."""
    pinot = Controller(batches=batches)
    done: list[str] = []

    def read(uri: str) -> bytes:
        done.append("read")
        return STAGED.read(uri)

    pinot.script = lambda mode, name: done.append("upload")
    push_segments(
        pinot, "t", names(5), staged=Staged(read), mode=mode, before_upload=lambda: done.append("look")
    )
    assert done.count("upload") == len(pinot.calls) > 0
    assert {("read", "upload"), ("look", "read")}.isdisjoint(pairwise(done))


def test_r02_whoever_lost_the_lease_sends_nothing_again() -> None:
    def lost() -> None:
        if pinot.calls:
            raise LeaseLost("gone")

    pinot = Controller()

    def cut(mode: str, name: str) -> None:
        raise CutOff("reset")

    pinot.script = cut
    with pytest.raises(LeaseLost):
        push_segments(pinot, "t", names(2), staged=STAGED, before_upload=lost)
    assert len(pinot.calls) == 1


def test_a_tar_that_changed_in_the_staging_area_is_not_sent() -> None:
    pinot = Controller()
    changed = replace(output("a"), tar_sha256="00")
    with pytest.raises(PushRefused, match="not what was staged"):
        push_segments(pinot, "t", [changed], staged=STAGED, mode=PushMode.TAR)
    assert pinot.calls == []


class Looks:
    """Answers `online_replicas` from a list, the last one for ever."""

    def __init__(self, *answers: Replicas) -> None:
        self.answers = list(answers)

    def online_replicas(self, table: str, names: object) -> Replicas:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def wait(looks: Looks) -> None:
    wait_online(looks, "t", ["a"], seconds=0.1)  # type: ignore[arg-type]


def test_wait_online_wants_every_replica() -> None:
    looks = Looks(
        {"a": {}}, {"a": {"s1": "ONLINE", "s2": "OFFLINE"}}, {"a": {"s1": "ONLINE", "s2": "ONLINE"}}
    )
    wait(looks)
    assert len(looks.answers) == 1


@pytest.mark.parametrize(
    ("replicas", "told"),
    [
        ({"s1": "ONLINE", "s2": "ERROR"}, "a on s2: ERROR"),
        ({"s1": "ONLINE", "s2": "OFFLINE"}, "a on s2: OFFLINE"),
        ({}, "a on any server: not assigned"),
    ],
)
def test_wait_online_names_segment_server_and_state(replicas: dict[str, str], told: str) -> None:
    with pytest.raises(PinotError, match=told):
        wait(Looks({"a": replicas}))
