"""Trouble of the machine is never taken for a damaged file."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pytest

from pinot_assets.core.file_errors import TypeMismatch, Unreadable
from pinot_assets.errors import SourceError
from pinot_assets.ingest.contract.build_spec import BuildSpec
from pinot_assets.ingest.contract.failures import tells_of_memory, trouble_code
from pinot_assets.ingest.formats.binary_formats import damaged
from pinot_assets.ingest.task import build_file, build_from
from pinot_assets.snapshot.receipt import Failure

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), "OUT_OF_MEMORY"),
        (pa.ArrowMemoryError("malloc of size 629145664 failed"), "OUT_OF_MEMORY"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "OUT_OF_MEMORY"),
        (Exception("DataFusion error: Resources exhausted: Failed to allocate"), "OUT_OF_MEMORY"),
        (Exception("DataFusion error: Arrow error: External error: out of memory"), "OUT_OF_MEMORY"),
        (
            Exception("DataFusion error: Arrow error: Io error: Cannot allocate memory (os error 12)"),
            "OUT_OF_MEMORY",
        ),
        (Exception("DataFusion error: Arrow error: Parser error: it says: out of memory"), None),
        (FULL, "MACHINE"),
        (pa.ArrowException("Unknown error: Failed to launch worker thread: Resource"), "MACHINE"),
        (RuntimeError("can't start new thread"), "MACHINE"),
        (pa.ArrowInvalid("Parquet magic bytes not found"), None),
        (OSError("Invalid: cut short"), None),
        # What a file holds says nothing of the machine.
        (TypeMismatch("column a, row 2: 'java.lang.OutOfMemoryError' cannot become INT"), None),
        (pa.ArrowInvalid("java.lang.OutOfMemoryError"), None),
    ],
)
def test_what_is_to_blame(error: Exception, code: str | None) -> None:
    assert trouble_code(error) == code


def test_a_cause_counts_however_it_was_wrapped() -> None:
    wrapped = Unreadable("the Parquet file is damaged or incomplete")
    wrapped.__cause__ = pa.ArrowMemoryError("malloc failed")
    assert trouble_code(wrapped) == "OUT_OF_MEMORY"
    within = Unreadable("the Parquet file is damaged or incomplete")
    within.__context__ = wrapped  # as of one raised in an except block
    assert trouble_code(within) == "OUT_OF_MEMORY"


@pytest.mark.parametrize(
    "text",
    [
        "Caused by: java.lang.OutOfMemoryError: Java heap space",
        "x.cc:40:  Check failed: _s.ok() Bad status: Out of memory: malloc of size 3826304 failed",
        "x\nmemory allocation of 34359738368 bytes failed\n",
        "terminate called\n  what():  std::bad_alloc",
    ],
)
def test_words_of_memory(text: str) -> None:
    assert tells_of_memory(text)


@pytest.mark.parametrize("error", [pa.ArrowMemoryError("malloc failed"), FULL])
def test_a_library_that_lacks_memory_or_disk_does_not_make_a_file_damaged(error: Exception) -> None:
    with pytest.raises(type(error)), damaged("Parquet"):
        raise error


def _failure(build_spec: BuildSpec, fakes: ModuleType, error: Exception) -> Failure:
    def rows(*_: Any) -> Iterator[pa.Table]:
        raise error
        yield

    result = build_from(build_spec, fakes.tasks_of(build_spec)[0], rows)
    assert isinstance(result, Failure)
    return result


def test_out_of_memory_is_a_failure_of_its_own_that_says_what_to_do(
    fakes: ModuleType, tmp_path: Path
) -> None:
    order = fakes.make_order(tmp_path)
    fakes.write_names(tmp_path / "in" / "a.csv", 2)
    failure = _failure(order, fakes, pa.ArrowMemoryError("malloc of size 629145664 failed"))
    assert failure.code == "OUT_OF_MEMORY"
    assert "malloc of size 629145664 failed" in failure.reason
    assert "maxNumRecordsPerSegment" in failure.reason
    assert "PINOT_ASSETS_WORKER_MEMORY" in failure.reason
    assert _failure(order, fakes, FULL).code == "MACHINE"
    error = SourceError("Cannot copy")
    error.__cause__ = FULL
    assert _failure(order, fakes, error).code == "STORE"


def write_avro(path: Path, name: str) -> None:
    fields = [
        ("name", "string"),
        ("count", "int"),
        ("at", {"type": "long", "logicalType": "timestamp-millis"}),
    ]
    schema = {"type": "record", "name": "r", "fields": [{"name": n, "type": kind} for n, kind in fields]}
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"name": name, "count": 1, "at": 1_600_000_000_000}], "deflate")


@pytest.mark.parametrize("input_format", ["avro", "csv", "json", "parquet", "orc"])
def test_no_reader_takes_a_lack_of_memory_for_a_damaged_file(
    fakes: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, input_format: str
) -> None:
    order = replace(fakes.make_order(tmp_path), input_format=input_format)
    table = pa.table({"name": ["a"], "count": [1], "at": pa.array([0], pa.timestamp("ms"))})
    path = tmp_path / "in" / "a"
    write = {
        "avro": lambda: write_avro(path, "a"),
        "csv": lambda: path.write_text("name,count,at\na,1,0\n"),
        "json": lambda: path.write_text('{"name":"a","count":1,"at":0}\n'),
        "parquet": lambda: pq.write_table(table, path),
        "orc": lambda: paorc.write_table(table, path),
    }
    write[input_format]()

    def fail(*_: Any, **__: Any) -> None:
        raise pa.ArrowMemoryError("malloc failed")

    for place in (
        "datafusion.SessionContext.read_avro",
        "pyarrow.csv.open_csv",
        "pyarrow.json.read_json",
        "pyarrow.parquet.ParquetFile.iter_batches",
        "pyarrow.orc.ORCFile.read_stripe",
    ):
        monkeypatch.setattr(place, fail)
    result = build_file(order, fakes.tasks_of(order)[0])
    assert isinstance(result, Failure)
    assert result.code == "OUT_OF_MEMORY"


LITTLE_MEMORY = """
import sys
from pathlib import Path
import pyarrow as pa
from pinot_assets.ingest.contract.accepted_rows import BadRowPolicy, TargetSchema
from pinot_assets.ingest.formats.read import read_batches
from pinot_assets.ingest.contract.failures import trouble_code
from pinot_assets.core.this_machine import limit_memory

def taken():
    return int(Path("/proc/self/status").read_text().partition("VmData:")[2].split()[0]) << 10

limit_memory(taken() + (int(sys.argv[1]) << 20))
wanted = TargetSchema(pa.schema([("name", pa.string())]))
try:
    for table in read_batches(Path(sys.argv[2]), wanted, "avro", reader={}, verdicts=BadRowPolicy()):
        print(table.num_rows)
except Exception as error:
    print(trouble_code(error))
"""


@pytest.mark.parametrize("free", [10, 60, 110], ids=["to load the library", "for its threads", "to unpack"])
def test_a_worker_with_too_little_memory_for_avro_says_so(tmp_path: Path, free: int) -> None:
    """Where the library's threads could not start it waited for ever."""
    write_avro(tmp_path / "a", "a" * (60 << 20))
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY, str(free), str(tmp_path / "a")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "OUT_OF_MEMORY\n", done.stderr
