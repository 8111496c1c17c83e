"""What the SQL of a table spec may say, where a spec is checked and where the run compiles or sends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest
from fakes.expressions.hostile import HOSTILE
from fakes.expressions.legitimate import LEGITIMATE
from fakes.expressions.rows import ASSERTED, recorded, sent_of
from pyspark.sql import SparkSession

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import BuildError, SpecError, UnsupportedFeature
from pinot_assets.expressions.syntax import PINOT, read_tokens
from pinot_assets.ingest.contract.build_spec import Query
from pinot_assets.ingest.spark.expression import column_of
from pinot_assets.ingest.spark.query import check_expressions
from pinot_assets.segment.functions.pinot_functions import FUNCTIONS
from pinot_assets.table_spec import Problem
from pinot_assets.table_spec.blocks.assertion import Question

Write = Callable[[JsonObject, str], object]
KEYS = {
    "servers": "audit[0].sql",
    "shadow": "audit[0].sql",
    "filter": "fileIngestion.filter",
    "transforms": "fileIngestion.transforms.carrier",
    "transformConfigs": "table.ingestionConfig.transformConfigs[0].transformFunction",
    "filterConfig": "table.ingestionConfig.filterConfig.filterFunction",
}


def write(whole: JsonObject, place: str, sql: str) -> None:
    """Put an expression into a good spec."""
    if place in ASSERTED:
        whole["audit"] = [{"sql": sql, "expect": ">= 0", "via": place}]
    elif place == "filter":
        whole["fileIngestion"]["filter"] = sql
    elif place == "transforms":
        whole["fileIngestion"]["transforms.carrier"] = sql
    else:
        whole["table"]["ingestionConfig"] |= of_pinot(place, sql)["ingestionConfig"]


def of_pinot(place: str, sql: str) -> JsonObject:
    """A table config with an expression."""
    if place == "filterConfig":
        return {"ingestionConfig": {"filterConfig": {"filterFunction": sql}}}
    made = {"columnName": "time_hour", "transformFunction": sql}
    return {"ingestionConfig": {"transformConfigs": [made]}}


def run(place: str, sql: str) -> None:
    """What the run does with an expression that nobody has looked at, up to Spark or Pinot."""
    if place in ASSERTED:
        before, _, after = sql.partition("flights")
        Question(before, "flights", after, (), (), frozenset(), frozenset()).of("flights_OFFLINE")
    elif place in ("transformConfigs", "filterConfig"):
        Query.of("", {}, of_pinot(place, sql))
    else:
        query = Query(where=sql) if place == "filter" else Query(transforms={"carrier": sql})
        check_expressions(cast(SparkSession, None), query, "flights")  # refused before Spark is needed


@pytest.mark.parametrize(("place", "sql"), HOSTILE)
def test_what_must_not_run_is_refused_by_validate_at_its_line(folder: Any, place: str, sql: str) -> None:
    problems: list[Problem] = folder.problems(change=lambda whole: write(whole, place, sql))
    [problem] = [problem for problem in problems if problem.key == KEYS[place]]
    lines = problem.file.read_text().splitlines()
    assert KEYS[place].rpartition(".")[2].removesuffix("]") in lines[problem.line - 1]


@pytest.mark.parametrize(("place", "sql"), HOSTILE)
def test_what_must_not_run_is_refused_by_the_run_itself(place: str, sql: str) -> None:
    with pytest.raises((SpecError, BuildError, UnsupportedFeature)) as refused:
        run(place, sql)
    assert place not in ("filter", "transforms") or refused.value.what.startswith(f"flights: {place}")


@pytest.mark.parametrize("sql", [sql for place, sql in HOSTILE if place == "filter"])
def test_no_text_becomes_a_column_unchecked(sql: str) -> None:
    with pytest.raises(BuildError, match="an expression "):
        column_of(sql)


def test_the_lists_are_long_enough() -> None:
    assert len({sql for _, sql in HOSTILE}) >= 150
    hostile = Counter(place for place, _ in HOSTILE)  # docs/security.md says so much of each place
    assert hostile.keys() == KEYS.keys()
    assert all(hostile[place] >= 150 for place in ("servers", "shadow", "filter", "transforms"))
    assert all(hostile[place] >= 35 for place in ("transformConfigs", "filterConfig"))
    assert len({sql for _, sql in LEGITIMATE}) >= 150
    assert recorded().keys() == set(LEGITIMATE)


def test_every_function_that_is_translated_is_among_the_legitimate_ones() -> None:
    written = " ".join(sql.lower() for place, sql in LEGITIMATE if place == "transformConfigs")
    signs = {"minus": "distance - "}  # to Pinot's parser it is no function's name
    assert [name for name, _ in FUNCTIONS if signs.get(name, f"{name}(") not in written] == []


@pytest.mark.parametrize(("place", "sql"), LEGITIMATE)
def test_what_people_write_passes(folder: Any, place: str, sql: str) -> None:
    assert folder.problems(change=lambda whole: write(whole, place, sql)) == []


@pytest.mark.parametrize(("place", "sql"), [key for key in LEGITIMATE if key[0] in ASSERTED])
def test_pinot_is_sent_what_it_was_sent_but_for_comments(place: str, sql: str) -> None:
    before, now = recorded()[place, sql], sent_of(place, sql)
    assert [token.text for token in read_tokens(now, PINOT)] == [
        token.text for token in read_tokens(before, PINOT)
    ]
    assert now == before or "--" in before or "/*" in before
    assert "--" not in now
    assert "/*" not in now


@pytest.mark.parametrize(
    ("block", "fix"),
    [
        ({"filter": "upperr(carrier) = 'AA'"}, "did you mean upper?"),
        ({"transforms.carrier": "date_fromat(at, 'yyyy')"}, "did you mean date_format?"),
        ({"transforms.carrier": "nothing_like_it_at_all(at)"}, "use functions of Spark SQL"),
        ({"filter": "`upper`(carrier) = 'A'"}, "write the function's name without quotes"),
    ],
)
def test_a_refusal_names_the_function_and_says_what_can_be_used(
    folder: Any, block: dict[str, str], fix: str
) -> None:
    [problem] = folder.problems(block)
    [(key, text)] = block.items()
    assert problem.key == f"fileIngestion.{key}"
    assert f"calls {text.partition('(')[0]}()" in problem.reason
    assert fix in problem.fix


def test_a_refused_assertion_says_which_function_and_what_can_be_used(folder: Any) -> None:
    def audit(whole: JsonObject) -> None:
        whole["audit"] = [
            {"sql": "SELECT COUNT(*) FROM flights WHERE date_trunk('DAY', time_hour) > 1", "expect": "= 0"},
            {
                "sql": "SELECT AVG(flight) FROM flights WHERE groovy('', '1') = 1",
                "expect": "= 0",
                "via": "shadow",
            },
        ]

    near, groovy = folder.problems(change=audit)
    assert (near.key, near.fix) == ("audit[0].sql", "did you mean datetrunc?")
    assert near.reason == "calls date_trunk(), which is not one of the functions that may be called"
    assert groovy.reason == "calls groovy(), which runs code on Pinot's servers"


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: ingestion(
            whole, transformConfigs=[{"columnName": "flight", "transformFunction": "{}"}]
        ),
        lambda whole: ingestion(whole, filterConfig={"filterFunction": "{}"}),
        lambda whole: ingestion(
            whole, aggregationConfigs=[{"columnName": "distance", "aggregationFunction": "{}"}]
        ),
        lambda whole: ingestion(
            whole, enrichmentConfigs=[{"properties": {"fieldToFunctionMap": {"a": "{}"}}}]
        ),
        lambda whole: whole["schema"]["dimensionFieldSpecs"][0].update(transformFunction="{}"),
        lambda whole: whole["table"].update(query={"expressionOverrideMap": {"carrier": "{}"}}),
        lambda whole: whole["table"].update(query={"expressionOverrideMap": {"{}": "carrier"}}),
    ],
)
@pytest.mark.parametrize("sql", ["Groovy({System.getenv()}, carrier)", "lower('${env:PINOT_PASSWORD}')"])
def test_what_pinot_evaluates_of_a_realtime_table_has_no_code_and_no_variables(
    folder: Any, change: Callable[[JsonObject], object], sql: str
) -> None:
    def filled(whole: JsonObject) -> None:
        change(whole)
        whole |= _with(whole, sql)

    folder.realtime(change=filled)
    problems = folder.check()[1]
    assert [p for p in problems if "runs code on Pinot's servers" in p.reason or "contains ${" in p.reason]
    folder.realtime(change=lambda whole: (change(whole), whole.update(_with(whole, "plus(flight, 1)"))))
    assert folder.check()[1] == []


def test_what_brokers_put_into_queries_has_no_code_either(folder: Any) -> None:
    hidden = ("gro_ovy -- (\n('', 'x')", "GROOVY/* /* */\n('', 'x')", '"groovy" (1)', 'U&"\\0067roovy"(1)')
    for sql in ("groovy('{}', 'x')", *hidden, "'${PINOT_PASSWORD}'"):
        change = {"expressionOverrideMap": {"carrier": sql}}
        [problem] = folder.problems(change=lambda whole, change=change: whole["table"].update(query=change))
        assert problem.key == "table.query.expressionOverrideMap.carrier"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("regexp_extract(carrier, '(a+)+$', 0, '')", "repeats what can itself match in several ways"),
        ("regexp_extract(carrier, carrier, 0, '')", "is not one text"),
        ("repeat(carrier, 1000000000)", "times longer by repeat()"),
        ("repeat(carrier, flight) ? x", "has a ?"),
        ("jsonPathString(carrier, '$[?(@.a =~ /(a+)+$/)]')", "a setting that holds a pattern"),
        ("jsonPathString(carrier, concat('$.', day))", "a setting that is not one text"),
    ],
)
def test_what_pinot_evaluates_of_a_realtime_table_stays_cheap(folder: Any, sql: str, words: str) -> None:
    made = {"columnName": "carrier", "transformFunction": sql}
    folder.realtime(change=lambda whole: ingestion(whole, transformConfigs=[made]))
    [problem] = folder.check()[1]
    assert words in problem.reason


def test_an_environment_variable_in_a_streams_settings_is_no_expression(folder: Any) -> None:
    folder.realtime({"stream": {**STREAM, "sasl.jaas.config": "${TABLE_KAFKA_JAAS_CONFIG}"}})
    assert folder.check()[1] == []


STREAM = {
    "streamType": "kafka",
    "stream.kafka.topic.name": "flights",
    "stream.kafka.broker.list": "127.0.0.1:9092",
}


def ingestion(whole: JsonObject, **settings: Any) -> None:
    whole["table"].setdefault("ingestionConfig", {}).update(settings)


def _with(value: Any, sql: str) -> Any:
    """A value with an expression in place of each `{}` in its texts."""
    if isinstance(value, dict):
        return {_with(key, sql): _with(inner, sql) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with(inner, sql) for inner in value]
    return sql if value == "{}" else value
