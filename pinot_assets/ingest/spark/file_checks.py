"""Check a file for what Spark's readers accept silently, or die of, before they read it.

They replace bytes that are not UTF-8 by U+FFFD, choose the decompression by the file's name, load a JSON
array or a row of any length into memory, take only the first JSON value of a line (`check_lines`), and read
quotes and line ends of CSV in their own way (`scan_csv`). Of a binary file they hold a page, and the values
of many rows, several times in the JVM's memory. A JVM that dies of that ends the jobs of all other files, so
these checks find it beforehand.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq

from pinot_assets.core.file_errors import Unreadable
from pinot_assets.ingest.contract.csv_settings import CsvSettings
from pinot_assets.ingest.formats.binary_formats import (
    BATCH_ROWS,
    check_pages,
    check_values,
    count_rows,
    damaged,
)
from pinot_assets.ingest.formats.content import packing, plain_file, text_blocks
from pinot_assets.ingest.formats.csv_text import scan_csv
from pinot_assets.ingest.formats.json_documents import check_lines
from pinot_assets.settings.file_limits import DEFAULTS, RATIO, FileLimits

LONGEST_ROW: Final = 64 << 20
"""The most bytes of a JSON object, as in the direct reader."""

_SUFFIXES: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def check_packing(local: Path, uri: str, input_format: str) -> None:
    """Check that Spark will decompress the file correctly.

    :param local: the local copy.
    :raises Unreadable: it will not.
    """
    packed = packing(local)
    if input_format not in ("csv", "json"):
        if packed is not None:
            raise Unreadable(
                f"Spark cannot read a {input_format} file that is compressed with {packed}", hint=_HINT
            )
    elif packed != (named := _SUFFIXES.get(Path(uri).suffix)):
        raise Unreadable(
            f"by its name, Spark reads the file as {named or 'plain text'}, but it is "
            f"{packed or 'plain text'}",
            hint=f"name it {_SUFFIX_OF.get(packed or '', 'without such an ending')}, or {_HINT}",
        )


def footer_rows(local: Path, input_format: str) -> int | None:
    """Return how many rows a file declares; None for text formats, which declare none.

    :raises Unreadable: it is damaged.
    """
    with damaged(input_format):
        if input_format == "parquet":
            return int(pq.read_metadata(local).num_rows)
        if input_format == "orc":
            return int(paorc.ORCFile(local).nrows)
    if input_format != "avro":
        return None
    plain = plain_file(local, input_format)
    return 0 if plain is None else count_rows(plain)


def check_binary(local: Path, input_format: str) -> None:
    """Check that a Parquet or ORC file is whole; do not check other formats.

    :raises Unreadable: it is not.
    """
    with damaged(input_format):
        if input_format == "parquet":
            with pq.ParquetFile(local, page_checksum_verification=True) as file:
                for _ in file.iter_batches(BATCH_ROWS, use_threads=False):
                    pass
        elif input_format == "orc":
            with pa.memory_map(str(local)) as data:
                orc = paorc.ORCFile(data)
                for n in range(orc.nstripes):
                    orc.read_stripe(n)


def check_csv(local: Path, settings: CsvSettings, limits: FileLimits = DEFAULTS) -> None:
    """Check that Spark will read a CSV file as it is meant.

    :raises Unreadable: it would not, or the file is damaged.
    """
    scan_csv(_utf8(text_blocks(local, "csv", limits)), settings)


def check_json(local: Path, limits: FileLimits = DEFAULTS) -> None:
    """Check that Spark will read all of a JSON file: one object a line, and nothing after it.

    :raises Unreadable: it would not, or the file is damaged.
    """
    line, is_first = 1, True
    held: list[bytes] = []  # of a line that continues in the next block
    for block in _utf8(text_blocks(local, "json", limits)):
        if is_first and block.lstrip()[:1] == b"[":
            raise Unreadable("Spark would read a JSON array into memory as a whole", hint=f"write {_LINES}")
        is_first = False
        end = block.rfind(b"\n") + 1
        _check_length(sum(map(len, held)) + (block.find(b"\n") if end else len(block)))
        held.append(block[:end] or block)
        if end:
            line += check_lines(b"".join(held), line)
            held = [block[end:]]
            _check_length(len(block) - end)
    check_lines(b"".join(held), line)


def _check_length(length: int) -> None:
    if length > LONGEST_ROW:
        raise Unreadable(f"a line is longer than {LONGEST_ROW >> 20} MB", hint=f"write {_LINES}")


_HINT: Final = "remove transforms, filter and engine: spark; the direct reader does not need them"
_LINES: Final = "write one object a line, or remove transforms, filter and engine: spark"
_SUFFIX_OF: Final = {kind: f"….{suffix[1:]}" for suffix, kind in _SUFFIXES.items()}


def _utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    row = 1
    for block in blocks:
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            line = row + block[: error.start].count(b"\n")
            raise Unreadable(f"line {line}: is not UTF-8") from None
        row += block.count(b"\n")
        yield block
    if decoder.getstate()[0]:
        raise Unreadable(f"line {row}: is not UTF-8")


_ROWS: Final = 1 << 10


def check_sizes(local: Path, input_format: str, columns: frozenset[str], limits: FileLimits) -> None:
    """Check that no value of a Parquet or ORC file is too large; do not check other formats.

    :param columns: the columns that Spark will read.
    :raises TooLarge: a value is too large, or a part of the file unpacks to far too much.
    :raises Unreadable: the file is damaged.
    """
    if input_format == "parquet":
        _check_parquet(local, columns, limits)
    elif input_format == "orc":
        _check_orc(local, columns, limits)


def _check_parquet(local: Path, columns: frozenset[str], limits: FileLimits) -> None:
    with damaged("Parquet"), pq.ParquetFile(local, memory_map=True, pre_buffer=False) as file:
        check_pages(file.metadata, columns, limits)
        # If all values of a column chunk together are within the limit of one value, none exceeds it.
        groups = (file.metadata.row_group(n) for n in range(file.metadata.num_row_groups))
        chunks = (group.column(m) for group in groups for m in range(group.num_columns))
        candidates = {
            chunk.path_in_schema.partition(".")[0]
            for chunk in chunks
            if chunk.physical_type == "BYTE_ARRAY" and chunk.total_uncompressed_size > limits.value_bytes
        }
        large = sorted(columns.intersection(candidates))
        for batch in file.iter_batches(_ROWS, columns=large, use_threads=False) if large else ():
            check_values(pa.Table.from_batches([batch]), limits)


def _check_orc(local: Path, columns: frozenset[str], limits: FileLimits) -> None:
    if local.stat().st_size * RATIO <= limits.value_bytes:
        return
    with damaged("ORC"), pa.memory_map(str(local)) as data:
        file = paorc.ORCFile(data)
        # Read text columns only: Arrow would fail on times that are in Spark's range but not in its own.
        texts = [field.name for field in file.schema if field.name in columns and _holds_text(field.type)]
        for n in range(file.nstripes) if texts else ():
            check_values(pa.Table.from_batches([file.read_stripe(n, columns=texts)]), limits)


def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return _holds_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
