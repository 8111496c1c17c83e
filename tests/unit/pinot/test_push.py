from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from pinot_assets.errors import PinotError, PushRefused, SwitchStateUnknown
from pinot_assets.pinot import PushMode, wait_online
from pinot_assets.pinot import push as push_module
from pinot_assets.pinot.http import UploadFailed
from pinot_assets.pinot.port import Replicas
from pinot_assets.pinot.push import push_segments
from pinot_assets.session.receipt import Output


def output(name: str, crc: int = 7) -> Output:
    return Output(name, crc, 1, f"stage:{name}.tar.gz", 1, "", f"stage:{name}.metadata.tar.gz")


class Controller:
    """A controller that does what a test says; `script` may raise before or after the effect."""

    def __init__(self) -> None:
        self.segments: dict[str, int] = {}
        self.leftovers: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        self.script: Callable[[str, str], None] = lambda mode, name: None
        self.late: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def all_segments(self, table: str) -> frozenset[str]:
        return frozenset(self.segments)

    def registered_segments(self, table: str) -> frozenset[str]:
        registered = frozenset(self.segments) | self.leftovers
        self.leftovers = set()
        return registered

    def segment_crcs(self, table: str) -> dict[str, int]:
        if self.late:
            self.late.pop()()
        return dict(self.segments)

    def upload_metadata(self, table: str, segment: str, metadata_tar: bytes, download_uri: str) -> None:
        assert metadata_tar == f"stage:{segment}.metadata.tar.gz".encode()
        assert download_uri == f"stage:{segment}.tar.gz"
        self._upload("metadata", segment)

    def upload_tar(self, table: str, segment: str, tar: bytes) -> None:
        assert tar == f"stage:{segment}.tar.gz".encode()
        self._upload("tar", segment)

    def _upload(self, mode: str, segment: str) -> None:
        with self._lock:
            assert segment not in self.leftovers
            self.calls.append((mode, segment))
            self.script(mode, segment)
            self.segments[segment] = 7


def read(uri: str) -> bytes:
    return uri.encode()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push_module, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(push_module, "SETTLE_SECONDS", 0.1)
    monkeypatch.setattr(push_module, "LEFTOVER_SECONDS", 0.1)


def test_only_what_is_missing_is_pushed() -> None:
    pinot = Controller()
    pinot.segments = {"a": 7}
    report = push_segments(pinot, "t", [output("a"), output("b"), output("c")], read=read)
    assert (report.pushed, report.skipped) == (("b", "c"), ("a",))
    assert (report.mode, report.fallback) == (PushMode.METADATA, None)
    assert sorted(pinot.calls) == [("metadata", "b"), ("metadata", "c")]


def test_a_hundred_at_once() -> None:
    pinot = Controller()
    outputs = [output(f"s{n}") for n in range(100)]
    assert len(push_segments(pinot, "t", outputs, read=read).pushed) == 100
    assert len(pinot.calls) == 100


def test_nothing_to_push() -> None:
    assert push_segments(Controller(), "t", [], read=read).pushed == ()


def test_another_content_under_a_name_is_refused_before_anything_is_sent() -> None:
    pinot = Controller()
    pinot.segments = {"b": 8}
    with pytest.raises(PushRefused, match="b has CRC 8, built was 7"):
        push_segments(pinot, "t", [output("a"), output("b")], read=read)
    assert pinot.calls == []


def test_a_name_twice_in_one_push_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="twice"):
        push_segments(Controller(), "t", [output("a"), output("a")], read=read)


def test_tar_where_the_controller_cannot_reach_the_staging_area() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        if mode == "metadata":
            pinot.leftovers.add(name)
            raise UploadFailed("refused", why="no filesystem for s3")

    pinot.script = script
    report = push_segments(pinot, "t", [output("a"), output("b")], read=read)
    assert (report.mode, report.fallback) == (PushMode.TAR, "no filesystem for s3")
    assert pinot.calls == [("metadata", "a"), ("tar", "a"), ("tar", "b")]


