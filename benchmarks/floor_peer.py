"""What another library needs for the part of a segment's build that no builder can leave out.

`floor_peer.py LIBRARY PARQUET FOLDER LEVEL`, in an environment with that library: read the Parquet file; find
the sorted distinct values of every column, and for each row the position of its value among them; compress
the files of FOLDER at the writer's own level. Prints the CPU seconds as JSON. One thread does all of it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from isal import igzip

Encode = Callable[[str], int]
"""Takes the path of the Parquet file; returns how many values and positions there are, of all columns."""


def pyarrow() -> Encode:
    """A dictionary of each column, whose values are then sorted."""
    pa, pc, pq = (import_module(name) for name in ("pyarrow", "pyarrow.compute", "pyarrow.parquet"))
    pa.set_cpu_count(1)

    def encode(path: str) -> int:
        values = 0
        for column in pq.read_table(path, use_threads=False).columns:
            encoded = column.combine_chunks().dictionary_encode()
            order = pc.array_sort_indices(encoded.dictionary)
            ranks = pc.inverse_permutation(order.cast("int64"), output_type=pa.int32())
            values += len(encoded.dictionary.take(order)) + len(ranks.take(encoded.indices))
        return values

    return encode


def polars() -> Encode:
    """The distinct values of each column, sorted and numbered, joined with its rows."""
    pl = import_module("polars")
    assert pl.thread_pool_size() == 1

    def encode(path: str) -> int:
        table, values = pl.read_parquet(path), 0
        for name in table.columns:
            column = table.select(name)
            distinct = column.unique().sort(name).with_row_index("code")
            codes = column.join(distinct, on=name, how="left", maintain_order="left")["code"]
            values += len(distinct) + len(codes)
        return values

    return encode


def duckdb() -> Encode:
    """The same in SQL."""
    database = import_module("duckdb").connect(config={"threads": 1})

    def encode(path: str) -> int:
        values = 0
        database.execute("CREATE TABLE t AS SELECT * FROM read_parquet(?)", [path])
        for name, *_ in database.execute("DESCRIBE t").fetchall():
            database.execute(
                "CREATE OR REPLACE TABLE d AS SELECT v, (row_number() OVER (ORDER BY v) - 1)::INT AS code "
                f'FROM (SELECT DISTINCT "{name}" AS v FROM t)'
            )
            codes = database.sql(f'SELECT code FROM t JOIN d ON t."{name}" = d.v').arrow().read_all()
            values += database.execute("SELECT count(*) FROM d").fetchone()[0] + len(codes)
        return values

    return encode


LIBRARIES: dict[str, Callable[[], Encode]] = {"pyarrow": pyarrow, "polars": polars, "duckdb": duckdb}


def main() -> None:
    """Do it and print what it cost."""
    library, path, folder, level = sys.argv[1:]
    encode = LIBRARIES[library]()
    begun = time.process_time()
    values = encode(path)
    encoded = time.process_time()
    files = sorted(file for file in Path(folder).rglob("*") if file.is_file())
    packed = sum(len(igzip.compress(file.read_bytes(), compresslevel=int(level))) for file in files)
    ended = time.process_time()
    said = {"values": values, "encode": encoded - begun, "gzip": ended - encoded, "bytes": packed}
    sys.stdout.write(f"{json.dumps(said)}\n")


if __name__ == "__main__":
    main()
