"""Work of several calls that is broken off says what was done before."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss

from pinot_assets.core.effects import WORDS, Effects, SoFar, progress_in_errors, recording, standing
from pinot_assets.errors import (
    PinotUnreachable,
    SessionError,
    SourceError,
    SwitchConflict,
    SwitchStateUnknown,
)
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.pinot.realtime import RealtimePinot


class Door:
    """A Pinot whose calls go as they are told to."""

    def __init__(self, **troubles: BaseException) -> None:
        self._troubles = troubles

    def _one(self, name: str, answer: Any = None) -> Any:
        if name in self._troubles:
            raise self._troubles[name]
        return answer

    def lineage(self, table: str) -> str:
        return str(self._one("lineage", "as it stands"))

    def start_replace_segments(self, table: str, old: Collection[str], new: Collection[str]) -> str:
        return str(self._one("start_replace_segments", "e1"))

    def push(self, table: str, outputs: Collection[str], *, staged: object) -> None:
        self._one("push")

    def end_replace_segments(self, table: str, entry: str) -> None:
        self._one("end_replace_segments")

    def put_schema(self, schema: dict[str, str]) -> None:
        self._one("put_schema")


def test_calls_that_were_answered_are_counted_together() -> None:
    effects = Effects()
    door = effects.recorded(Door())
    assert door.lineage("t") == "as it stands"
    assert standing(effects) == ""
    assert door.start_replace_segments("t", (), ("a", "b", "c")) == "e1"
    door.push("t", ["a"], staged=None)
    door.push("t", ["b", "c"], staged=None)
    door.end_replace_segments("t", "e1")
    door.put_schema({"schemaName": "t"})
    assert standing(effects, ["3 files built"]) == (
        "done so far: 3 files built, lineage entry e1 opened for 3 segments, 3 segments pushed, "
        "lineage entry e1 ended, schema t written"
    )


def test_a_call_without_an_answer_is_unknown_until_it_is_seen() -> None:
    effects = Effects()
    silent = SwitchStateUnknown("no answer came")
    door = effects.recorded(Door(start_replace_segments=silent, end_replace_segments=silent))
    with pytest.raises(SwitchStateUnknown):
        door.start_replace_segments("t", (), ("a",))
    with pytest.raises(SwitchStateUnknown):
        door.end_replace_segments("t", "e1")
    assert standing(effects) == (
        "not known whether it happened: lineage entry opened for 1 segment, lineage entry e1 ended"
    )
    effects.settled("start", "e1")
    assert standing(effects) == (
        "done so far: lineage entry e1 opened for 1 segment; "
        "not known whether it happened: lineage entry e1 ended"
    )


def test_what_was_never_sent_or_was_refused_is_not_told() -> None:
    effects = Effects()
    door = effects.recorded(
        Door(start_replace_segments=PinotUnreachable("away"), end_replace_segments=SwitchConflict("no"))
    )
    with pytest.raises(PinotUnreachable):
        door.start_replace_segments("t", (), ("a",))
    with pytest.raises(SwitchConflict):
        door.end_replace_segments("t", "e1")
    assert standing(effects) == ""


def test_of_a_push_that_breaks_off_some_may_have_arrived() -> None:
    effects = Effects()
    with pytest.raises(PinotUnreachable):
        effects.recorded(Door(push=PinotUnreachable("away"))).push("t", ["a", "b"], staged=None)
    assert standing(effects) == "not known whether it happened: 2 segments pushed"


class Interrupted(BaseException):
    """As Dagster's."""


@pytest.mark.parametrize("by", [KeyboardInterrupt(), Interrupted()])
def test_whether_a_call_happened_that_was_interrupted_is_not_known(by: BaseException) -> None:
    effects = Effects()
    with pytest.raises(type(by)):
        effects.recorded(Door(end_replace_segments=by)).end_replace_segments("t", "e1")
    assert standing(effects) == "not known whether it happened: lineage entry e1 ended"


def looks(door: Door) -> None:
    door.lineage("t")


def writes_and_looks(door: Door) -> None:
    door.put_schema({"schemaName": "t"})
    door.lineage("t")


@pytest.mark.parametrize(
    ("work", "told"),
    [(looks, "nothing was changed in Pinot"), (writes_and_looks, "done so far: schema t written")],
)
def test_a_work_that_is_broken_off_says_what_was_done_and_what_goes_on(
    work: Callable[[Door], None], told: str
) -> None:
    def whole() -> None:
        with recording(Door(lineage=_away()), "type it again") as door:
            work(door)

    with pytest.raises(PinotUnreachable) as broken:
        whole()
    assert broken.value.hint == f"{told}; type it again; is it up?"


def _away() -> PinotUnreachable:
    return PinotUnreachable("no connection", hint="is it up?")


def _zookeeper_away() -> SessionError:
    error = SessionError("ZooKeeper does not answer", hint="is it up?")
    error.__cause__ = ConnectionLoss()
    return error


@pytest.mark.parametrize(
    ("error", "changed", "told"),
    [
        (SourceError("the store is away", hint="mount it"), True, "done; again; mount it"),
        (SourceError("the store is away", hint="mount it"), False, "mount it"),
        (_zookeeper_away(), True, "done; again; is it up?"),
        (SessionError("no such session", hint="look"), True, "look"),
        (SwitchConflict("another's entry", hint="wait"), True, "wait"),
        (SwitchStateUnknown("no answer"), False, "done; again"),
    ],
)
def test_only_silence_is_told_of(error: Exception, changed: bool, told: str) -> None:
    with pytest.raises(type(error)) as broken, progress_in_errors(lambda: SoFar("done", "again", changed)):
        raise error
    assert broken.value.hint == told  # type: ignore[attr-defined]


def test_every_call_that_is_told_of_is_one_of_pinots() -> None:
    assert [
        name for name in WORDS if not (hasattr(HttpPinotClient, name) or hasattr(RealtimePinot, name))
    ] == []
