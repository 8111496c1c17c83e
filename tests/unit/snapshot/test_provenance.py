"""Where segments come from and files went, by the snapshots that are kept."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.packs import PublishedPack
from pinot_assets.snapshot.provenance import of_file, of_segment, snapshot_difference, stays
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output
from pinot_assets.source import Fingerprint


def file(name: str, version: str, segment: str, rows: int = 1) -> PublishedFile:
    output = Output(segment, 1, rows, f"file:///t/{segment}", 10 * rows, "h", "m")
    uri = f"file:///in/{name}"
    return PublishedFile(uri, Fingerprint(1, 1), "h", rows, 0, "cp1", (output,), version=version)


def snapshot(seq: int, *files: PublishedFile) -> Snapshot:
    return Snapshot(seq, "t_OFFLINE", f"cp{seq}-aaaaaa", "SYNC", f"e{seq}", None, "", "", seq * 1000, files)


A1, A2, B1 = file("a/x.csv", "v1", "s1", 3), file("a/x.csv", "v2", "s2", 5), file("b/x.csv", "v1", "s3", 7)
HISTORY = [snapshot(4, A1), snapshot(3, A2), snapshot(2, A1, B1), snapshot(1, A1)]


def spans(found: Any) -> list[tuple[str, int, int | None]]:
    return [(s.file.version, s.since.seq, s.until.seq if s.until else None) for s in found]


def test_a_version_that_comes_back_has_two_stays() -> None:
    assert spans(of_file(HISTORY, "a/x.csv")) == [("v1", 4, None), ("v2", 3, 4), ("v1", 1, 3)]


def test_the_end_of_a_uri_is_enough_from_a_slash_on() -> None:
    assert spans(of_file(HISTORY, "b/x.csv")) == [("v1", 2, 3)]
    assert spans(of_file(HISTORY, "file:///in/b/x.csv")) == [("v1", 2, 3)]
    assert len(of_file(HISTORY, "x.csv")) == 4
    assert of_file(HISTORY, ".csv") == []


def test_a_segment_and_the_newest_stay_of_its_file() -> None:
    found, *_ = of_segment(HISTORY, "s1")
    assert (found.since.seq, found.until, found.output("s1").rows) == (4, None, 3)
    assert of_segment(HISTORY, "nosuch") == []


def test_a_packed_file_is_in_the_segments_of_its_pack() -> None:
    pack = PublishedPack("cp4-00000a", 2, "a" * 64, 2, 8, A1.outputs)
    files = tuple(replace(file, outputs=(), packs=(pack.name,)) for file in (A1, B1))
    packed = replace(snapshot(4, *files), packs=(pack,))
    assert [stay.outputs for stay in of_file([packed], "a/x.csv")] == [A1.outputs]
    assert {stay.file.uri for stay in of_segment([packed], "s1")} == {A1.uri, B1.uri}


def test_both_versions_of_an_appended_file_stay() -> None:
    both = [snapshot(2, A1, A2), snapshot(1, A1)]
    assert spans(of_file(both, "a/x.csv")) == [("v2", 2, None), ("v1", 1, None)]


def test_what_a_switch_changed() -> None:
    found = snapshot_difference(snapshot(1, A1, B1), snapshot(2, A2))
    assert found.added == ()
    assert [f.uri for f in found.removed] == ["file:///in/b/x.csv"]
    assert found.rewritten == ((A1, A2),)
    assert (found.segments_to, found.segments_from) == (("s2",), ("s1", "s3"))
    assert (found.rows, found.tar_bytes) == (-5, -50)


SNAPSHOTS = st.lists(st.sets(st.sampled_from([A1, A2, B1]), max_size=3), max_size=6).map(
    lambda states: [snapshot(n, *sorted(s, key=str)) for n, s in enumerate(states, 1)][::-1]
)


@given(SNAPSHOTS)
def test_stays_say_what_each_snapshot_holds(history: list[Snapshot]) -> None:
    for now in history:
        held = {
            (s.file.uri, s.file.version)
            for s in stays(history)
            if s.since.seq <= now.seq and (s.until is None or now.seq < s.until.seq)
        }
        assert held == {(f.uri, f.version) for f in now.files}


@given(SNAPSHOTS)
def test_differences_add_up(history: list[Snapshot]) -> None:
    if history:
        steps = [snapshot_difference(older, newer) for newer, older in itertools.pairwise(history)]
        assert sum(s.rows for s in steps) == history[0].rows - history[-1].rows
        assert snapshot_difference(replace(history[0]), history[0]).rewritten == ()
