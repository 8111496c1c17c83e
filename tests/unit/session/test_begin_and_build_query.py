from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pinot_assets.ingest.contract.build_spec import Query
from pinot_assets.session.begin_and_build import _skipped, query_of
from pinot_assets.snapshot.receipt import CODES
from pinot_assets.table_spec.blocks.ingestion import FileIngestion, model_input

DERIVED = {"transformConfigs": [{"columnName": "day", "transformFunction": "toEpochDays(at)"}]}


def ingestion(**block: Any) -> FileIngestion:
    texts = {"inputDirURI": "/in", "output.segment.dir.uri": "/out", "inputFormat": "csv", **block}
    return FileIngestion.model_validate(model_input(texts))


def test_files_are_read_by_the_tasks_themselves_unless_something_needs_spark() -> None:
    assert query_of(ingestion(), {}) is None
    assert query_of(ingestion(engine="arrow"), {"ingestionConfig": {}}) is None


def test_spark_may_be_asked_for_without_an_expression() -> None:
    assert query_of(ingestion(engine="spark"), {}) == Query()


@pytest.mark.parametrize(
    "block", [{"filter": "a > 1"}, {"transforms.b": "upper(a)"}, {"filter": "a > 1", "transforms.b": "a"}]
)
def test_what_the_block_says_reaches_the_builder(block: dict[str, str]) -> None:
    query = query_of(ingestion(**block), {})
    assert query is not None
    assert query.expressions == block


def test_what_pinots_own_transforms_say_reaches_the_builder() -> None:
    query = query_of(ingestion(), {"ingestionConfig": DERIVED})
    assert query is not None
    assert list(query.expressions) == ["transformConfigs of day"]


@pytest.mark.parametrize("code", CODES)
def test_of_all_failures_a_table_may_leave_out_only_files_that_cannot_be_read(code: str) -> None:
    """A file that met a lack of memory, a store or a disk is whole: left out, its rows would be missing."""
    stored: list[object] = []
    staging = SimpleNamespace(put_skipped=lambda *what: stored.append(what))
    run = SimpleNamespace(
        spec=SimpleNamespace(ingestion=ingestion(skipFileIfFailToInitReader="true")),
        staging=staging,
        current_snapshot=lambda: None,
        note=lambda _: None,
    )
    plan = SimpleNamespace(to_build=[SimpleNamespace(ordinal=3)])
    failure = SimpleNamespace(code=code, ordinal=3, uri="file:///in/a.csv", reason="it failed")
    session = SimpleNamespace(id="cp1-00000a", format=1)
    skipped = _skipped(*cast("tuple[Any, Any, Any, Any]", (run, session, plan, failure)))
    assert skipped is bool(stored) is (code == "UNREADABLE")
