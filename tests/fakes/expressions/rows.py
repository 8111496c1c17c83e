"""What expressions give: SQL that Pinot is sent, and rows that Spark makes of a few rows of every kind.

`recorded_expressions.json` has it as it was before expressions were checked. It was written by running this
file on that commit, with Spark 4.3: `PYTHONPATH=<that commit>:tests python -m fakes.expressions.rows`.
"""

from __future__ import annotations

import json
from pathlib import Path

from fakes.expressions.legitimate import LEGITIMATE
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from pinot_assets.ingest.spark.reader import reading_session, use_in_thread
from pinot_assets.segment.config.transforms import translate
from pinot_assets.table_spec.blocks.assertion_sql import read_question, read_shadow_question

Key = tuple[str, str]
"""Place and expression."""
AT_A_TIME = 40
ASSERTED = ("servers", "shadow")
RECORDED = Path(__file__).with_name("recorded_expressions.json")

_COLUMNS = "carrier, flight, distance, ms, at, day, payload, tags, p, `from`, `values`, `e``f`"
_ROWS = (
    "('AA', 7, 1.5D, 1577836799999L, timestamp_millis(1577836799999L), '2020-02-29', '{\"a\": {\"b\": 5}}', "
    "array('a', 'b', 'a'), named_struct('q', 0, 'city', 'Rome'), 'a', 1, '3')",
    "('UA ', -8, -0.25D, 0L, timestamp_millis(0L), '1999-12-31', '{}', array(), "
    "named_struct('q', 5, 'city', null), 'b', 2, '4')",
    "('Stra\u00dfe a', 65535, 1e6D, 253402300799999L, timestamp_millis(-86400001L), '0001-01-01', '[1]', "
    "array('x', null), null, null, null, null)",
    "(null, null, null, null, null, null, null, null, null, 'c', 3, '3')",
)


def frame_of(session: SparkSession) -> tuple[SparkSession, DataFrame]:
    """The rows, on a session that reads as that of a build, which counts in this thread from now on."""
    own = reading_session(session)
    use_in_thread(own)
    return own, own.sql(f"SELECT * FROM VALUES {', '.join(_ROWS)} AS t({_COLUMNS})")


def rows_of(frame: DataFrame, columns: dict[Key, Column]) -> dict[Key, list[str]]:
    """Each column's value in each row, as JSON: equal texts are equal values of one type."""
    by_key: dict[Key, list[str]] = {}
    keys = list(columns)
    for part in (keys[at : at + AT_A_TIME] for at in range(0, len(keys), AT_A_TIME)):
        rows = frame.select(*[F.to_json(F.struct(columns[key].alias("x"))) for key in part]).collect()
        by_key |= {key: [row[n] for row in rows] for n, key in enumerate(part)}
    return by_key


def sent_of(place: str, sql: str) -> str:
    """What Pinot is sent of an assertion."""
    read = read_question if place == "servers" else read_shadow_question
    return read(sql).of("flights_OFFLINE")


def spark_sql_of(place: str, sql: str) -> str:
    """Spark SQL of an expression of files."""
    return translate(sql).sql if place in ("transformConfigs", "filterConfig") else sql


def recorded() -> dict[Key, str | list[str]]:
    """What each legitimate expression gave: text that was sent, or Spark's rows."""
    return {(place, sql): gave for place, sql, gave in json.loads(RECORDED.read_text())}


def _record(session: SparkSession) -> None:
    _, frame = frame_of(session)
    of_files = [(place, sql) for place, sql in LEGITIMATE if place not in ASSERTED]
    gave: dict[Key, str | list[str]] = {
        (place, sql): sent_of(place, sql) for place, sql in LEGITIMATE if place in ASSERTED
    }
    gave |= rows_of(frame, {key: F.expr(spark_sql_of(*key)) for key in of_files})
    lines = (json.dumps([*key, value]) for key, value in gave.items())
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    from pinot_assets.ingest.spark.jvm import local_session

    _record(local_session("record", 1))
