"""The lists of functions."""

from __future__ import annotations

from pinot_assets.expressions import pinot_names, spark_names
from pinot_assets.expressions.pinot_costs import COSTS_OF_PINOT
from pinot_assets.expressions.spark_costs import COSTS_OF_SPARK
from pinot_assets.ingest.spark.reader import SETTINGS


def test_no_function_is_allowed_and_refused() -> None:
    assert not spark_names.ALLOWED & spark_names.REFUSED.keys()
    assert not pinot_names.ALLOWED & pinot_names.REFUSED.keys()
    assert all(map(str.islower, spark_names.ALLOWED | spark_names.REFUSED.keys()))


def test_names_of_pinot_are_as_pinot_looks_them_up() -> None:
    for names in (pinot_names.ALLOWED, pinot_names.REFUSED):
        assert [name for name in names if pinot_names.canonical(name) != name] == []


def test_each_reason_stands_behind_a_name() -> None:
    for reasons in (spark_names.REFUSED, pinot_names.REFUSED):
        assert all(reason and not reason.endswith(".") for reason in reasons.values())


def test_what_reads_files_substitutes_nothing() -> None:
    assert SETTINGS["spark.sql.variable.substitute"] == "false"


def test_what_is_judged_by_its_arguments_may_be_called() -> None:
    assert COSTS_OF_SPARK.judged - spark_names.ALLOWED == {"like"}
    assert COSTS_OF_PINOT.judged - pinot_names.ALLOWED == {"ilike", "regexp", "rlike"}
    assert {name for name in spark_names.ALLOWED if "regexp" in name} <= COSTS_OF_SPARK.judged
    assert {name for name in pinot_names.ALLOWED if "regexp" in name} <= COSTS_OF_PINOT.judged
