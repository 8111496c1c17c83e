"""What a JVM would die of is found before Spark's readers have the file."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pytest

from pinot_assets.core.file_errors import FileTooLarge, Unreadable
from pinot_assets.ingest.contract.build_spec import Query
from pinot_assets.ingest.spark.file_checks import check_sizes
from pinot_assets.ingest.spark.tasks import look_at_file
from pinot_assets.settings import file_limits
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.snapshot.receipt import Failure

BOTH = frozenset(("a", "b"))


def written(path: Path, input_format: str, table: pa.Table) -> Path:
    pq.write_table(table, path) if input_format == "parquet" else paorc.write_table(table, path)
    return path


@pytest.mark.parametrize("input_format", ["parquet", "orc"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_value_that_is_too_large(tmp_path: Path, input_format: str, nested: bool) -> None:
    values = ["x", None, "x" * 3000]
    made = pa.array([None if value is None else [value] for value in values] if nested else values)
    path = written(tmp_path / "x", input_format, pa.table({"a": [1, 2, 3], "b": made}))
    check_sizes(path, input_format, BOTH, FileLimits(value_bytes=3000))
    check_sizes(
        path, input_format, frozenset("a"), FileLimits(value_bytes=2000)
    )  # nothing is read of the other
    with pytest.raises(FileTooLarge, match="column b has a value of 2"):
        check_sizes(path, input_format, BOTH, FileLimits(value_bytes=2000))


def test_many_small_values_are_none_that_is_large(tmp_path: Path) -> None:
    path = written(tmp_path / "x", "parquet", pa.table({"a": [f"value {n}" for n in range(5000)]}))
    check_sizes(path, "parquet", BOTH, FileLimits(value_bytes=2000))


def test_pages_that_unpack_to_far_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_limits, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(file_limits, "RATIO", 50)
    table = pa.table({"a": ["x" * 1000] * 5000})
    pq.write_table(table, tmp_path / "x", use_dictionary=False, compression="zstd")
    with pytest.raises(FileTooLarge, match="more than 50 times its compressed size"):
        check_sizes(tmp_path / "x", "parquet", BOTH, FileLimits())


@pytest.mark.parametrize("input_format", ["parquet", "orc"])
def test_a_damaged_file(tmp_path: Path, input_format: str) -> None:
    (tmp_path / "x").write_bytes(b"PAR1" + b"\0" * 70_000)
    with pytest.raises(Unreadable, match="damaged or incomplete"):
        check_sizes(tmp_path / "x", input_format, BOTH, FileLimits())


def test_what_is_too_large_is_the_files_failure_and_what_is_not_its_version(
    fakes: ModuleType, tmp_path: Path
) -> None:
    order = fakes.make_order(
        tmp_path, input_format="parquet", query=Query("true"), limits=FileLimits(value_bytes=2000)
    )
    written(tmp_path / "in" / "a", "parquet", pa.table({"name": ["x" * 3000]}))
    [task] = fakes.tasks_of(order)
    failed = look_at_file(order, frozenset(("name",)), task)
    assert isinstance(failed, Failure)
    assert failed.code == "TOO_LARGE"
    written(tmp_path / "in" / "a", "parquet", pa.table({"name": ["x" * 1000]}))
    [task] = fakes.tasks_of(order)
    assert look_at_file(order, frozenset(("name",)), task) == task.file.fingerprint
