"""Five thousand small files in twenty arrivals, with rewrites and deletions, while four threads query both
brokers: few segments, no mixed answer, and each row still knows its file.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from rich.console import Console
from rich.table import Table

from demos.load import LoadReport, QueryAnswer, QueryLoad, answer
from demos.stack import own_stack
from demos.steps import LEAST_ANSWERS, StoryBroken, show_queries
from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.text import plural
from pinot_assets.ingest.spark.builder import SparkBuilder
from pinot_assets.ingest.spark.environment import environment_context, environment_session
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients
from pinot_assets.session.values.report import TriggerReport
from pinot_assets.settings.environment import load_settings
from pinot_assets.table_spec import TableSpec, load_tables
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

ARRIVALS: Final = 20
FILES: Final = 250
"""New files of one arrival."""
REWRITTEN, DELETED = 6, 4
NAME: Final = "sensors"
SQL: Final = f"SELECT place, COUNT(*), SUM(reading) FROM {NAME} GROUP BY place ORDER BY place LIMIT 100"
BY_FILE: Final = f"SELECT source_file, COUNT(*), SUM(reading) FROM {NAME} GROUP BY source_file LIMIT 1000000"
_PLACES: Final = ("cellar", "garden", "hall", "roof")

Rows = list[tuple[str, int]]
"""Place and reading."""


class Sensors:
    """The files, and what queries must answer.

    :param folder: the table's input directory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._drawn = random.Random(5)
        self.files: dict[str, Rows] = {}
        folder.mkdir(parents=True)

    def arrive(self, number: int) -> None:
        """New files come; after the first time some of those before are rewritten, and some deleted."""
        before = sorted(self.files)
        for name in self._drawn.sample(before, REWRITTEN + DELETED) if before else ():
            if self._drawn.random() * (REWRITTEN + DELETED) < REWRITTEN:
                self._write(name)
            else:
                del self.files[name]
                (self._folder / name).unlink()
        for n in range(FILES):
            self._write(f"{number:02}-{n:03}.csv")

    def _write(self, name: str) -> None:
        rows = [
            (self._drawn.choice(_PLACES), self._drawn.randint(0, 99))
            for _ in range(self._drawn.randint(15, 25))
        ]
        text = "".join(f"{place},{reading}\n" for place, reading in rows)
        (self._folder / name).write_text(f"place,reading\n{text}")
        self.files[name] = rows

    def answer(self) -> QueryAnswer:
        """Return the answer of the load's query."""
        rows = [row for of_file in self.files.values() for row in of_file]
        return answer(
            (place, len(readings), sum(readings))
            for place in _PLACES
            if (readings := [reading for where, reading in rows if where == place])
        )

    def by_file(self) -> dict[str, tuple[int, int]]:
        """Return the number of rows of each file, and their sum."""
        return {name: (len(rows), sum(reading for _, reading in rows)) for name, rows in self.files.items()}


@dataclass(frozen=True, slots=True)
class PackSummary:
    """The result of all arrivals and of the load.

    :ivar errors: queries without an answer.
    :ivar answers: number of answers that were judged.
    :ivar segments: of the table at the end.
    :ivar known: files whose rows queries find by the column that names them.
    """

    mixed: int
    errors: int
    answers: int
    segments: int
    files: int
    known: int

    @property
    def well(self) -> bool:
        """Whether the demo shows what it promises."""
        few = self.segments * 100 <= self.files
        return (
            few
            and self.known == self.files
            and not (self.mixed or self.errors)
            and self.answers >= LEAST_ANSWERS
        )

    def __str__(self) -> str:
        mixed = f"mixed answers: {self.mixed} of {self.answers:,}"
        segments = f"segments: {self.segments:,} of {self.files:,} files"
        return f"{mixed}, {segments}, provenance checked: {self.known:,} of {self.files:,}"


def tell(home: Path, console: Console, release: str | None = None) -> bool:
    """Start a stack for the demo, let all files arrive, stop and purge the stack.

    :param home: folder for stack, files and tables; removed before and after.
    :param release: a release of Apache Pinot; None for that of a new local stack.
    :returns: whether the demo shows what it promises.
    :raises PinotAssetsError: a run did not publish what it should.
    """
    os.environ["PINOT_ASSETS_DATA"] = str(home / "data")
    os.environ["PINOT_ASSETS_STAGING"] = str(home / "staging")
    with (
        own_stack(home, console, release=release) as (_, state),
        HttpPinotClient(load_settings().pinot) as pinot,
    ):
        story = _Arrivals(home, console, pinot)
        with QueryLoad(state.broker_urls, SQL, threads=4) as load:
            story.tell(load)
        return story.show(load.report())


