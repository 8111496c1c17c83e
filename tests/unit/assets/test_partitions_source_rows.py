"""Versions by columns are those that one would tell file by file."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fakes.tables import APPEND, SYNC, write_table
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.assets.partitions import ALL_FILES, SourceRows, choose, path_of
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import PublishedFile, PublishedFiles, files_to_parquet
from pinot_assets.source import Fingerprint, SourceFile
from pinot_assets.source.file_table import FileTable
from pinot_assets.source.uris import quote_key
from pinot_assets.table_spec import TableSpec

NAMES = [
    "1",
    "a",
    "a/1",
    "a/2",
    "a/b/1",
    "a/c",
    "a b/1",
    "a-b/1",
    "b/1",
    "\udcff/1",
    "\udcff2",
    "😀/1",
    "é/%",
]
FILES = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2))
LEDGERS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 3), st.integers(1, 3)))


def digest(lines: list[str]) -> str:
    text = "\n".join(sorted(lines))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12] if lines else "deleted"


def told(
    spec: TableSpec, files: dict[str, SourceFile], ledger: dict[str, PublishedFile], grouped: bool
) -> dict[str, str]:
    """What `source` of a picture is to be, file by file."""
    versions = {}
    for uri in files.keys() | ledger.keys():
        if uri not in files:
            version = ledger[uri].version if spec.mode == "append" else "deleted"
        elif uri in ledger and ledger[uri].fingerprint == files[uri].fingerprint:
            version = ledger[uri].version
        else:
            version = files[uri].fingerprint.token
        versions[path_of(spec, uri)] = version
    members: dict[str, list[str]] = defaultdict(list)
    key_of = choose(spec, versions, ["dir:x"] if grouped else []).key_of
    for path, version in versions.items():
        for key in (key_of(path), ALL_FILES):
            members[key] += [f"{path}\t{version}"] if version != "deleted" else []
    by_key = {key: digest(lines) for key, lines in members.items()}
    return {ALL_FILES: "deleted"} | (
        by_key if grouped else by_key | {key_of(p): v for p, v in versions.items()}
    )


@settings(deadline=None)
@given(
    files=FILES,
    ledger=LEDGERS,
    mode=st.sampled_from([SYNC, APPEND]),
    grouped=st.booleans(),
    read=st.booleans(),
)
def test_versions_are_those_of_the_files_one_by_one(
    files: dict[str, int],
    ledger: list[tuple[str, int, int]],
    mode: dict[str, str],
    grouped: bool,
    read: bool,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = write_table(Path(folder), "t", {**mode, "maxFilePartitions": "1" if grouped else "99"})

    def uri(name: str) -> str:
        return f"{spec.input_uri()}/{quote_key(name)}"

    listed = {uri(n): SourceFile(uri(n), Fingerprint(size, 0)) for n, size in files.items()}
    rows = tuple(
        PublishedFile(uri(n), Fingerprint(size, 0), "", 1, 0, "cp1", (), Fingerprint(built, 0).token)
        for n, size, built in ledger
    )
    published = PublishedFiles(files_to_parquet(rows)) if read else rows
    snapshot = Snapshot(1, "t_OFFLINE", "cp1", "SYNC", "", None, "", "", 0, published) if rows else None
    found = SourceRows.beside(spec, FileTable.of(listed).columns, snapshot)
    by_uri = {row.uri: row for row in rows}
    assert set(found) == {path_of(spec, u) for u in listed.keys() | by_uri.keys()}
    assert len(found) == len(set(found))
    partitioning = choose(spec, found, ["dir:x"] if grouped else [])
    assert found.versions(partitioning) == told(spec, listed, by_uri, grouped)
    if snapshot:
        whole = SourceRows.of_ledger(spec, snapshot)
        assert whole.versions(partitioning) == told(
            spec, {u: SourceFile(u, row.fingerprint) for u, row in by_uri.items()}, by_uri, grouped
        )


@pytest.mark.parametrize("sizes", [(1, 63, 64, 65, 1), (1000, 1, 129), (127, 128)])
def test_directories_of_any_size_are_found_whole(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    spec = write_table(tmp_path, "t", {**SYNC, "maxFilePartitions": "1"})
    names = [f"d{n}/{k:05}" for n, size in enumerate(sizes) for k in range(size)]
    names += [f"d{n}/00000x/{k}" for n, size in enumerate(sizes) for k in range(size)] + ["d", "e"]
    files = {
        uri: SourceFile(uri, Fingerprint(1, 0)) for uri in (f"{spec.input_uri()}/{name}" for name in names)
    }
    found = SourceRows.beside(spec, FileTable.of(files).columns, None)
    assert found.versions(choose(spec, found, [])) == told(spec, files, {}, grouped=True)


def test_a_ledger_of_the_first_release_names_no_versions(tmp_path: Path) -> None:
    spec = write_table(tmp_path, "t", dict(SYNC))
    uri = f"{spec.input_uri()}/a"
    row = PublishedFile(uri, Fingerprint(1, 0), "", 1, 0, "cp1", (), Fingerprint(1, 0).token)
    table = pq.read_table(io.BytesIO(files_to_parquet([row]))).drop_columns(["version"])
    sink = io.BytesIO()
    pq.write_table(table, sink)
    snapshot = Snapshot(1, "t", "cp1", "SYNC", "", None, "", "", 0, PublishedFiles(sink.getvalue()))
    whole = SourceRows.of_ledger(spec, snapshot)
    assert whole.versions(choose(spec, whole, []))["a"] == Fingerprint(1, 0).token
