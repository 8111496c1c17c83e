"""A listing over several ticks: any cut gives the inventory of one listing, and nothing else is one."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from fakes.stores.memory import MemoryObjectStore, new_memory
from fakes.tables import SYNC, write_table
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.errors import ListingFailed, SourceError
from pinot_assets.session.detect import listing as paged_listing
from pinot_assets.session.detect.listing import (
    CompleteListing,
    KeptParts,
    ListingCursor,
    resume_listing,
)
from pinot_assets.session.detect.observe import list_source
from pinot_assets.source import Inventory, file_table, open_store
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.table_spec import TableSpec

NAMES = st.sampled_from([f"{d}/{n}" for d in "ab" for n in ("1", "2.tmp", "3", "done", "é")] + ["c", "d"])


@pytest.fixture(autouse=True)
def one_object_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_table, "_PAGE", 1)


@pytest.fixture(autouse=True)
def objects_are_dated_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the fake are dated by a count, long ago."""
    monkeypatch.setattr(paged_listing, "KEPT_S", 10**10)


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    return write_table(tmp_path, "t", dict(SYNC))


class Sensor:
    """What is left of the files sensor: its cursor and the listing."""

    def __init__(
        self, spec: TableSpec, source: ObjectStore, staging: MemoryObjectStore | None = None
    ) -> None:
        self.spec, self.source = spec, source
        self.staged = staging or new_memory()
        self.cursor = ""

    def tick(self, is_late: Callable[[], bool] = lambda: True) -> CompleteListing | None:
        mark = ListingCursor.read(json.loads(self.cursor)) if self.cursor else None
        found = resume_listing(self.spec, self.source, KeptParts(self.staged), mark, is_late)
        if isinstance(found, ListingCursor):
            self.cursor = json.dumps(asdict(found))
            return None
        self.cursor = ""
        KeptParts(self.staged).drop(found.parts)
        return found

    def sweep(self) -> tuple[CompleteListing, int]:
        ticks = 1
        while (found := self.tick()) is None:
            ticks += 1
            assert ticks < 1000
        return found, ticks

    def parts(self) -> list[str]:
        return [info.key for info in self.staged.list("listings")]


def source_of(*names: str) -> MemoryObjectStore:
    source = new_memory()
    for name in names:
        source.write(name, name.encode())
    return source


def same(one: Inventory, other: Inventory) -> bool:
    fields = ("files", "digest", "skipped", "hidden", "complete", "being_written")
    return all(getattr(one, name) == getattr(other, name) for name in fields)


def test_what_one_tick_has_time_for_leaves_nothing_behind(spec: TableSpec) -> None:
    sensor = Sensor(spec, source_of("a", "b", "c"))
    found = sensor.tick(lambda: False)
    assert found is not None
    assert len(found.inventory.files) == 3
    assert (sensor.parts(), found.parts) == ([], ())


def test_a_listing_goes_on_where_it_was_and_clears_up(spec: TableSpec) -> None:
    sensor = Sensor(spec, source_of("a", "b", "c"))
    assert sensor.tick() is None
    assert sensor.tick() is None
    mark = ListingCursor.read(json.loads(sensor.cursor))
    assert mark is not None
    assert str(mark) == "listed 2 objects so far, up to b; the next tick continues"
    assert len(sensor.parts()) == 2
    found, _ = sensor.sweep()
    assert same(found.inventory, list_source(spec, sensor.source))
    assert sensor.parts() == []


@settings(deadline=None)
@given(names=st.sets(NAMES), lates=st.lists(st.booleans()), marker=st.booleans())
def test_any_cut_gives_the_inventory_of_one_listing(names: set[str], lates: list[bool], marker: bool) -> None:
    options = {"completenessMarker": "done"} if marker else {"excludeFileNamePattern": "glob:**/3"}
    with tempfile.TemporaryDirectory() as folder:
        sensor = Sensor(write_table(Path(folder), "t", {**SYNC, **options}), source_of(*names))
        left = iter(lates)
        while (found := sensor.tick(lambda: next(left, False))) is None:
            pass
        assert same(found.inventory, list_source(sensor.spec, sensor.source))


CHANGES = st.lists(st.tuples(st.sampled_from(["write", "remove", "tick", "crash", "clear"]), NAMES))


@settings(deadline=None)
@given(names=st.sets(NAMES), changes=CHANGES)
def test_whatever_happens_beside_it_only_a_whole_listing_is_an_inventory(
    names: set[str], changes: list[tuple[str, str]]
) -> None:
    """What stood there throughout is in it, in a version that it had; what never stood there is not."""
    with tempfile.TemporaryDirectory() as folder:
        source = source_of(*names)
        sensor = Sensor(write_table(Path(folder), "t", dict(SYNC)), source)
        throughout, ever = _uris(source), _uris(source)

        def look(found: CompleteListing | None) -> None:
            nonlocal throughout, ever
            if found is not None:
                shown = set(found.inventory.files)
                assert {u for u in throughout if not u.endswith(".tmp")} <= shown <= ever
                throughout, ever = _uris(source), _uris(source)

        for what, name in changes:
            if what == "write":
                source.write(name, b"new")
            elif what == "remove" and source.stat(name):
                source.remove(name)
            elif what == "clear":
                for key in sensor.parts():
                    sensor.staged.delete(key)
            elif what == "crash":  # a tick whose cursor was not stored
                cursor = sensor.cursor
                go = sensor.tick()
                sensor.cursor = cursor
                del go
            elif what == "tick":
                look(sensor.tick())
            throughout, ever = throughout & _uris(source), ever | _uris(source)
        look(sensor.sweep()[0])
        assert same(sensor.sweep()[0].inventory, list_source(sensor.spec, source)), "the next sweep sees all"


