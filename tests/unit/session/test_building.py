from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.build.query import Query
from pinot_assets.session.building import query_of
from pinot_assets.spec.ingestion import FileIngestion, model_input

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