def test_when_both_ways_fail_both_reasons_are_told() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        raise UploadFailed("refused", why=f"{mode} is bad")

    pinot.script = script
    with pytest.raises(PushRefused) as caught:
        push_segments(pinot, "t", [output("a"), output("b")], read=read)
    assert "tar is bad" in str(caught.value)
    assert "metadata is bad" in str(caught.value)
    assert pinot.calls == [("metadata", "a"), ("tar", "a")]


def test_a_real_refusal_is_no_reason_to_send_the_tar() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        raise PushRefused("refused", why="over quota")

    pinot.script = script
    with pytest.raises(PushRefused, match="over quota"):
        push_segments(pinot, "t", [output("a"), output("b")], read=read)
    assert pinot.calls == [("metadata", "a")]


@pytest.mark.parametrize("mode", PushMode)
def test_a_given_mode_is_kept(mode: PushMode) -> None:
    pinot = Controller()
    assert push_segments(pinot, "t", [output("a")], read=read, mode=mode).mode is mode
    assert pinot.calls == [(mode.value, "a")]


def test_a_lost_reply_is_settled_by_reading() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        pinot.segments[name] = 7
        raise SwitchStateUnknown("lost")

    pinot.script = script
    assert push_segments(pinot, "t", [output("a")], read=read).pushed == ("a",)
    assert pinot.calls == [("metadata", "a")]


def test_a_lost_call_that_lands_late_is_waited_for() -> None:
    pinot = Controller()

    def land() -> None:
        pinot.segments["a"] = 7

    def script(mode: str, name: str) -> None:
        pinot.late = [land, lambda: None, lambda: None]
        raise SwitchStateUnknown("lost")

    pinot.script = script
    assert push_segments(pinot, "t", [output("a")], read=read).pushed == ("a",)


def test_a_lost_call_that_does_not_show_up_stays_unknown() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        raise SwitchStateUnknown("lost")

    pinot.script = script
    with pytest.raises(SwitchStateUnknown):
        push_segments(pinot, "t", [output("a")], read=read)
    assert pinot.calls == [("metadata", "a")]


def test_a_refusal_of_what_an_earlier_lost_call_put_there_is_none() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        pinot.segments[name] = 7
        raise PushRefused("it exists")

    pinot.script = script
    outputs = [output(f"s{n}") for n in range(20)]
    assert len(push_segments(pinot, "t", outputs, read=read, mode=PushMode.TAR).pushed) == 20
    assert len(pinot.segments) == 20


def test_after_a_refusal_nothing_more_is_begun() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        raise PushRefused("over quota")

    pinot.script = script
    with pytest.raises(PushRefused, match="over quota"):
        push_segments(pinot, "t", [output(f"s{n}") for n in range(100)], read=read, mode=PushMode.TAR)
    assert len(pinot.calls) < 10


def test_a_200_is_not_believed() -> None:
    pinot = Controller()

    def script(mode: str, name: str) -> None:
        pinot.late = [lambda: pinot.segments.clear()]

    pinot.script = script
    with pytest.raises(PushRefused, match="accepted but are not there"):
        push_segments(pinot, "t", [output("a")], read=read)


def test_a_crc_other_than_built_is_not_confirmed() -> None:
    with pytest.raises(PushRefused, match="not in the ideal state with its CRC"):
        push_segments(Controller(), "t", [output("a", crc=8)], read=read)


def test_leftovers_of_a_failed_upload_are_waited_for() -> None:
    pinot = Controller()
    pinot.leftovers = {"a"}
    assert push_segments(pinot, "t", [output("a")], read=read).pushed == ("a",)


def test_leftovers_that_stay_are_an_error() -> None:
    class Stuck(Controller):
        def registered_segments(self, table: str) -> frozenset[str]:
            return frozenset({"a"})

    pinot = Stuck()
    with pytest.raises(PushRefused, match="half there"):
        push_segments(pinot, "t", [output("a")], read=read)
    assert pinot.calls == []


def test_an_unreadable_staging_area_is_its_own_error() -> None:
    def unreadable(uri: str) -> bytes:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        push_segments(Controller(), "t", [output("a")], read=unreadable, mode=PushMode.TAR)


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
