"""The published files of a snapshot, one row per published version, and their Parquet object."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.stored_format import (
    FIRST,
    WITH_PACKS,
    Marks,
    Open,
    keeping,
    kept_fields,
    marked,
    parquet_metadata,
    parquet_of,
    parquet_table,
    plain,
    require_schema,
    require_values,
)
from pinot_assets.core.untrusted import reading
from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.snapshot.receipt import Fingerprint, Output, Receipt
from pinot_assets.snapshot.recipes import UNKNOWN
from pinot_assets.snapshot.stored_outputs import COLUMN, output_of, unknown_of_outputs, with_kept_outputs


@dataclass(frozen=True, slots=True)
class PublishedFile(Open):
    """One published version of one file.

    :ivar session: the session that published it; in append mode a file may have a row for each version.
    :ivar outputs: its segments; empty for a file without rows (edge case E5).
    :ivar version: token of the version that was built. If the file is only touched, the fingerprint changes
        and this does not.
    :ivar seconds: wall time of the task that built it.
    :ivar revision: names the recipe that built it, in `Snapshot.recipes`; `recipes.UNKNOWN` without one.
    :ivar packs: names of the packs that have its rows, one for each cell with rows of it, and then it has no
        segments of its own; empty for a file with segments of its own, or without rows.
    """

    uri: str
    fingerprint: Fingerprint
    sha256: str
    rows: int
    bad_rows: int
    session: str
    outputs: tuple[Output, ...]
    version: str = ""
    seconds: float = 0.0
    revision: int = UNKNOWN
    packs: tuple[str, ...] = ()

    @classmethod
    def from_receipt(cls, receipt: Receipt, session: str, revision: int = UNKNOWN) -> PublishedFile:
        """Return the row that the publication of this receipt adds."""
        return cls(
            uri=receipt.uri,
            fingerprint=receipt.read,
            sha256=receipt.sha256,
            rows=receipt.rows,
            bad_rows=receipt.bad_rows,
            session=session,
            outputs=receipt.outputs,
            version=receipt.read.token,
            seconds=receipt.seconds,
            revision=revision,
        )


_REVISION, _PACK = "revision", "pack"  # the names of its packs, with blanks between them
_FILES = pa.schema(
    [
        pa.field("uri", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("mtime_us", pa.int64(), nullable=False),
        pa.field("etag", pa.string()),
        pa.field("version_id", pa.string()),
        pa.field("sha256", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("bad_rows", pa.int64(), nullable=False),
        pa.field("session", pa.string(), nullable=False),
        COLUMN,
        pa.field("version", pa.string()),
        pa.field("seconds", pa.float64()),
        pa.field(_REVISION, pa.int64()),
        pa.field(_PACK, pa.string()),
    ]
)

_ADDED = ("version", "seconds", _REVISION, _PACK)
"""Columns that older releases did not write."""

RESTORE = (
    "restore the object from a backup; until then nothing is published or deleted. If it is lost "
    "for good, `pinot-assets session rebuild` makes the ledger again from what queries see"
)
"""The hint for a stored object that is missing or damaged."""

VERSIONS = pa.schema([_FILES.field(name) for name in ("uri", "size", "mtime_us", "etag")])
"""The columns that the diff needs."""


def files_to_parquet(files: Iterable[PublishedFile], number: int = FIRST) -> bytes:
    """Return rows as one Parquet object.

    :param number: the format to write.
    :raises ValueError: a file is in a pack, and the format has none.
    """
    files = tuple(files)
    if number < WITH_PACKS and any(file.packs for file in files):
        raise ValueError(f"a snapshot of format {number} has no packs")
    rows = [
        {
            "uri": f.uri,
            **f.fingerprint.to_json(),
            "sha256": f.sha256,
            "rows": f.rows,
            "bad_rows": f.bad_rows,
            "session": f.session,
            "outputs": [plain(o, number) for o in f.outputs],
            "version": f.version,
            "seconds": f.seconds,
            _REVISION: f.revision or None,
            _PACK: " ".join(f.packs) or None,
            **f.kept,
        }
        for f in files
    ]
    return parquet_of(rows, _schema(files, number))


def _schema(files: Sequence[PublishedFile], number: int) -> pa.Schema:
    schema = _FILES
    if number == FIRST or not any(file.revision for file in files):
        schema = schema.remove(schema.get_field_index(_REVISION))
    if number < WITH_PACKS or not any(file.packs for file in files):
        schema = schema.remove(schema.get_field_index(_PACK))
    schema = with_kept_outputs(schema, (output for file in files for output in file.outputs))
    for field_ in kept_fields(files):
        schema = schema.append(field_)
    return marked(schema, number)


class PublishedFiles(Sequence[PublishedFile]):
    """Reads what `files_to_parquet` wrote. Most triggers need only the versions, so rows are made on demand.

    :param address: the object's address, for errors.
    :raises NeedsNewerRelease: its format is unknown to this release.
    :raises SnapshotCorrupt: the requested part cannot be read; the constructor may raise it, too.
    """

    def __init__(self, data: bytes, address: str = "the rows of a snapshot") -> None:
        self._data = data
        self._address = address
        with self._reading():
            Marks.of(parquet_metadata(data)).require_known(address)
            self._schema = pq.read_schema(pa.BufferReader(data))
            require_schema(self._schema, _FILES, added=_ADDED)
            self._count = pq.read_metadata(pa.BufferReader(data)).num_rows

    def _reading(self) -> AbstractContextManager[None]:
        return reading(self._address, SnapshotCorrupt, why="it has no files of a snapshot", hint=RESTORE)

    def _table(self, columns: Sequence[str] | None = None) -> pa.Table:
        with self._reading():
            table = parquet_table(self._data, columns)
            require_values(table, _FILES)
            return table

    @cached_property
    def versions(self) -> pa.Table:
        """Return all rows as the columns of `VERSIONS`."""
        return self._table(VERSIONS.names)

    def tokens(self) -> pa.Table:
        """Return the built versions of all rows: `uri` and `version`."""
        if "version" not in self._schema.names:
            return _tokens(self)  # an object of the first release
        versions = self._table(["version"]).column("version")
        return pa.table({"uri": self.versions.column("uri"), "version": versions})

    def hashes(self) -> dict[str, str]:
        """Return the sha256 of each URI's last row."""
        table = self._table(["uri", "sha256"])
        return dict(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def revisions(self) -> frozenset[int]:
        """Return the revisions of its files, without making rows."""
        if _REVISION not in self._schema.names:
            return frozenset({UNKNOWN} if self._count else ())
        column = self._table([_REVISION]).column(_REVISION)
        return frozenset(number or UNKNOWN for number in pc.unique(column).to_pylist())

    def packs(self) -> frozenset[str]:
        """Return the names of the packs that have rows of its files, without making rows."""
        if _PACK not in self._schema.names:
            return frozenset()
        named = pc.unique(self._table([_PACK]).column(_PACK)).to_pylist()
        return frozenset(name for names in named if names for name in names.split())

    def names(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return its segments, and the sessions that published them, without making rows."""
        table = self._table(["session", "outputs.list.element.segment"])
        outputs = pc.list_flatten(table["outputs"]).combine_chunks()
        return frozenset(outputs.field("segment").to_pylist()), frozenset(table["session"].to_pylist())

    @cached_property
    def _rows(self) -> tuple[PublishedFile, ...]:
        rows = self._table().to_pylist()
        of_file = [name for name in self._schema.names if name not in _FILES.names]
        of_output = unknown_of_outputs(self._schema)
        with self._reading():
            return tuple(_published_file(row, of_file, of_output) for row in rows)

    @overload
    def __getitem__(self, index: int) -> PublishedFile: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PublishedFile, ...]: ...
    def __getitem__(self, index: int | slice) -> PublishedFile | tuple[PublishedFile, ...]:
        return self._rows[index]

    def __iter__(self) -> Iterator[PublishedFile]:
        return iter(self._rows)

    def __len__(self) -> int:
        return int(self._count)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PublishedFiles):
            return self._data == other._data or self._rows == other._rows
        return self._rows == other

    def __hash__(self) -> int:
        return hash(self._rows)


def versions_of(files: Sequence[PublishedFile]) -> pa.Table:
    """Return published versions as the columns of `VERSIONS`, in the files' order."""
    if isinstance(files, PublishedFiles):
        return files.versions
    rows = [{"uri": f.uri, **f.fingerprint.to_json()} for f in files]
    return pa.Table.from_pylist(rows, schema=VERSIONS)


def revisions_of(files: Sequence[PublishedFile]) -> frozenset[int]:
    """Return the revisions of published files."""
    return files.revisions() if isinstance(files, PublishedFiles) else frozenset(f.revision for f in files)


def files_among(files: Sequence[PublishedFile], uris: Collection[str]) -> list[PublishedFile]:
    """Return the published versions of these files, in their order; makes no rows where there are none."""
    if isinstance(files, PublishedFiles):
        wanted = pa.array([*uris], pa.string())
        if not pc.any(pc.is_in(files.versions.column("uri"), value_set=wanted)).as_py():
            return []
    return [file for file in files if file.uri in uris]


def tokens_of(files: Sequence[PublishedFile]) -> pa.Table:
    """Return `uri` and `version` of published files, in the files' order."""
    return files.tokens() if isinstance(files, PublishedFiles) else _tokens(files)


def _tokens(files: Sequence[PublishedFile]) -> pa.Table:
    uris, versions = [f.uri for f in files], [f.version for f in files]
    return pa.table({"uri": pa.array(uris, pa.string()), "version": pa.array(versions, pa.string())})


def hashes_of(files: Sequence[PublishedFile]) -> dict[str, str]:
    """Return the sha256 of each file's newest version, by URI."""
    return files.hashes() if isinstance(files, PublishedFiles) else {f.uri: f.sha256 for f in files}


def _published_file(row: JsonMapping, of_file: Sequence[str], of_output: Sequence[str]) -> PublishedFile:
    return PublishedFile(
        uri=row["uri"],
        fingerprint=Fingerprint.of_row(row),
        sha256=row["sha256"],
        rows=row["rows"],
        bad_rows=row["bad_rows"],
        session=row["session"],
        outputs=tuple(output_of(o, of_output) for o in row["outputs"]),
        # Ledgers of the first release have neither of these two.
        version=row.get("version") or Fingerprint(row["size"], row["mtime_us"], row["etag"]).token,
        seconds=row.get("seconds") or 0.0,
        revision=row.get(_REVISION) or UNKNOWN,
        packs=tuple((row.get(_PACK) or "").split()),
        **keeping(row, of_file),
    )
