"""The files of `small_runs` and their tables: 81 columns as in Pinot's airlineStats, or 79 of text files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from pinot_assets.core.json_object import JsonObject

SMALL_FILES, SMALL_ROWS = 31, 314
WIDE_FILES, WIDE_ROWS = 3, 150_000
MADE = ("ts", "tsRaw")
"""Columns that transformConfigs make of `day`."""
_AVRO = {"INT": 40, "STRING": 29, "INTS": 5, "STRINGS": 4}
CSV_KINDS = {"INT": 40, "STRING": 28, "DOUBLE": 10}
"""How many columns of each kind a file has, besides `day`; INTS and STRINGS are multi-value."""
_FIRST_DAY = 16_071
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Case:
    """Files of one table, and what both sides know of them.

    :ivar source: folder of the files.
    :ivar rows: of each file.
    :ivar made: columns that transformConfigs make, because the files lack them.
    :ivar pack: whether our side puts the rows of all files into packs.
    """

    name: str
    source: Path
    input_format: str
    files: int
    rows: int
    kinds: Mapping[str, int]
    made: tuple[str, ...] = ()
    pack: bool = False

    @property
    def schema(self) -> JsonObject:
        """Pinot's schema."""
        fields: list[JsonObject] = [
            {"name": name, "dataType": kind.removesuffix("S")}
            | ({"singleValueField": False} if kind.endswith("S") else {})
            for name, kind in self.columns.items()
        ]
        day = {"name": "day", "dataType": "INT", "format": "1:DAYS:EPOCH", "granularity": "1:DAYS"}
        of_time = {"dataType": "TIMESTAMP", "format": "1:MILLISECONDS:TIMESTAMP", "granularity": "1:SECONDS"}
        times = [{"name": name, **of_time} for name in self.times]
        return {"schemaName": "bench", "dimensionFieldSpecs": fields, "dateTimeFieldSpecs": [day, *times]}

    @property
    def table_config(self) -> JsonObject:
        """Pinot's table config."""
        made = [{"columnName": name, "transformFunction": "fromEpochDays(day)"} for name in self.made]
        return {
            "tableName": "bench_OFFLINE",
            "tableType": "OFFLINE",
            "segmentsConfig": {"replication": "1", "timeColumnName": "day"},
            "tenants": {},
            "tableIndexConfig": {"loadMode": "MMAP"},
            "metadata": {},
            **({"ingestionConfig": {"transformConfigs": made}} if made else {}),
        }

    @property
    def columns(self) -> dict[str, str]:
        """Kinds of the columns, without those of time."""
        return {f"{kind.lower()}{n}": kind for kind, count in self.kinds.items() for n in range(count)}

    @property
    def times(self) -> tuple[str, ...]:
        """Columns of time in the table, besides `day`."""
        return MADE if self.input_format == "avro" else ()

    def write(self) -> None:
        """Write the files; the same ones each time."""
        self.source.mkdir()
        for number in range(self.files):
            path = self.source / f"part-{number:04}.{self.input_format}"
            values = self._values(number)
            if self.input_format == "csv":
                pacsv.write_csv(pa.table(values), path)
            else:
                self._write_avro(path, values)

    def _values(self, number: int) -> dict[str, list[object]]:
        random = np.random.default_rng(number)
        values: dict[str, list[object]] = {}
        for at, (name, kind) in enumerate(self.columns.items()):
            many = 3 ** (at % 9 + 1)  # from 3 to 19,683 different values
            if kind == "DOUBLE":
                values[name] = np.round(random.random(self.rows) * many, 2).tolist()
            elif kind.endswith("S"):
                drawn = random.integers(0, 50, (self.rows, 2)).tolist()
                values[name] = drawn if kind == "INTS" else [[f"place {k}" for k in one] for one in drawn]
            else:
                drawn = random.integers(0, many, self.rows).tolist()
                values[name] = drawn if kind == "INT" else [f"value {k}" for k in drawn]
        day = _FIRST_DAY + number
        values["day"] = [day] * self.rows
        return values | {name: [day * _DAY_MS] * self.rows for name in self.times if name not in self.made}

    def _write_avro(self, path: Path, values: Mapping[str, list[object]]) -> None:
        of_kind = {"INT": "int", "STRING": "string", "INTS": "int", "STRINGS": "string"}
        types = {
            name: {"type": "array", "items": of_kind[kind]} if kind.endswith("S") else of_kind[kind]
            for name, kind in self.columns.items()
        }
        types |= {"day": "int"} | dict.fromkeys(self.times, "long")
        fields = [{"name": name, "type": types[name]} for name in values]
        rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
        with path.open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, rows, "deflate")


def cases(folder: Path, wide_rows: int) -> list[Case]:
    """The three cases: with transformConfigs, without them, and wide text files. No file is written yet."""
    small = ("avro", SMALL_FILES, SMALL_ROWS, _AVRO)
    return [
        Case("transforms", folder / "transforms", *small, made=MADE),
        Case("plain", folder / "plain", *small),
        Case("wide", folder / "wide", "csv", WIDE_FILES, wide_rows, CSV_KINDS),
    ]
