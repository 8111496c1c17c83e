"""Partition keys: few, short, different at their end, and always the same for the same file."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from fakes.tables import SYNC, write_table
from hypothesis import example, given
from hypothesis import strategies as st

from pinot_assets.assets.partitions import (
    ALL_FILES,
    LONGEST,
    by_partition,
    choose,
    file_key,
    is_group,
    path_of,
)
from pinot_assets.table_spec import TableSpec

PARTS = [
    f"lake/events/dt=2024-01-{day:02}/part-{n:05}-5b6f0f6e-7b0c-4a52-9d2e-1f3a5c7e9b{day:02}.c000.snappy.parquet"
    for day in range(1, 29)
    for n in range(20)
]


def spec_of(folder: Path, **keys: str) -> TableSpec:
    return write_table(folder, "t", SYNC | keys)


def accepted(key: str) -> bool:
    """As Dagster judges it."""
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("p", [key])
        return instance.get_dynamic_partitions("p") == [key]


def test_a_short_path_is_its_own_key() -> None:
    assert file_key("2013/01/flights 05.csv.gz") == "2013/01/flights 05.csv.gz"


def test_what_spark_writes_gets_keys_that_differ_where_people_look() -> None:
    keys = [file_key(path) for path in PARTS]
    assert len(set(keys)) == len(PARTS)
    assert max(map(len, keys)) <= LONGEST
    assert len({key[-8:] for key in keys}) == len(PARTS), "the ends are the same"
    assert keys[0].startswith("lake/events/dt=2024-01-01/part-00000-")


@given(st.text(min_size=1, max_size=300).filter(lambda t: t == t.strip("/")))
@example("dir:")
@example("re:/" + "x" * 80)
def test_any_path_has_a_key_that_dagster_takes(path: str) -> None:
    key = file_key(path)
    assert 0 < len(key) <= LONGEST
    assert "..." not in key
    assert key.isprintable() or not any(ord(c) < 32 or ord(c) == 127 for c in key)
    assert key != ALL_FILES
    assert not is_group(key)


@pytest.mark.parametrize(
    "path", [ALL_FILES, "a...b.csv", "dir:x", "hash:256/001", "a\nb.csv", "x" * 300, "a\udcff.csv"]
)
def test_a_path_that_would_be_misread_is_disguised(path: str) -> None:
    key = file_key(path)
    assert key != path
    assert accepted(key)


def test_one_partition_per_file_up_to_the_limit_then_one_per_directory(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, maxFilePartitions="3")
    few = choose(spec, ["a/1", "a/2", "b/1"], [])
    assert (few.name, few.key_of("a/1")) == ("file", "a/1")
    many = choose(spec, ["a/1", "a/2", "b/1", "3"], [])
    assert many.name == "directory"
    assert [many.key_of(p) for p in ("a/1", "a/2", "b/1", "3")] == ["dir:a", "dir:a", "dir:b", "dir:."]


def test_a_grouped_table_stays_grouped(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, maxFilePartitions="3")
    assert choose(spec, ["a/1"], [ALL_FILES, "dir:a"]).name == "directory"
    assert choose(spec, ["a/1"], [ALL_FILES, "a/1"]).name == "file"


def test_a_grouped_table_does_not_flip_around_the_limit(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, maxFilePartitions="3")
    few, many = [f"{n}/a" for n in range(5)], [f"{n}/a" for n in range(400)]
    assert choose(spec, many, [ALL_FILES, "dir:1"]).name == "directory"
    assert choose(spec, few, [ALL_FILES, "hash:256/001"]).name == "hash"
    assert choose(spec, few, []).name == "directory"


def test_another_kind_of_groups_is_taken_from_the_spec(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, maxFilePartitions="1", partitionGroup="hash:16")
    for before in ("dir:a", "re:2024", "hash:32/01"):
        assert choose(spec, ["a/1"], [ALL_FILES, before]).key_of("a/1").startswith("hash:16/")


def test_as_many_buckets_as_somebody_asked_for(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, maxFilePartitions="100", partitionGroup="hash:500")
    paths = [f"{n}/a" for n in range(5000)]
    chosen = choose(spec, paths, [])
    assert len({chosen.key_of(path) for path in paths}) == 500


def test_groups_by_what_a_regex_captures(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, maxFilePartitions="1", partitionGroup=r"regex:dt=(\d{4}-\d\d)")
    chosen = choose(spec, PARTS, [])
    assert {chosen.key_of(p) for p in PARTS} == {"re:2024-01"}
    assert chosen.key_of("other.csv") == "re:(no match)"


def test_groups_by_hash(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, maxFilePartitions="1", partitionGroup="hash:16")
    keys = {choose(spec, PARTS, []).key_of(p) for p in PARTS}
    assert keys == {f"hash:16/{n:02}" for n in range(16)}


def test_more_directories_than_partitions_fall_back_to_hash(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, maxFilePartitions="300")
    chosen = choose(spec, [f"{n}/a" for n in range(400)], [])
    assert chosen.name == "hash"
    assert len({chosen.key_of(f"{n}/a") for n in range(400)}) <= 256


def test_a_path_is_told_as_people_write_it(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    assert path_of(spec, f"{spec.input_uri()}/a%20b/c%25.csv") == "a b/c%.csv"


def test_names_that_are_no_utf8_stay_apart(tmp_path: Path) -> None:
    spec = spec_of(tmp_path)
    paths = [path_of(spec, f"{spec.input_uri()}/a%{byte}.csv") for byte in ("FE", "FF")]
    assert len({file_key(path) for path in paths}) == 2
    versions = dict.fromkeys(paths, "1")
    assert len(by_partition(versions, file_key)) == 3
    assert by_partition(versions, choose(spec_of(tmp_path, maxFilePartitions="1"), paths, []).key_of)