def _uris(source: MemoryObjectStore) -> set[str]:
    return {info.uri for info in source.list()}


def test_what_changed_behind_the_bookmark_is_found_by_the_next_sweep(spec: TableSpec) -> None:
    source = source_of("a", "b", "c")
    sensor = Sensor(spec, source)
    sensor.tick()
    sensor.tick()
    source.write("a", b"rewritten")
    source.write("aa", b"new")
    first, _ = sensor.sweep()
    assert source.uri_of("aa") not in first.inventory.files
    assert same(sensor.sweep()[0].inventory, list_source(spec, source))


def test_another_pattern_in_the_middle_begins_anew(spec: TableSpec, tmp_path: Path) -> None:
    sensor = Sensor(spec, source_of("a.csv", "b.csv", "c.json"))
    sensor.tick()
    sensor.tick()
    sensor.spec = write_table(tmp_path, "t", {**SYNC, "includeFileNamePattern": "glob:**/*.json"})
    found, ticks = sensor.sweep()
    assert [*found.inventory.files] == [sensor.source.uri_of("c.json")]
    assert ticks == 4


def test_a_stretch_that_breaks_off_is_repeated(spec: TableSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of("a", "b", "c")
    sensor = Sensor(spec, source)
    sensor.tick()
    cursor = sensor.cursor

    def broken(after: str = "") -> Iterator[object]:
        raise ListingFailed("the network")
        yield

    with monkeypatch.context() as patch:
        patch.setattr(source, "pages", broken)
        with pytest.raises(ListingFailed):
            sensor.tick()
    assert sensor.cursor == cursor
    assert same(sensor.sweep()[0].inventory, list_source(spec, source))


def test_two_sensors_of_one_table_do_not_mix_their_listings(spec: TableSpec) -> None:
    """Nor take the other's parts away."""
    source, staged = source_of("a", "b", "c", "d"), new_memory()
    one, other = Sensor(spec, source, staged), Sensor(spec, source, staged)
    for _ in range(4):
        assert one.tick() is None
        assert other.tick() is None
    for sensor in (one, other):
        found = sensor.tick()
        assert found is not None
        assert same(found.inventory, list_source(spec, source))
    assert one.parts() == []


def test_a_part_that_was_tampered_with_begins_anew(spec: TableSpec) -> None:
    staged = new_memory()
    sensor = Sensor(spec, source_of("a", "b", "c"), staged)
    sensor.tick()
    (key,) = sensor.parts()
    staged.write(key, b"something else")
    found, ticks = sensor.sweep()
    assert same(found.inventory, list_source(spec, sensor.source))
    assert ticks > 3


def test_a_staging_area_that_is_away_for_a_while_costs_a_tick(
    spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = Sensor(spec, source_of("a", "b", "c"))
    sensor.tick()
    sensor.tick()
    cursor = sensor.cursor

    def away(*_: object) -> bytes:
        raise SourceError("the staging area is away")

    with monkeypatch.context() as patch:
        patch.setattr(sensor.staged, "read", away)
        patch.setattr(sensor.staged, "put_if_absent", away)
        with pytest.raises(SourceError):
            sensor.tick()
    assert sensor.cursor == cursor
    found, ticks = sensor.sweep()
    assert same(found.inventory, list_source(spec, sensor.source))
    assert ticks == 2


def test_a_part_that_can_never_be_read_does_not_stop_the_sensor(
    spec: TableSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    sensor = Sensor(spec, source_of("a", "b", "c"))
    sensor.tick()
    (part,) = sensor.parts()
    read = sensor.staged.read

    def some(key: str) -> bytes:
        if key == part:
            raise SourceError("it cannot be read")
        return read(key)

    monkeypatch.setattr(sensor.staged, "read", some)
    assert same(sensor.sweep()[0].inventory, list_source(spec, sensor.source))


def test_parts_that_nobody_took_away_go_after_a_day(
    spec: TableSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paged_listing, "KEPT_S", 24 * 3600)
    folder = tmp_path / "staged" / "listings"
    folder.mkdir(parents=True)
    old, young = (f"part-{digit * 32}.arrow" for digit in "01")
    for name, hours in ((old, 25), (young, 23), ("mine.arrow", 25)):
        (folder / name).touch()
        os.utime(folder / name, times=(time.time() - hours * 3600,) * 2)
    sensor = Sensor(spec, source_of("a"), open_store(str(folder.parent), {}, UNLIMITED))
    sensor.sweep()
    assert sensor.parts() == ["listings/mine.arrow", f"listings/{young}"]


ODD = [
    None,
    7,
    {},
    {"of": "x"},
    dict.fromkeys(ListingCursor.__slots__, 1),
    dict.fromkeys(ListingCursor.__slots__, "x"),
]


@pytest.mark.parametrize("value", ODD)
def test_what_is_no_bookmark_begins_anew(value: object) -> None:
    assert ListingCursor.read(value) is None
