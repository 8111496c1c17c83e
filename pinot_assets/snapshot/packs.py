"""Packs: segments that have the rows of many small files.

A member list says which rows of which files are in a pack. It is an immutable object, named by its hash, and
so it also identifies what the pack has: two builds of one list have equal rows in equal order
(docs/design/layout.md#words).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.stored_format import (
    WITH_PACKS,
    Marks,
    Open,
    Stored,
    checked_table,
    keeping,
    kept_fields,
    marked,
    parquet_metadata,
    parquet_of,
    plain,
)
from pinot_assets.core.untrusted import fitting
from pinot_assets.snapshot.receipt import Fingerprint, Output, RowsChunk
from pinot_assets.snapshot.recipes import UNKNOWN
from pinot_assets.snapshot.stored_outputs import (
    COLUMN,
    OUTPUTS,
    output_of,
    unknown_of_outputs,
    with_kept_outputs,
)

_LIST: Final = re.compile(r"packs/([0-9a-f]{64})\.parquet")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def members_key(sha256: str) -> str:
    """Return the key of a member list in the staging area."""
    return f"packs/{sha256}.parquet"


def members_sha256(key: str) -> str:
    """Return the hash in a member list's key; "" if the key is not one, which no content has."""
    match = _LIST.fullmatch(key)
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class Member(Open):
    """Rows of one version of a file that are in a pack: all of them, or those of a cell in one rows object.

    :ivar sha256: hex digest of the file's bytes as read.
    :ivar rows: how many rows, one at least: of the file, or those that it has in the chunk.
    :ivar bad_rows: how many rows of the file were put aside.
    :ivar session: the session that read it.
    :ivar rows_object: hex digest of the rows object that has its rows.
    :ivar first: position of its first row in the chunk, from 0.
    :ivar offset: the chunk's first byte in the object; `length` are its bytes, 0 for the whole object, and
        `crc` is the CRC-32 of them.
    """

    uri: str
    fingerprint: Fingerprint
    sha256: str
    rows: int
    bad_rows: int
    session: str
    rows_object: str
    first: int
    offset: int = 0
    length: int = 0
    crc: int = 0

    @property
    def chunk(self) -> RowsChunk:
        """Return where to read its rows; the cell is the list's, and not named again."""
        return RowsChunk("", self.rows_object, self.offset, self.length, self.crc)

    @property
    def file(self) -> tuple[str, str]:
        """Return which version of which file it is: its URI, and the session that read it."""
        return self.uri, self.session


@dataclass(frozen=True, slots=True)
class MemberList(Stored):
    """What a pack has, in the order of its rows, before they are sorted for a `sortedColumn`.

    :ivar members: no session's version of a file is in it twice; with cells once for each rows object that
        has rows of it. Append may publish the same version again, after another one, and merges bring both
        together.
    :ivar read: digest of the read recipe with which all of them were read.
    :ivar cell: the partition and time slice of all rows; "" without cells.
    """

    members: tuple[Member, ...]
    read: str
    cell: str = ""

    @property
    def rows(self) -> int:
        """Return the number of rows that its segments must have."""
        return sum(member.rows for member in self.members)

    @property
    def files(self) -> int:
        """Return the number of versions of files."""
        return len({member.file for member in self.members})

    @property
    def rows_objects(self) -> frozenset[str]:
        """Return the digests of the rows objects that a build of this list reads."""
        return frozenset(member.rows_object for member in self.members)


_MEMBERS: Final = pa.schema(
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
        pa.field("rows_object", pa.string(), nullable=False),
        pa.field("first", pa.int64(), nullable=False),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("crc", pa.int64()),
    ]
)
_OF_CELLS: Final = ("offset", "length", "crc")
"""Columns that only lists of tables with cells have."""


def members_to_parquet(members: MemberList) -> bytes:
    """Return a member list as one Parquet object.

    :raises ValueError: its format has no packs.
    """
    if members.format < WITH_PACKS:
        raise ValueError(f"there are no member lists of format {members.format}")
    rows = [
        {
            "uri": one.uri,
            **one.fingerprint.to_json(),
            "sha256": one.sha256,
            "rows": one.rows,
            "bad_rows": one.bad_rows,
            "session": one.session,
            "rows_object": one.rows_object,
            "first": one.first,
            "offset": one.offset,
            "length": one.length,
            "crc": one.crc,
            **one.kept,
        }
        for one in members.members
    ]
    has_chunks = any(one.length for one in members.members)
    fields = [field for field in _MEMBERS if has_chunks or field.name not in _OF_CELLS]
    schema = pa.schema([*fields, *kept_fields(members.members)])
    said = {"read": members.read} | ({"cell": members.cell} if members.cell else {})
    return parquet_of(rows, marked(schema, members.format, said))


