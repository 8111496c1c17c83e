"""Expressions that are not whole, as `tables validate` refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from pinot_assets.core.json_object import JsonObject


@pytest.mark.parametrize("key", ["filter", "transforms.carrier"])
@pytest.mark.parametrize(
    "sql", ["upper(carrier", "carrier = 'AA' AND", "CASE WHEN hour > 1 THEN", "carrier, dest"]
)
def test_validate_refuses_it_at_its_line(folder: Any, key: str, sql: str) -> None:
    (problem,) = folder.problems({key: sql})
    assert problem.key == f"fileIngestion.{key}"
    assert "at character " in problem.reason
    assert problem.fix
    assert key in problem.file.read_text().splitlines()[problem.line - 1]


@pytest.mark.parametrize("text", ["", "  ", "-- nothing"])
@pytest.mark.parametrize("key", ["filter", "transforms.carrier"])
def test_validate_refuses_an_empty_one(folder: Any, key: str, text: str) -> None:
    (problem,) = folder.problems({key: text})
    assert problem.key == f"fileIngestion.{key}"
    assert problem.reason == "is empty"


@pytest.mark.parametrize(
    ("change", "key", "says"),
    [
        (
            {"transformConfigs": [{"columnName": "carrier", "transformFunction": "lower(dest"}]},
            "transformConfigs[0].transformFunction",
            "no ) where one was expected",
        ),
        (
            {"filterConfig": {"filterFunction": "flight >"}},
            "filterConfig.filterFunction",
            "an end where a value",
        ),
        ({"filterConfig": {"filterFunction": ""}}, "filterConfig.filterFunction", "an end where a value"),
    ],
)
def test_validate_refuses_a_torn_function_of_pinots(
    folder: Any, change: JsonObject, key: str, says: str
) -> None:
    problems = folder.problems(change=lambda whole: whole["table"]["ingestionConfig"].update(change))
    (problem,) = [problem for problem in problems if problem.key == f"table.ingestionConfig.{key}"]
    assert says in problem.reason


@pytest.mark.parametrize("via", ["servers", "shadow"])
def test_validate_refuses_a_torn_assertion(folder: Any, via: str) -> None:
    sql = "SELECT COUNT(*) FROM flights WHERE carrier IN ('AA',)"
    item = {"sql": sql, "expect": "= 0", "via": via}
    (problem,) = folder.problems(change=lambda whole: whole.update(audit=[item]))
    assert problem.key == "audit[0].sql"
    assert "behind , at character 52, before ) at character 53" in problem.reason


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (
            {"transformConfigs": [{"columnName": "carrier", "transformFunction": "lower(carrier"}]},
            "transformConfigs",
        ),
        ({"filterConfig": {"filterFunction": "flight > "}}, "filterConfig"),
    ],
)
def test_validate_refuses_it_of_a_realtime_table(folder: Any, change: JsonObject, key: str) -> None:
    def torn(whole: JsonObject) -> None:
        whole["table"].setdefault("ingestionConfig", {}).update(change)

    folder.realtime(change=torn)
    (problem,) = folder.check()[1]
    assert f"ingestionConfig.{key}" in problem.key
    assert "at character " in problem.reason