class _Arrivals:
    def __init__(self, home: Path, console: Console, pinot: HttpPinotClient) -> None:
        self._console, self._pinot = console, pinot
        self._sensors = Sensors(home / "data" / NAME)
        self._builder = SparkBuilder(environment_session, environment_context)
        (home / "tables").mkdir()
        (home / "tables" / f"{NAME}.yaml").write_text(yaml.safe_dump(_document(home)))
        self._spec: TableSpec = load_tables(home / "tables")[NAME]
        self._table = Table("arrival", "files read", "segments", "replaced", "seconds")
        self._known = self._segments = 0

    def tell(self, load: QueryLoad) -> None:
        apply_plan(plan_apply(self._spec, self._pinot), self._pinot)
        served: QueryAnswer = ()
        for number in range(ARRIVALS):
            self._sensors.arrive(number)
            after = self._sensors.answer()
            load.phase(f"{number + 1}", [served, after])
            started, before = time.monotonic(), self._segment_names()
            report = self._run()
            now = self._segment_names()
            seconds = time.monotonic() - started
            figures = f"{len(report.built):,}", str(len(now)), str(len(before - now)), f"{seconds:.1f}"
            self._table.add_row(str(number + 1), *figures)
            self._console.print(
                f"({number + 1}) {plural(len(report.built), 'file')} read: {plural(len(now), 'segment')}",
                highlight=False,
            )
            self._require_answer(after)
            served = after
        self._segments = len(self._segment_names())
        by_file = self._sensors.by_file()
        for url in self._pinot.brokers(NAME):
            rows = self._pinot.broker(url).query(BY_FILE).rows
            found = {str(name): (int(str(count)), int(float(str(total)))) for name, count, total in rows}
            self._known = sum(found.get(name) == figures for name, figures in by_file.items())
            if found.keys() != by_file.keys():
                raise StoryBroken(f"{url} shows rows of files that are not there")

    def show(self, report: LoadReport) -> bool:
        """Print the result; return whether the demo shows what it promises."""
        self._console.print(self._table)
        answers = report.queries - report.errors
        files = len(self._sensors.files)
        outcome = PackSummary(report.mixed, report.errors, answers, self._segments, files, self._known)
        show_queries(self._console, report, answers)
        self._console.print(str(outcome), highlight=False)
        return outcome.well

    def _run(self) -> TriggerReport:
        with self._driver() as driver:
            report = driver.trigger()
            driver.audit()
            driver.publish()
            return report

    @contextmanager
    def _driver(self) -> Iterator[Driver]:
        with (
            open_clients(self._spec, load_settings(), self._builder) as clients,
            Driver(self._spec, clients, "pack-demo") as driver,
        ):
            yield driver

    def _segment_names(self) -> frozenset[str]:
        return self._pinot.visible_segments(f"{NAME}_OFFLINE")

    def _require_answer(self, expected: QueryAnswer) -> None:
        for url in self._pinot.brokers(NAME):
            found = answer(self._pinot.broker(url).query(SQL).rows)
            if found != expected:
                raise StoryBroken("a run published something else", why=f"{url} answers {found[:2]}…")


def _document(home: Path) -> JsonObject:
    return {
        "schema": {
            "schemaName": NAME,
            "dimensionFieldSpecs": [
                {"name": "place", "dataType": "STRING"},
                {"name": "source_file", "dataType": "STRING"},
            ],
            "metricFieldSpecs": [{"name": "reading", "dataType": "LONG"}],
        },
        "table": {
            "tableName": NAME,
            "tableType": "OFFLINE",
            "segmentsConfig": {"replication": "2"},
            "tenants": {},
            "tableIndexConfig": {"loadMode": "MMAP"},
            "ingestionConfig": {
                "batchIngestionConfig": {
                    "segmentIngestionType": "REFRESH",
                    "segmentIngestionFrequency": "DAILY",
                }
            },
            "metadata": {},
        },
        "fileIngestion": {
            "inputDirURI": str(home / "data" / NAME),
            "inputFormat": "csv",
            "output.segment.dir.uri": str(home / "staging"),
            "consistentPushEnabled": True,
            "ingestionMode": "sync",
        },
        "layout": {"pack": True, "provenanceColumn": "source_file"},
    }
