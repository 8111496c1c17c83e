"""The lists of functions."""

from __future__ import annotations

from pinot_assets.expressions import pinot, spark
from pinot_assets.expressions.pinot import COSTS_OF_PINOT
from pinot_assets.expressions.spark import COSTS_OF_SPARK
from pinot_assets.ingest.spark.reader import SETTINGS


def test_no_function_is_allowed_and_refused() -> None:
    assert not spark.ALLOWED & spark.REFUSED.keys()
    assert not pinot.ALLOWED & pinot.REFUSED.keys()
    assert all(map(str.islower, spark.ALLOWED | spark.REFUSED.keys()))


def test_names_of_pinot_are_as_pinot_looks_them_up() -> None:
    for names in (pinot.ALLOWED, pinot.REFUSED):
        assert [name for name in names if pinot.canonical(name) != name] == []


def test_each_reason_stands_behind_a_name() -> None:
    for reasons in (spark.REFUSED, pinot.REFUSED):
        assert all(reason and not reason.endswith(".") for reason in reasons.values())


def test_what_reads_files_substitutes_nothing() -> None:
    assert SETTINGS["spark.sql.variable.substitute"] == "false"


def test_what_is_judged_by_its_arguments_may_be_called() -> None:
    assert COSTS_OF_SPARK.judged - spark.ALLOWED == {"like"}
    assert COSTS_OF_PINOT.judged - pinot.ALLOWED == {"ilike", "regexp", "rlike"}
    assert {name for name in spark.ALLOWED if "regexp" in name} <= COSTS_OF_SPARK.judged
    assert {name for name in pinot.ALLOWED if "regexp" in name} <= COSTS_OF_PINOT.judged
