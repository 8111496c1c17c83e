"""Parquet in memory is read as pyarrow reads it, without its thread pools."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap

import pyarrow as pa
import pyarrow.parquet as pq

from pinot_assets.parquet_bytes import table_of

TABLE = pa.table({"a": ["x", "y"], "b": [[{"c": 1}], [{"c": 2}]]}).replace_schema_metadata({"k": "v"})


def stored(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def test_reads_what_was_written_with_its_metadata() -> None:
    read = table_of(stored(TABLE))
    assert read.equals(TABLE)
    assert read.schema.metadata == {b"k": b"v"}


def test_columns_by_name() -> None:
    assert table_of(stored(TABLE), ["b.list.element.c"]).column_names == ["b"]
    assert table_of(stored(TABLE), []).column_names == []


def test_no_thread_is_started() -> None:
    """One that is still being started at the end of a short command aborts it."""
    program = """
        import psutil
        from pinot_assets.session.model import Mode
        from pinot_assets.session.plan import Plan, plan_from_parquet, plan_to_parquet
        from pinot_assets.snapshot.manifest import PublishedFile, PublishedFiles, files_to_parquet
        from pinot_assets.source.fingerprint import Fingerprint

        file = PublishedFile("file:///a", Fingerprint(1, 1), "h", 1, 0, "cp1", ())
        files = PublishedFiles(files_to_parquet([file]))
        plan = plan_to_parquet(Plan("cp1", 0, Mode.SYNC, (), (), {}, ""))
        before = {t.id for t in psutil.Process().threads()}
        files.versions, files.tokens(), files.hashes(), files.names(), list(files), plan_from_parquet(plan)
        assert {t.id for t in psutil.Process().threads()} == before
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