def members_from_parquet(data: bytes, what: str = "a member list") -> MemberList:
    """Read what `members_to_parquet` wrote; for other bytes it raises the errors of its parsers.

    :param what: its address, for errors.
    :raises NeedsNewerRelease: its format is unknown to this release.
    :raises ValueError: it is not a member list, a range of rows is impossible, or rows that one session read
        of a file are in it twice.
    """
    meta = parquet_metadata(data)
    number = Marks.of(meta).require_known(what)
    table, unknown = checked_table(data, _MEMBERS, _OF_CELLS)
    members = tuple(_member(row, unknown) for row in table.to_pylist())
    if len({(*one.file, one.rows_object if one.length else "") for one in members}) < len(members):
        raise ValueError("rows that one session read of a file are in it twice")
    return MemberList(members, meta["read"], meta.get("cell", ""), format=number)


def _member(row: JsonMapping, unknown: Sequence[str]) -> Member:
    at = row["first"], *(row.get(name) or 0 for name in _OF_CELLS)
    if row["rows"] < 1 or min(at) < 0 or not _SHA256.fullmatch(row["rows_object"]):
        raise ValueError(f"the rows of {row['uri']} cannot be where it says")
    return Member(
        uri=row["uri"],
        fingerprint=fitting(Fingerprint.of_row(row)),
        sha256=row["sha256"],
        rows=row["rows"],
        bad_rows=row["bad_rows"],
        session=row["session"],
        rows_object=row["rows_object"],
        first=row["first"],
        offset=row.get("offset") or 0,
        length=row.get("length") or 0,
        crc=row.get("crc") or 0,
        **keeping(row, unknown),
    )


@dataclass(frozen=True, slots=True)
class PublishedPack(Open):
    """One published pack.

    :ivar session: the session that built it.
    :ivar ordinal: its number in that session.
    :ivar members: hex digest of its member list.
    :ivar files: how many files it has.
    :ivar rows: documents of all its segments.
    :ivar seconds: wall time of the task that built it.
    :ivar revision: names the recipe that built it, in `Snapshot.recipes`; `recipes.UNKNOWN` without one.
    :ivar cell: the partition and time slice of all its rows; "" without cells.
    """

    session: str
    ordinal: int
    members: str
    files: int
    rows: int
    outputs: tuple[Output, ...]
    seconds: float = 0.0
    revision: int = UNKNOWN
    cell: str = ""

    @property
    def name(self) -> str:
        """Return its name, which `PublishedFile.packs` has: `cp17-0a1b2c_4`."""
        return f"{self.session}_{self.ordinal}"

    @property
    def bytes(self) -> int:
        """Return the bytes of its segments as servers hold them."""
        return sum(output.loaded_bytes for output in self.outputs)


_CELL: Final = "cell"
_PACKS: Final = pa.schema(
    [
        pa.field("session", pa.string(), nullable=False),
        pa.field("ordinal", pa.int64(), nullable=False),
        pa.field("members", pa.string(), nullable=False),
        pa.field("files", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        COLUMN,
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("revision", pa.int64(), nullable=False),
        pa.field(_CELL, pa.string()),
    ]
)


def packs_to_parquet(packs: Iterable[PublishedPack]) -> bytes:
    """Return the packs of a snapshot as one Parquet object, of the first format that has packs."""
    packs = tuple(packs)
    rows = [
        {
            "session": one.session,
            "ordinal": one.ordinal,
            "members": one.members,
            "files": one.files,
            "rows": one.rows,
            OUTPUTS: [plain(output, WITH_PACKS) for output in one.outputs],
            "seconds": one.seconds,
            "revision": one.revision,
            _CELL: one.cell or None,
            **one.kept,
        }
        for one in packs
    ]
    fields = [field for field in _PACKS if field.name != _CELL or any(one.cell for one in packs)]
    schema = with_kept_outputs(pa.schema(fields), (output for one in packs for output in one.outputs))
    return parquet_of(rows, marked(pa.schema([*schema, *kept_fields(packs)]), WITH_PACKS))


def packs_from_parquet(data: bytes, what: str = "the packs of a snapshot") -> tuple[PublishedPack, ...]:
    """Read what `packs_to_parquet` wrote; for other bytes it raises the errors of its parsers.

    :param what: its address, for errors.
    :raises NeedsNewerRelease: its format is unknown to this release.
    :raises ValueError: the object has no packs, or the name of a member list is not one.
    """
    Marks.of(parquet_metadata(data)).require_known(what)
    table, of_pack = checked_table(data, _PACKS, (_CELL,))
    of_output = unknown_of_outputs(table.schema)
    return tuple(_pack(row, of_pack, of_output) for row in table.to_pylist())


def _pack(row: JsonMapping, of_pack: Sequence[str], of_output: Sequence[str]) -> PublishedPack:
    if not _SHA256.fullmatch(row["members"]):
        raise ValueError(f"{row['members']} is not the name of a member list")
    return PublishedPack(
        session=row["session"],
        ordinal=row["ordinal"],
        members=row["members"],
        files=row["files"],
        rows=row["rows"],
        outputs=tuple(output_of(values, of_output) for values in row[OUTPUTS]),
        seconds=row["seconds"],
        revision=row["revision"],
        cell=row.get(_CELL) or "",
        **keeping(row, of_pack),
    )
