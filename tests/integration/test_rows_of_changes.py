"""Changes that only the rows show: the same file, read under the spec of before and under that of now."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from fakes.builder import make_order, tasks_of
from oracle.spec_change_kinds import KINDS, VALUES, Kind, Side
from pyspark.sql import SparkSession

from pinot_assets.ingest.contract.build_spec import BuildSpec, Query
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.jvm import local_session
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.table_spec.changes.spec_changes import Verdict

pytestmark = pytest.mark.spark

COLUMNS: Final = ("name", "city", "code", "clicks", "amount", "day")
BY_ROWS: Final = [kind for kind in KINDS if kind.by_rows]
ALIKE: Final = [
    kind
    for kind in KINDS
    if kind.verdict == Verdict.NOTHING
    and kind.before.recipe.read != kind.after.recipe.read
    and kind.before.schema == kind.after.schema
    and kind.after.ingestion.input_format == "csv"
    and kind.after.ingestion.on_missing_column == "null"  # the file has not all columns
]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    started = local_session("changes of a spec", 2)
    yield started
    started.stop()


def order(root: Path, side: Side, staging: str) -> BuildSpec:
    """What builds the file under this spec: the same file each time, because a segment names it."""
    ingestion = side.ingestion
    made = make_order(
        root,
        table="t",
        schema=side.schema,
        table_config=side.config,
        reader=ingestion.reader,
        missing_column=ingestion.on_missing_column,
        max_bad_rows=ingestion.bad_row_limit,
        write_for="1.5",
        query=Query.of(ingestion.filter, ingestion.transforms, side.config),
        staging_uri=(root / staging / "sessions" / "cp7-abc").as_uri(),
        segments_uri=(root / staging / "segments").as_uri(),
    )
    (root / staging).mkdir()
    if (root / "in" / "rows.csv").exists():
        return made
    with (root / "in" / "rows.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        rows.writerows(zip(*(VALUES[column] for column in COLUMNS), strict=True))
    return made


def both(
    session: SparkSession, root: Path, kind: Kind
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """CRC and number of rows of each segment, before and now; none of a file that cannot be read any more."""
    before, after = (
        rows_of(session, order(root, side, str(n))) for n, side in enumerate((kind.before, kind.after))
    )
    assert before
    return before, after


def rows_of(session: SparkSession, build_spec: BuildSpec) -> list[tuple[int, int]]:
    results: list[Receipt | Failure] = []
    SparkBuilder(lambda: session).build(build_spec, tasks_of(build_spec), results.append)
    return [(o.crc, o.rows) for one in results if isinstance(one, Receipt) for o in one.outputs]


@pytest.mark.parametrize("kind", BY_ROWS, ids=str)
def test_a_rebuild_gives_other_rows(session: SparkSession, tmp_path: Path, kind: Kind) -> None:
    assert kind.verdict == Verdict.REBUILD
    before, after = both(session, tmp_path, kind)
    assert before != after


@pytest.mark.parametrize("kind", ALIKE, ids=str)
def test_what_needs_nothing_gives_the_same_rows(session: SparkSession, tmp_path: Path, kind: Kind) -> None:
    before, after = both(session, tmp_path, kind)
    assert before == after
