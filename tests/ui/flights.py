"""A small table of flights on the local stack: its spec, its files, and what queries see of them."""

from __future__ import annotations

import time
from pathlib import Path

import yaml
from fakes.tables import document

from pinot_assets.core.untrusted import typed
from pinot_assets.pinot import HttpPinotClient, NoResult, PinotConnection
from pinot_assets.settings.local_stack import StackState
from pinot_assets.table_spec import load_tables
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

NAME = "flights"
COLUMNS = ("carrier", "origin", "dest", "distance")
_ROUTES = (("UA", "EWR", "IAH", 1400), ("AA", "JFK", "MIA", 1089), ("B6", "JFK", "BQN", 1576))


class Flights:
    """The table, and one csv file for each day.

    :param folder: takes the spec (`tables`), the files (`flights`) and the staging area.
    """

    def __init__(self, folder: Path, stack: StackState) -> None:
        self.folder = folder
        self.tables = folder / "tables"
        self._source = folder / NAME
        self._pinot = HttpPinotClient(PinotConnection(stack.controller_url))
        for path in (self.tables, self._source, folder / "staging"):
            path.mkdir()
        (self.tables / f"{NAME}.yaml").write_text(yaml.safe_dump(self._document(), sort_keys=False))

    def create(self) -> None:
        """Make schema and table in Pinot, and wait until queries find them."""
        apply_plan(plan_apply(load_tables(self.tables)[NAME], self._pinot), self._pinot)
        end = time.monotonic() + 60
        while len(self._pinot.brokers(NAME)) < 2:
            assert time.monotonic() < end, "the brokers do not take the table"
            time.sleep(0.1)

    def drop(self) -> None:
        """Delete them again."""
        self._pinot.delete_table(NAME)
        self._pinot.delete_schema(NAME)
        self._pinot.close()

    def write(self, day: str, rows: int) -> None:
        """The file of one day, written anew."""
        lines = [",".join(COLUMNS)]
        lines += [",".join(map(str, _ROUTES[n % len(_ROUTES)])) for n in range(rows)]
        self._put(day, "\n".join(lines).encode() + b"\n")

    def corrupt(self, day: str) -> None:
        """A file that is no text."""
        self._put(day, ",".join(COLUMNS).encode() + b"\nUA,\xff\xfe,IAH,1400\n")

    def served(self) -> int | None:
        """Rows that queries see, the same at every broker; None where there is nothing to ask."""
        counts: set[int | None] = set()
        for url in self._pinot.brokers(NAME):
            try:
                ((count,),) = self._pinot.broker(url).query(f"SELECT COUNT(*) FROM {NAME}").rows
                counts.add(typed(count, int))
            except NoResult:  # a table without segments
                counts.add(None)
        (served,) = counts
        return served

    def _put(self, day: str, content: bytes) -> None:
        # Whole at once, as an upload is.
        path = self._source / f"{day}.csv"
        part = path.with_suffix(".part")
        part.write_bytes(content)
        part.replace(path)

    def _document(self) -> dict[str, object]:
        ingestion = {
            "inputDirURI": str(self._source),
            "inputFormat": "csv",
            "includeFileNamePattern": "glob:**/*.csv",
            "output.segment.dir.uri": str(self.folder / "staging"),
            "consistentPushEnabled": "true",
            "consistentPushMaxRetries": "3",
            "ingestionMode": "sync",
            "schedule": "0 0 0/4 * * ?",
            "minServer": "0.11",
        }
        columns = dict.fromkeys(COLUMNS[:3], "STRING")
        return {
            **document(NAME, columns, ingestion, distance="INT"),
            "dagster": {"owners": ["team:flights"]},
        }
