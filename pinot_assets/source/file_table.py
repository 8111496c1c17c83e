"""Listed files as columns: a million files are columns of a million rows, and objects only where needed.

URIs are plain ASCII (`uris`), so Arrow's order of bytes is Python's order of strings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.snapshot.receipt import Fingerprint, SourceFile


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One listed object: key relative to the store's root, full URI, version."""

    key: str
    uri: str
    fingerprint: Fingerprint


COLUMNS: Final = pa.schema(
    [
        pa.field("uri", pa.string()),
        pa.field("size", pa.int64()),
        pa.field("mtime_us", pa.int64()),
        pa.field("etag", pa.string()),
    ]
)

_PAGE: Final = 10_000
_LONGEST: Final = 1_000_000  # an end is needed: without it Arrow 26 refuses to slice more than some MB


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing.

    :ivar columns: as `COLUMNS`.
    :ivar last: the key after which a listing continues behind this page; empty if it cannot be cut here.
    """

    columns: pa.Table
    last: str = ""


class FileTable(Mapping[str, SourceFile]):
    """Files by URI, in the order of their URIs.

    :param pages: columns as `COLUMNS`, in any order; if a URI comes twice, its last row counts.
    """

    def __init__(self, pages: Iterable[pa.RecordBatch | pa.Table]) -> None:
        self.columns = _sorted(
            pa.concat_tables(
                page if isinstance(page, pa.Table) else pa.Table.from_batches([page])
                for page in (COLUMNS.empty_table(), *pages)
            )
        )

    @classmethod
    def of(cls, files: Mapping[str, SourceFile]) -> FileTable:
        """Return the same files as columns."""
        return files if isinstance(files, cls) else cls([page_of(files.values())])

    def __getitem__(self, uri: str) -> SourceFile:
        return self._files[uri]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FileTable):
            return self is other or bool(self.columns.equals(other.columns))
        return self._files == other

    __hash__ = None  # type: ignore[assignment]  # as every mapping

    @cached_property
    def digest(self) -> str:
        """Return a sha256 (hex) of all URIs and versions: column by column, lengths before the texts."""
        digest = hashlib.sha256(f"{len(self)}\n".encode())
        for column in self.columns.columns:
            is_text = column.type == pa.string()
            values = pc.fill_null(column, "") if is_text else column
            for numbers in (pc.binary_length(values) if is_text else values).chunks:
                digest.update(numbers.to_numpy())
            for texts in values.chunks if is_text else ():
                digest.update(raw_of(texts))
        return digest.hexdigest()

    @cached_property
    def _files(self) -> dict[str, SourceFile]:
        return {file.uri: file for file in files_of(self.columns)}


def columns_of(files: Mapping[str, SourceFile]) -> pa.Table:
    """Return files as a table of `COLUMNS`, each URI once."""
    return files.columns if isinstance(files, FileTable) else page_of(files.values())


def pages_of(listing: Iterable[ObjectInfo]) -> Iterator[Page]:
    """Yield a listing in pages of some thousand objects; it can be cut after any object."""
    objects = iter(listing)
    while page := [*islice(objects, _PAGE)]:
        yield Page(page_of(page), page[-1].key)


def page_of(files: Iterable[SourceFile | ObjectInfo]) -> pa.Table:
    """Return files as a table of `COLUMNS`."""
    rows = [(f.uri, f.fingerprint.size, f.fingerprint.mtime_us, f.fingerprint.etag) for f in files]
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, COLUMNS, strict=True)], schema=COLUMNS)


def files_of(columns: pa.Table) -> Iterator[SourceFile]:
    """Yield the files of a table: the inverse of `page_of`."""
    values = (columns.column(name).to_pylist() for name in COLUMNS.names)
    for uri, size, mtime_us, etag in zip(*values, strict=True):
        yield SourceFile(uri, Fingerprint(size, mtime_us, etag))


def raw_of(texts: pa.Array) -> memoryview:
    """Return the bytes of all texts, one after the other, without a copy."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return memoryview(b"")
    view = memoryview(offsets).cast("i")
    return memoryview(data)[view[texts.offset] : view[texts.offset + len(texts)]]


def without_root(uris: pa.ChunkedArray, length: int) -> pa.Array:
    """Return URIs without their first `length` characters; costs an eighth of slicing strings."""
    data = uris.combine_chunks().cast(pa.binary())
    return pc.binary_slice(data, length, _LONGEST).view(pa.string())


def in_order(table: pa.Table, compare: Callable[[pa.ChunkedArray, pa.ChunkedArray], pa.ChunkedArray]) -> bool:
    """Whether `compare` (`pc.less`, `pc.less_equal`) is true for every URI and the next one."""
    uris = table.column("uri")
    return bool(pc.all(compare(uris.slice(0, max(0, len(uris) - 1)), uris.slice(1))).as_py() is not False)


def _sorted(table: pa.Table) -> pa.Table:
    table = table.combine_chunks()
    if not in_order(table, pc.less):
        table = table.take(pc.sort_indices(table, [("uri", "ascending")])).combine_chunks()
        if not in_order(table, pc.less):
            last = {file.uri: file for file in files_of(table)}
            table = page_of(last.values())
    return table
