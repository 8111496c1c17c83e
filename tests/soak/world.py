"""The source directory as a value: what lies in it, what its files hold, and what a query must answer.

Nothing of the product has a part in this. Each content carries the number of its file and of its version in
every row, so that an answer tells which versions it was made of.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS: Final = ("id", "ver", "n", "t", "v")

Row = tuple[str, int, int, str, int]
Answer = tuple[tuple[str, int, int, int], ...]
"""For each file and version its rows and the sum of its values, in order."""


@dataclass(frozen=True, slots=True)
class Content:
    """One version of one file; it keeps its id where the file is renamed."""

    id: str
    ver: int
    rows: int

    def all_rows(self) -> list[Row]:
        """Its rows; commas and letters beyond ASCII are in them."""
        return [
            (self.id, self.ver, n, f"„{n}“, of {self.id}", zlib.crc32(f"{self.id}/{self.ver}/{n}".encode()))
            for n in range(self.rows)
        ]


def answer_of(contents: Iterable[Content]) -> Answer:
    """What a query must answer of these together; the same content may be there twice."""
    sums: dict[tuple[str, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for content in contents:
        if content.rows:
            rows, total = sums[content.id, content.ver]
            values = sum(row[-1] for row in content.all_rows())
            sums[content.id, content.ver] = (rows + content.rows, total + values)
    return tuple((*key, *figures) for key, figures in sorted(sums.items()))


def _csv(rows: list[Row]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([COLUMNS, *rows])
    return text.getvalue().encode()


def _json(rows: list[Row]) -> bytes:
    return "".join(json.dumps(dict(zip(COLUMNS, row, strict=True))) + "\n" for row in rows).encode()


def _parquet(rows: list[Row]) -> bytes:
    types = (pa.string(), pa.int32(), pa.int32(), pa.string(), pa.int64())
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(types)]
    sink = io.BytesIO()
    pq.write_table(pa.table(columns, names=[*COLUMNS]), sink)
    return sink.getvalue()


FORMATS: Final[Mapping[str, Callable[[list[Row]], bytes]]] = {"csv": _csv, "json": _json, "parquet": _parquet}

FEWEST, MOST = 6, 30
"""Files in the directory."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write to the store: an object, or None where it is deleted."""

    name: str
    data: bytes | None


@dataclass
class SoakWorld:
    """See the module.

    :ivar files: name → content.
    :ivar known: SHA-256 of everything that was ever written → content.
    :ivar emptied: name of the file that is empty now, and what it held.
    """

    format: str
    chance: random.Random
    files: dict[str, Content] = field(default_factory=dict)
    known: dict[str, Content] = field(default_factory=dict)
    emptied: tuple[str, Content] | None = None
    _born: int = 0

    @property
    def answer(self) -> Answer:
        """What queries must answer once all is published."""
        return answer_of(self.files.values())

    def change(self, what: str) -> tuple[str, list[Write]]:
        """Change a file.

        :param what: see `events.CHANGES`; another change where that one is not possible now.
        :returns: the change in words, and its writes in their order.
        """
        if what == "restore":
            return self._restore()
        if what == "delete" and len(self.files) <= FEWEST:
            what = "new"
        if what == "new" and len(self.files) >= MOST:
            what = "delete"
        if what == "new":
            self._born += 1
            content = Content(f"f{self._born:04}", 1, self.chance.randint(200, 3000))
            return self._put("new", f"{content.id}.{self.format}", content)
        name = self.chance.choice([n for n in sorted(self.files) if not self.emptied or n != self.emptied[0]])
        before = self.files[name]
        if what == "delete":
            del self.files[name]
            return f"deleted {name}", [Write(name, None)]
        if what == "rename":
            self._born += 1
            new = f"{before.id}-{self._born:04}.{self.format}"
            _, writes = self._put("renamed", new, before)
            del self.files[name]
            return f"renamed {name} to {new}", [*writes, Write(name, None)]
        if what == "empty":
            self.emptied = (name, before)
            return self._put("emptied", name, Content(before.id, before.ver + 1, 0))
        rows = round(before.rows * self.chance.uniform(0.5, 1.6))  # no file loses so much that a gate shuts
        return self._put("rewritten", name, Content(before.id, before.ver + 1, min(max(rows, 200), 3000)))

    def _restore(self) -> tuple[str, list[Write]]:
        """As it was, or with new rows."""
        assert self.emptied is not None
        (name, before), self.emptied = self.emptied, None
        content = self.chance.choice([before, Content(before.id, before.ver + 2, before.rows)])
        return self._put("restored", name, content)

    def _put(self, word: str, name: str, content: Content) -> tuple[str, list[Write]]:
        data = FORMATS[self.format](content.all_rows())
        self.files[name] = self.known[hashlib.sha256(data).hexdigest()] = content
        return f"{word} {name}, version {content.ver}: {content.rows} rows", [Write(name, data)]
