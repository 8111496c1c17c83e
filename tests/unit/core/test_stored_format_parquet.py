"""Parquet in memory is read as pyarrow reads it, without its thread pools."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pinot_assets.core.stored_format import parquet_table

TABLE = pa.table({"a": ["x", "y"], "b": [[{"c": 1}], [{"c": 2}]]}).replace_schema_metadata({"k": "v"})


def stored(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def test_reads_what_was_written_with_its_metadata() -> None:
    read = parquet_table(stored(TABLE))
    assert read.equals(TABLE)
    assert read.schema.metadata == {b"k": b"v"}


def test_columns_by_name() -> None:
    assert parquet_table(stored(TABLE), ["b.list.element.c"]).column_names == ["b"]
    assert parquet_table(stored(TABLE), []).column_names == []


LARGE = "x" * 1_000_000
KINDS = {
    "text": pa.string(),
    "large text": pa.large_string(),
    "bytes": pa.binary(),
    "list": pa.list_(pa.string()),
    "outputs": pa.list_(pa.struct([("uri", pa.string()), ("rows", pa.int64())])),
    "map": pa.map_(pa.string(), pa.string()),
}


def _repeated(kind: str, value: str, rows: int) -> pa.Table:
    one = {"list": [value], "outputs": [{"uri": value, "rows": 1}], "map": [("k", value)]}.get(kind, value)
    return pa.table({"a": pa.array([one] * rows, KINDS[kind])})


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_stands_once_in_the_file_and_in_many_rows_counts_for_each(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a megabyte in a million rows is an object of a kilobyte, and would be a terabyte of memory."""
    monkeypatch.setenv("PINOT_ASSETS_MAX_OBJECT_MIB", "1")
    bomb = stored(_repeated(kind, LARGE, 64))
    assert len(bomb) < 100_000
    with pytest.raises(ValueError, match="some of which it repeats"):
        parquet_table(bomb)
    assert parquet_table(bomb, []).num_columns == 0
    for value, rows in ((LARGE, 4), ("y", 100_000)):
        table = _repeated(kind, value, rows)
        read = parquet_table(stored(table))
        assert read.equals(table.cast(read.schema))
        assert kind == "large text" or read.schema == table.schema


def test_values_of_one_row_count_as_rows_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pinot_assets.core.stored_format.MOST_ROWS", 999)
    with pytest.raises(ValueError, match="1 rows of"):
        parquet_table(stored(pa.table({"a": [[1] * 1000]})))


def test_no_thread_is_started() -> None:
    """One that is still being started at the end of a short command aborts it."""
    program = """
        import psutil
        from pinot_assets.session.values.state import Mode
        from pinot_assets.session.stores.plan_parquet import plan_from_parquet, plan_to_parquet
        from pinot_assets.session.values.plan import Plan
        from pinot_assets.snapshot.published_files import PublishedFile, PublishedFiles, files_to_parquet
        from pinot_assets.snapshot.receipt import Fingerprint

        file = PublishedFile("file:///a", Fingerprint(1, 1), "h", 1, 0, "cp1", ())
        files = PublishedFiles(files_to_parquet([file]))
        plan = plan_to_parquet(Plan("cp1", 0, Mode.SYNC, (), (), {}, ""))
        before = {t.id for t in psutil.Process().threads()}
        files.versions, files.tokens(), files.hashes(), files.names(), list(files), plan_from_parquet(plan)
        assert {t.id for t in psutil.Process().threads()} == before
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
