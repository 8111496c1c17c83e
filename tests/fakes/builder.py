"""The builder without Spark, and orders to give to any builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from fakes.changed import changed

from pinot_assets.core.installation_policy import UNLIMITED
from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.contract.build_spec import BuildSpec, FileTask, Query
from pinot_assets.ingest.contract.builder import ignore_rows
from pinot_assets.ingest.task import build_file
from pinot_assets.snapshot.receipt import Failure, Receipt
from pinot_assets.source import SourceFile, open_store

T = TypeVar("T")

NAMES_SCHEMA = {
    "schemaName": "names",
    "dimensionFieldSpecs": [{"name": "name", "dataType": "STRING"}],
    "metricFieldSpecs": [{"name": "count", "dataType": "LONG"}],
    "dateTimeFieldSpecs": [
        {"name": "at", "dataType": "TIMESTAMP", "format": "TIMESTAMP", "granularity": "1:MILLISECONDS"}
    ],
}


class BuildsHere:
    """Part of a builder: files are built in this process."""

    def everywhere(self, look: Callable[[], T]) -> list[T]:
        return [look()]


class BuildsInMemory:
    """Part of a builder whose staging area is the memory of this process: nobody else reaches it."""

    def everywhere(self, look: Callable[[], T]) -> list[T]:
        return []


class InProcessBuilder(BuildsHere):
    """Runs the same task as Spark's executors do, in threads of this process.

    :param threads: files at a time.
    """

    def __init__(self, threads: int = 2) -> None:
        self._threads = threads

    def build(
        self,
        build_spec: BuildSpec,
        tasks: Sequence[FileTask],
        on_done: Callable[[Receipt | Failure], None],
        on_rows: Callable[[int], None] = ignore_rows,
    ) -> None:
        assert build_spec.query is None, "expressions are Spark's to evaluate"
        with ThreadPoolExecutor(self._threads) as pool:
            futures = [pool.submit(build_file, build_spec, task) for task in tasks]
            try:
                for future in as_completed(futures):
                    on_done(future.result())
            finally:
                for future in futures:
                    future.cancel()


def make_order(root: Path, **changes: object) -> BuildSpec:
    """An order for csv files in `root/in` with the columns name, count and at; staged in `root/staging`.

    :param changes: fields of the order to set otherwise.
    """
    (root / "in").mkdir(parents=True, exist_ok=True)
    (root / "staging").mkdir(exist_ok=True)
    order = BuildSpec(
        table="names",
        session="cp7-abc",
        attempt=1,
        creation_time_ms=1_700_000_000_000,
        schema=NAMES_SCHEMA,
        table_config={
            "tableName": "names_OFFLINE",
            "tableType": "OFFLINE",
            "segmentsConfig": {"timeColumnName": "at", "replication": "1"},
            "tableIndexConfig": {"nullHandlingEnabled": True},
            "tenants": {},
            "metadata": {},
        },
        input_format="csv",
        reader={},
        source_uri=(root / "in").as_uri(),
        source_props={},
        staging_uri=(root / "staging" / "sessions" / "cp7-abc").as_uri(),
        segments_uri=(root / "staging" / "segments").as_uri(),
        staging_props={},
        max_rows_per_segment=1000,
        policy=UNLIMITED,
        write_for="0.11",
    )
    return changed(order, changes)


def pinots_functions(*transforms: tuple[str, str], dropped: str = "") -> JsonObject:
    """Pinot's `ingestionConfig` with `transformConfigs` (column, function), and with a `filterConfig`."""
    made = [{"columnName": name, "transformFunction": function} for name, function in transforms]
    return {"transformConfigs": made, **({"filterConfig": {"filterFunction": dropped}} if dropped else {})}


def with_functions(build_spec: BuildSpec, *transforms: tuple[str, str], dropped: str = "") -> BuildSpec:
    """The order, of a table with these functions of Pinot's own."""
    config = {**build_spec.table_config, "ingestionConfig": pinots_functions(*transforms, dropped=dropped)}
    return replace(build_spec, table_config=config, query=Query.of("", {}, config))


def write_names(path: Path, rows: int, first: int = 0) -> Path:
    """A csv file that `make_order`'s table can take."""
    lines = [f"n{n},{n},2020-01-01T00:00:{n % 60:02}Z" for n in range(first, first + rows)]
    path.write_text("\n".join(["name,count,at", *lines, ""]))
    return path


def tasks_of(build_spec: BuildSpec) -> list[FileTask]:
    """One task per file that lies in the order's source now, by name."""
    found = sorted(
        open_store(build_spec.source_uri, build_spec.source_props, UNLIMITED).list(),
        key=lambda info: info.key,
    )
    return [FileTask(SourceFile(info.uri, info.fingerprint), n) for n, info in enumerate(found)]
