"""What becomes of a file in which Spark finds nothing: only one that is blank indeed is published as such."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from pinot_assets.build import BuildOrder, FileTask
from pinot_assets.build.query import Query
from pinot_assets.build.spark_rows import ConfirmBlank
from pinot_assets.session.receipt import Failure, Receipt


@pytest.fixture
def order(fakes: ModuleType, tmp_path: Path) -> BuildOrder:
    made: BuildOrder = fakes.make_order(tmp_path, query=Query(where="false"), input_format="json")
    return made


def task_of(fakes: ModuleType, order: BuildOrder, path: Path, text: str) -> FileTask:
    path.write_text(text)
    [task] = fakes.tasks_of(order)
    assert isinstance(task, FileTask)
    return task


@pytest.mark.parametrize("text", ["", "\n", " \n\n"])
def test_a_blank_file_is_a_receipt_of_no_rows(
    fakes: ModuleType, order: BuildOrder, tmp_path: Path, text: str
) -> None:
    task = task_of(fakes, order, tmp_path / "in" / "a.json", text)
    result = ConfirmBlank(order, task.file.fingerprint)(task)
    assert isinstance(result, Receipt), result
    assert (result.rows, result.outputs) == (0, ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (json.dumps([{"name": "a"}, {"name": "b"}]), "JSON array"),  # Hadoop leaves out a line that is too long
        ('{"name": "a"}\n{"name": "b"}\n', "finds no columns in the file, though it has rows"),
        ("{}\n{}\n", "finds no columns in the file, though it has rows"),
    ],
)
@pytest.mark.parametrize("limit", [None, "100%"])
def test_rows_that_spark_does_not_see_are_never_published(
    fakes: ModuleType, order: BuildOrder, tmp_path: Path, text: str, why: str, limit: str | None
) -> None:
    order = replace(order, max_bad_rows=limit)
    task = task_of(fakes, order, tmp_path / "in" / "a.json", text)
    result = ConfirmBlank(order, task.file.fingerprint)(task)
    assert isinstance(result, Failure), result
    assert result.code == "UNREADABLE"
    assert why in result.reason
    assert [path for path in (tmp_path / "staging").rglob("*") if path.is_file()] == []


def test_bad_rows_that_spark_does_not_see_are_not_put_aside(
    fakes: ModuleType, order: BuildOrder, tmp_path: Path
) -> None:
    order = replace(order, max_bad_rows="100%")
    task = task_of(fakes, order, tmp_path / "in" / "a.json", "7\n8\n")
    result = ConfirmBlank(order, task.file.fingerprint)(task)
    assert isinstance(result, Failure), result


def test_a_file_that_was_empty_and_is_written_meanwhile_is_read_again(
    fakes: ModuleType, order: BuildOrder, tmp_path: Path
) -> None:
    task = task_of(fakes, order, tmp_path / "in" / "a.json", "")
    (tmp_path / "in" / "a.json").write_text('{"name": "a"}\n')
    result = ConfirmBlank(order, task.file.fingerprint)(task)
    assert isinstance(result, Failure), result
    assert result.code == "CHANGED_DURING_READ"
