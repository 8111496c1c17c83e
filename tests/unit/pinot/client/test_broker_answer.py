from __future__ import annotations

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.broker_answer import BrokerAnswer, NoResult, QueryException, message_text

URL = "http://broker:8099"
TABLE: JsonObject = {
    "dataSchema": {"columnNames": ["a", "b"], "columnDataTypes": ["STRING", "LONG"]},
    "rows": [["x", 1], [None, 2]],
}


def answer(**fields: object) -> BrokerAnswer:
    return BrokerAnswer.read(
        URL, {"resultTable": TABLE, **fields}, lambda text: text.replace("s3cret", "***")
    )


def test_all_that_a_reply_says() -> None:
    whole = answer(
        numServersQueried=2,
        numServersResponded=2,
        numSegmentsQueried=3,
        numDocsScanned=4,
        totalDocs=5,
        timeUsedMs=6,
        exceptions=[],
    )
    assert (whole.columns, whole.types, whole.rows) == (
        ("a", "b"),
        ("STRING", "LONG"),
        (("x", 1), (None, 2)),
    )
    assert (whole.servers, whole.servers_answered, whole.segments) == (2, 2, 3)
    assert (whole.docs_scanned, whole.total_docs, whole.time_ms) == (4, 5, 6)
    assert whole.trouble is None


def test_rows_of_a_part_are_kept_beside_what_is_missing() -> None:
    part = answer(
        numServersQueried=2,
        numServersResponded=1,
        exceptions=[{"errorCode": 427, "message": "1 servers not responded"}],
    )
    assert len(part.rows) == 2
    assert part.exceptions == (QueryException(427, "1 servers not responded"),)
    assert part.trouble is not None
    assert "partial" in part.trouble.what


def test_an_empty_answer_and_none_are_two() -> None:
    empty = answer(resultTable={**TABLE, "rows": []})
    assert (empty.has_result, empty.rows, empty.trouble) == (True, (), None)
    none = answer(resultTable=None)
    assert (none.has_result, none.columns, none.trouble) == (False, (), None)


@pytest.mark.parametrize("code", [190, 410])
def test_a_table_that_is_not_there(code: int) -> None:
    trouble = answer(resultTable=None, exceptions=[{"errorCode": code, "message": "no"}]).trouble
    assert isinstance(trouble, NoResult)


@pytest.mark.parametrize(
    "fields",
    [
        {"resultTable": {**TABLE, "rows": [["x"]]}},
        {"resultTable": {**TABLE, "rows": "text"}},
        {"resultTable": {"dataSchema": {"columnNames": ["a"]}, "rows": []}},
        {"resultTable": {"dataSchema": {"columnNames": ["a"], "columnDataTypes": []}, "rows": []}},
        {"exceptions": "text"},
        {"numServersQueried": "many"},
    ],
)
def test_a_reply_of_another_shape_is_one_error(fields: JsonObject) -> None:
    with pytest.raises(PinotError, match="cannot be read"):
        answer(**fields)


def test_secrets_are_not_repeated() -> None:
    told = answer(exceptions=[{"errorCode": 1, "message": "refused s3cret"}])
    assert told.exceptions[0].message == "refused ***"


PARSING = (
    "SQLParsingError:\n"
    "org.apache.pinot.sql.parsers.SqlCompilationException: Caught exception while parsing query: SELEC\n"
    "\tat org.apache.pinot.sql.parsers.CalciteSqlParser.compile(CalciteSqlParser.java:136)\n"
    "...\n"
    "Caused by: org.apache.calcite.runtime.CalciteContextException: From line 1: Non-query expression\n"
    "\tat java.base/java.lang.reflect.Constructor.newInstance(Constructor.java:500)\n"
    "Caused by: org.apache.calcite.runtime.CalciteException: Non-query expression\n"
)
"""As 0.11.0 answers."""


def test_a_stack_trace_is_told_in_words() -> None:
    assert message_text(PARSING) == (
        "SQLParsingError: Caught exception while parsing query: SELEC; From line 1: Non-query expression"
    )
    assert message_text("TableDoesNotExistError") == "TableDoesNotExistError"
    assert len(message_text("x" * 10_000)) == 600
