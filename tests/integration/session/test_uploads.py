"""Uploads under way: what is half there is not published, what is being rewritten does not look deleted."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pinot_assets.session.values.report import TriggerResult

pytestmark = pytest.mark.integration

MODES = ("append", "sync", "swap")
HOUR = 3600


def grow_old(world: Any, *names: str) -> None:
    """The files were last written an hour ago."""
    then = time.time() - HOUR
    for name in names:
        os.utime(world.source / name, (then, then))


def stored(world: Any) -> tuple[Any, ...]:
    """All that a trigger may write: session, numbers, staging area, Pinot."""
    files = sorted(map(str, (world.folder / "staging").rglob("*")))
    pointer, lineage = world.read_pointer(), world.pinot.lineage(world.table)
    return world.read_sessions(), pointer.next_seq, pointer.current_snapshot, files, lineage, world.builds


@pytest.fixture(params=MODES)
def world(request: pytest.FixtureRequest, make_world: Any) -> Any:
    """P1 and P2 are published, and files count from one minute on."""
    world = make_world(request.param, minFileAgeSec=60)
    world.write("P1", "P2")
    grow_old(world, "P1", "P2")
    world.run()
    return world


def test_a_young_new_file_is_left_for_a_later_trigger(world: Any) -> None:
    world.write("F1", "F2")
    grow_old(world, "F1")
    report = world.run()
    assert report.result is TriggerResult.STAGED
    assert world.visible == ["F1", "P1", "P2"]
    assert [u.uri.rsplit("/", 1)[-1] for u in report.unready] == ["F2"]
    assert {uri.rsplit("/", 1)[-1] for uri in report.files} == {"F1", "F2", "P1", "P2"}
    report = world.run()
    assert report.result is TriggerResult.NOTHING
    assert "1 file is not ready" in report.summary
    grow_old(world, "F2")
    world.run()
    assert world.visible == ["F1", "F2", "P1", "P2"]
    world.assert_settled()


def test_a_young_rewritten_file_stops_the_trigger_before_anything_is_written(world: Any) -> None:
    world.write("F1", P1="P1.1")
    grow_old(world, "F1")
    before = stored(world)
    report = world.run()
    assert report.result is TriggerResult.WAITING
    assert "1 file is not ready" in report.summary
    assert "/source/P1 is " in report.summary
    assert "minFileAgeSec is 60" in report.summary
    assert stored(world) == before
    assert world.visible == ["P1", "P2"]
    grow_old(world, "P1")
    world.run()
    assert "P1.1" in world.visible
    assert "F1" in world.visible
    world.assert_settled()


def test_a_young_repair_of_an_open_session_spends_no_retry(world: Any) -> None:
    world.write("F1", "F2")
    grow_old(world, "F1", "F2")
    world.builder.failing = {"F2"}
    assert world.run().result is TriggerResult.FAILED
    world.builder.failing = set()
    world.write(F2="F2.1")
    before = stored(world)
    for _ in range(5):
        assert world.run().result is TriggerResult.WAITING
    assert stored(world) == before
    assert world.read_session().retry_count == 0
    grow_old(world, "F2")
    world.run()
    assert world.visible == ["F1", "F2.1", "P1", "P2"]


def test_a_young_rewrite_back_publishes_neither_version(make_world: Any) -> None:
    world = make_world("sync", minFileAgeSec=60)
    world.write("P1")
    grow_old(world, "P1")
    world.run()
    world.write(P1="P1.1")
    assert world.run().result is TriggerResult.WAITING
    world.write("P1")
    assert world.run().result is TriggerResult.WAITING
    grow_old(world, "P1")
    world.run()
    assert world.shown == [(), ("P1",)]
    world.assert_settled()


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_a_table_is_not_emptied_while_its_files_are_replaced(make_world: Any, mode: str) -> None:
    world = make_world(mode, minFileAgeSec=60)
    world.write("P1")
    grow_old(world, "P1")
    world.run()
    world.remove("P1")
    world.write("F1")
    assert world.run().result is TriggerResult.WAITING
    grow_old(world, "F1")
    world.run()
    assert world.shown == [(), ("P1",), ("F1",)]


# --- completeness marker ---------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sync", "swap"])
def test_a_directory_that_is_written_anew_is_taken_whole_when_its_marker_is_back(
    make_world: Any, mode: str
) -> None:
    world = make_world(mode, completenessMarker="_SUCCESS")
    marker: Path = world.source / "_SUCCESS"
    world.write("P1", "P2")
    assert world.run().result is TriggerResult.NOTHING
    marker.touch()
    world.run()
    assert world.visible == ["P1", "P2"]
    marker.unlink()
    world.remove("P1")
    before = stored(world)
    report = world.run()
    assert report.result is TriggerResult.WAITING
    assert "P1 was deleted from a directory that has other files and no _SUCCESS" in report.summary
    world.write(P2="P2.1")
    assert world.run().result is TriggerResult.WAITING
    assert stored(world) == before
    world.write(P1="P1.1")
    marker.touch()
    world.run()
    assert world.shown == [(), ("P1", "P2"), ("P1.1", "P2.1")]
    world.assert_settled()


def test_a_file_that_vanishes_from_a_complete_directory_is_deleted(make_world: Any) -> None:
    world = make_world("sync", completenessMarker="_SUCCESS")
    (world.source / "_SUCCESS").touch()
    world.write("P1", "P2")
    world.run()
    world.remove("P1")
    world.run()
    assert world.visible == ["P2"]


def test_append_does_not_wait_for_files_that_were_moved_on(make_world: Any) -> None:
    world = make_world("append", completenessMarker="_SUCCESS")
    (world.source / "_SUCCESS").touch()
    world.write("P1", "P2")
    world.run()
    (world.source / "_SUCCESS").unlink()
    world.remove("P1")
    assert world.run().result is TriggerResult.NOTHING


# --- an upload in real time --------------------------------------------------------------------------


def test_triggers_during_an_upload_show_each_file_whole_or_not_at_all(make_world: Any) -> None:
    """P1 is rewritten in place and F1 to F3 arrive piece by piece, while triggers come all the time."""
    world = make_world("sync", minFileAgeSec=4)
    world.write("P1", "P2")
    grow_old(world, "P1", "P2")
    world.run()
    world.watch_anew()
    whole = {name: [f"{name}.{n}" for n in range(8)] for name in ("P1", "F1", "F2", "F3")}

    def upload() -> None:
        files = {name: (world.source / name).open("w") for name in whole}
        for name, file in files.items():
            file.write("v\n")
            for value in whole[name]:
                file.write(f"{value}\n")
                file.flush()
                time.sleep(0.05)
        for file in files.values():
            file.close()

    uploading = threading.Thread(target=upload)
    uploading.start()
    results = []
    end = time.monotonic() + 60
    expected = sorted(["P2", *(v for values in whole.values() for v in values)])
    while world.visible != expected:
        assert time.monotonic() < end, results
        results.append(world.run().result)
        time.sleep(0.2)
    uploading.join()
    assert TriggerResult.WAITING in results, "the upload was met"
    for shown in world.shown:
        for name, values in whole.items():
            of_file = {v for v in shown if v == name or v.startswith(f"{name}.")}
            assert of_file in ({name}, set(values)) if name == "P1" else of_file in (set(), set(values))
        assert "P2" in shown
    assert len(world.read_sessions()) <= 4
    world.assert_settled()
