"""The Python end of a file that Spark reads, without Spark: a blank file, and columns that are filled."""

from __future__ import annotations

import json
import pickle
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, Query
from pinot_assets.ingest.spark.tasks import CORRUPT, END, MADE, ROW, confirm_blank, write_file
from pinot_assets.settings.file_limits import FileLimits
from pinot_assets.snapshot.receipt import Failure, Receipt


@pytest.fixture
def build_spec(fakes: ModuleType, tmp_path: Path) -> BuildSpec:
    made: BuildSpec = fakes.make_order(tmp_path, query=Query(where="false"), input_format="json")
    return made


def task_of(fakes: ModuleType, build_spec: BuildSpec, path: Path, text: str) -> FileTask:
    path.write_text(text)
    [task] = fakes.tasks_of(build_spec)
    assert isinstance(task, FileTask)
    return task


@pytest.mark.parametrize("text", ["", "\n", " \n\n"])
def test_a_blank_file_is_a_receipt_of_no_rows(
    fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path, text: str
) -> None:
    task = task_of(fakes, build_spec, tmp_path / "in" / "a.json", text)
    result = confirm_blank(build_spec, task.file.fingerprint, task)
    assert isinstance(result, Receipt), result
    assert (result.rows, result.outputs) == (0, ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            json.dumps([{"name": "a"}, {"name": "b"}]),
            "JSON array",
        ),  # Hadoop leaves out a line that is too long
        ('{"name": "a"}\n{"name": "b"}\n', "finds no columns in the file, though it has rows"),
        ("{}\n{}\n", "finds no columns in the file, though it has rows"),
    ],
)
@pytest.mark.parametrize("limit", [None, "100%"])
def test_rows_that_spark_does_not_see_are_never_published(
    fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path, text: str, why: str, limit: str | None
) -> None:
    build_spec = replace(build_spec, max_bad_rows=limit)
    task = task_of(fakes, build_spec, tmp_path / "in" / "a.json", text)
    result = confirm_blank(build_spec, task.file.fingerprint, task)
    assert isinstance(result, Failure), result
    assert result.code == "UNREADABLE"
    assert why in result.reason
    assert [path for path in (tmp_path / "staging").rglob("*") if path.is_file()] == []


def test_bad_rows_that_spark_does_not_see_are_not_put_aside(
    fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    build_spec = replace(build_spec, max_bad_rows="100%")
    task = task_of(fakes, build_spec, tmp_path / "in" / "a.json", "7\n8\n")
    result = confirm_blank(build_spec, task.file.fingerprint, task)
    assert isinstance(result, Failure), result


def test_a_file_that_was_empty_and_is_written_meanwhile_is_read_again(
    fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    task = task_of(fakes, build_spec, tmp_path / "in" / "a.json", "")
    (tmp_path / "in" / "a.json").write_text('{"name": "a"}\n')
    result = confirm_blank(build_spec, task.file.fingerprint, task)
    assert isinstance(result, Failure), result
    assert result.code == "CHANGED_DURING_READ"


def stream(**columns: pa.Array) -> Iterator[pa.RecordBatch]:
    """What Spark hands over: the rows in one batch, then its mark."""
    rows = len(next(iter(columns.values())))
    own = {
        ROW: pa.array([*range(rows), None], pa.int64()),
        CORRUPT: pa.nulls(rows + 1, pa.string()),
        END: pa.array([False] * rows + [True]),
    }
    whole = {name: pa.concat_arrays([array, pa.nulls(1, array.type)]) for name, array in columns.items()}
    yield pa.record_batch(whole | own)


def written(build_spec: BuildSpec, task: FileTask, **columns: pa.Array) -> Receipt | Failure:
    arriving = [*stream(**columns)]
    names = arriving[0].schema.names
    numbered = (batch.rename_columns([*map(str, range(len(names)))]) for batch in arriving)
    [batch] = write_file(build_spec, task, task.file.fingerprint, (), tuple(names), numbered)
    result: Receipt | Failure = pickle.loads(batch.column(0)[0].as_py())
    return result


def test_what_stands_in_the_file_is_kept_to_the_last_digit_where_a_column_is_filled(
    fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    """Beyond 2^53 a DOUBLE would round it: the two never have one type before they are LONGs."""
    task = task_of(fakes, build_spec, tmp_path / "in" / "a.json", '{"count": 0}\n')
    result = written(
        build_spec,
        task,
        count=pa.array([2**53 + 1, None, -(2**63) + 1, None], pa.int64()),
        **{f"{MADE}count": pa.array([None, 3.0, None, None], pa.float64())},
    )
    assert isinstance(result, Receipt), result
    properties = properties_of(tmp_path, result.outputs[0].segment)
    assert properties["column.count.minValue"] == str(-(2**63) + 1)
    assert properties["column.count.maxValue"] == str(2**53 + 1)
    assert properties["column.count.cardinality"] == "4"  # the null is Pinot's default


def properties_of(root: Path, segment: str) -> dict[str, str]:
    with tarfile.open(root / "staging" / "segments" / f"{segment}.tar.gz") as archive:
        member = archive.extractfile(f"{segment}/v3/metadata.properties")
        assert member is not None
        lines = member.read().decode().splitlines()
    return dict(line.split(" = ", 1) for line in lines if " = " in line)


def test_a_made_value_that_does_not_fit_names_its_function(
    fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    task = task_of(fakes, build_spec, tmp_path / "in" / "a.json", '{"count": 0}\n')
    made = {f"{MADE}count": pa.array([None, "x"])}
    result = written(build_spec, task, count=pa.array([1, None], pa.int64()), **made)
    assert isinstance(result, Failure), result
    assert result.reason == "column #transformConfigs of count, row 2: 'x' cannot become LONG"
    fraction = {f"{MADE}name": pa.array([1.5])}
    result = written(build_spec, task, **fraction)
    assert isinstance(result, Failure), result
    assert "double cannot become STRING" in result.reason


def test_lists_are_filled_as_they_are(fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path) -> None:
    schema = {
        "schemaName": "names",
        "dimensionFieldSpecs": [{"name": "name", "dataType": "STRING", "singleValueField": False}],
    }
    config = {**build_spec.table_config, "segmentsConfig": {"replication": "1"}}
    build_spec = replace(build_spec, schema=schema, table_config=config)
    task = task_of(fakes, build_spec, tmp_path / "in" / "a.json", '{"name": ["a"]}\n')
    made = {f"{MADE}name": pa.array([None, "c"])}
    result = written(build_spec, task, name=pa.array([["a", "b"], None]), **made)
    assert isinstance(result, Receipt), result
    assert properties_of(tmp_path, result.outputs[0].segment)["column.name.totalNumberOfEntries"] == "3"


def test_a_value_that_is_too_large_is_refused_as_by_the_direct_reader(
    fakes: ModuleType, build_spec: BuildSpec, tmp_path: Path
) -> None:
    build_spec = replace(build_spec, limits=FileLimits(value_bytes=1000))
    task = task_of(fakes, build_spec, tmp_path / "in" / "a.json", '{"name": "x"}\n')
    result = written(build_spec, task, name=pa.array(["x" * 1001]))
    assert isinstance(result, Failure), result
    assert result.code == "TOO_LARGE"
