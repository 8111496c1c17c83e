"""Pinot's transformConfigs and filterConfig: the order of functions, and refusals that name their place."""

from __future__ import annotations

from pinot_assets.core.json_object import JsonObject
from pinot_assets.segment.config.transforms import Transforms, read_transforms


def config(*functions: tuple[str, str], where: str | None = None) -> JsonObject:
    transforms = [{"columnName": column, "transformFunction": text} for column, text in functions]
    ingestion: JsonObject = {"transformConfigs": transforms}
    if where is not None:
        ingestion["filterConfig"] = {"filterFunction": where}
    return {"ingestionConfig": ingestion}


def test_nothing_is_nothing() -> None:
    assert read_transforms({}) == Transforms()
    assert (
        read_transforms({"ingestionConfig": {"transformConfigs": None, "filterConfig": {}}}) == Transforms()
    )


def test_a_function_comes_after_those_whose_columns_it_reads() -> None:
    found = read_transforms(config(("c", "upper(b)"), ("b", "concat(a, 'x')"), ("a", "lower(file)")))
    assert [column for column, _ in found.derived] == ["a", "b", "c"]
    assert found.problems == ()


def test_a_cycle_is_refused_as_pinot_does() -> None:
    [problem] = read_transforms(config(("a", "upper(b)"), ("b", "lower(a)"))).problems
    assert "a cycle" in problem
    assert "TRANSFORM_INVALID" in problem
    [own] = read_transforms(config(("a", "upper(a)"))).problems
    assert "a → a" in own


def test_refusals_name_column_function_and_way_out() -> None:
    groovy, other, where = read_transforms(
        config(("g", "Groovy({x}, x)"), ("j", "jsonFormat(x)"), where="Groovy({a > 1}, a)")
    ).problems
    assert groovy.startswith(
        "ingestionConfig.transformConfigs: column g: Groovy, a script, in Groovy({x}, x)"
    )
    assert "GROOVY_REFUSED" in groovy
    assert "write transforms and filter in fileIngestion" in groovy
    assert "column j: the function jsonformat of 1 value, " in other
    assert "TRANSFORM_NOT_TRANSLATED" in other
    assert where.startswith("ingestionConfig.filterConfig: Groovy")


def test_two_functions_of_one_column_and_a_filter_that_is_no_condition() -> None:
    twice = read_transforms(config(("a", "upper(b)"), ("a", "lower(b)")))
    assert [p for p in twice.problems if "two functions" in p]
    [number] = read_transforms(config(where="year(a)")).problems
    assert "neither true nor false" in number
