"""Assign files to Dagster partitions: one per file if a table has few files, one per group if it has many.

Dagster writes about thirty events a second, and its pages shorten long keys in the middle. So keys are few,
short, and differ at their end. The form of a key shows whether it is for a file or for a group, so nothing
has to be stored except the partitions themselves.

The partition of one file has that file's version; a group has a digest of its files' versions. Equal versions
mean equal content, as far as listing and ledger show. So a file that is rewritten, and then gets its former
content back, has its former version again.

`SourceRows` holds the files of the source as columns, a path and a version for each, because there may be a
million. A published file keeps the version that it was built from.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.snapshot.published_files import tokens_of, versions_of
from pinot_assets.source.diff import differing
from pinot_assets.source.file_table import files_of, in_order, raw_of, without_root
from pinot_assets.source.uris import unquote_key
from pinot_assets.table_spec import TableSpec

LONGEST = 60
"""The most characters of a key that Dagster's pages show in full."""
ALL_FILES = "all files"
"""The partition for the whole table. Runs use it unless a person chose another partition: Dagster requires a
partition for a partitioned asset, and the partitions of files come and go."""
FALLBACK_BUCKETS = 256
"""Number of hash groups if there are more groups than `maxFilePartitions` (and than this number)."""

_REFUSED = re.compile(r"\.\.\.|[\x00-\x1f\x7f]|[\ud800-\udfff]")
"""Dagster refuses these in a dynamic partition key, and no database stores a surrogate."""
_GROUP_MARKS = ("dir:", "re:", "hash:")

KeyOf = Callable[[str], str]
"""Returns the partition key of a file, from its path below the input directory."""


@dataclass(frozen=True, slots=True)
class FilePartitioning:
    """The rule that assigns the files of a table to partitions now.

    :ivar name: `file`, `directory`, `regex` or `hash`, for people.
    :ivar mark: prefix of every key.
    :ivar key_of: returns the key for a path.
    """

    name: str
    mark: str
    key_of: KeyOf


def path_of(spec: TableSpec, uri: str) -> str:
    """Return a file's path below the input directory, unquoted; bytes not in UTF-8 become surrogates."""
    return unquote_key(uri.removeprefix(f"{spec.input_uri()}/"))


def choose(
    spec: TableSpec, paths: SourceRows | Collection[str], existing: Collection[str]
) -> FilePartitioning:
    """Return the rule: one partition per file up to `maxFilePartitions` files, otherwise one per group.

    A grouped table keeps its grouping, because otherwise its partitions would come and go around the limit.
    Only a person changes that, with `pinot-assets partitions migrate` (`choose` without existing keys).

    :param paths: paths of all files that have a partition.
    :param existing: partition keys that exist in Dagster.
    """
    most = spec.ingestion.max_file_partitions
    if len(paths) <= most and not any(is_group(key) for key in existing):
        return FilePartitioning("file", "", file_key)
    chosen, fallback = _grouping(spec.ingestion.partition_group), _hashed(FALLBACK_BUCKETS)
    for standing in (chosen, fallback):
        if any(key.startswith(standing.mark) for key in existing):
            return standing
    if chosen.name == "hash":
        return chosen  # the table spec sets its number of groups
    many = len({chosen.key_of(path) for path in paths}) > max(most, FALLBACK_BUCKETS)
    return fallback if many else chosen


def is_group(key: str) -> bool:
    """Whether a key is the key of a group of files."""
    return key.startswith(_GROUP_MARKS)


def file_key(path: str) -> str:
    """Return the path if it is short; else the end of its directory, the begin of its name and a digest.

    The digest is needed because Spark's file names differ only in the middle
    (`part-00000-<uuid>.c000.snappy.parquet`)."""
    if len(path) <= LONGEST and path != ALL_FILES and not _REFUSED.search(path) and not is_group(path):
        return path
    directory, _, name = _REFUSED.sub("_", path).rpartition("/")
    digest = _digest(path).hex()[:10]
    key = f"{directory[-28:]}/{name[:18]}~{digest}".lstrip("/")
    return f"~{key}" if is_group(key) else key


def _grouping(group: str) -> FilePartitioning:
    kind, _, argument = group.partition(":")
    match kind:
        case "regex":
            return _captured(re.compile(argument))
        case "hash":
            return _hashed(int(argument))
        case _:
            return FilePartitioning(
                "directory", "dir:", lambda path: f"dir:{file_key(path.rpartition('/')[0] or '.')}"
            )


def _captured(pattern: re.Pattern[str]) -> FilePartitioning:
    def key_of(path: str) -> str:
        match = pattern.search(path)
        return f"re:{file_key(match[1] or '')}" if match else "re:(no match)"

    return FilePartitioning("regex", "re:", key_of)


def _hashed(buckets: int) -> FilePartitioning:
    width, mark = len(str(buckets - 1)), f"hash:{buckets}/"

    def key_of(path: str) -> str:
        bucket = int.from_bytes(_digest(path)[:8]) % buckets
        return f"{mark}{bucket:0{width}d}"

    return FilePartitioning("hash", mark, key_of)


def _digest(path: str) -> bytes:
    return hashlib.sha256(path.encode(errors="surrogatepass")).digest()


DELETED = "deleted"
"""Version of a file that is published but no longer in the source."""


def by_partition(versions: Mapping[str, str], key_of: KeyOf) -> dict[str, str]:
    """Return versions by partition key, from versions by path.

    The version of a group, and of the whole table, is a digest of its paths and versions.
    """
    members: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path, version in versions.items():
        members[key_of(path)].append((path, version))
    versions_by_key = {
        key: _joined(pairs) if is_group(key) else pairs[0][1] for key, pairs in members.items()
    }
    return versions_by_key | {ALL_FILES: _joined(list(versions.items()))}


def _joined(pairs: Iterable[tuple[str, str]]) -> str:
    """Digest only files that are not deleted: without its rows, a deleted one leaves nothing to compare."""
    there = [f"{path}\t{version}" for path, version in pairs if version != DELETED]
    return digest(there) if there else DELETED


def digest(lines: Iterable[str]) -> str:
    """Return a digest of some lines, twelve hex digits; the order of the lines does not matter."""
    text = "\n".join(sorted(lines))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


_NOTHING = pa.Table.from_batches([], pa.schema({"uri": pa.string(), "version": pa.string()}))
_SLASH, _LINE_END = ord("/"), b"\n"
_STEP = 64  # lines that the search for the end of a directory skips at first


@dataclass(frozen=True)
class SourceRows:
    """A listing and a ledger, compared.

    :ivar listed: the listing, as `file_table.COLUMNS` (`of_ledger`: as `ledger`), each URI once, in order.
    :ivar ledger: `uri` and `version` of the published files, each URI once, in order.
    :ivar differing: the rows of the listing and of the ledger that differ, from `source.diff`.
    """

    spec: TableSpec
    listed: pa.Table
    ledger: pa.Table
    differing: tuple[pa.Table, pa.Table]

    @classmethod
    def beside(cls, spec: TableSpec, listed: pa.Table, snapshot: Snapshot | None) -> SourceRows:
        """Compare a listing with the published snapshot."""
        files = snapshot.files if snapshot else ()
        ledger = _newest(tokens_of(files)) if files else _NOTHING
        return cls(spec, listed, ledger, differing(listed, versions_of(files)))

    @classmethod
    def of_ledger(cls, spec: TableSpec, snapshot: Snapshot) -> SourceRows:
        """Return rows that assume that the source has exactly the published files."""
        ledger = _newest(tokens_of(snapshot.files)) if snapshot.files else _NOTHING
        return cls(spec, ledger, ledger, (ledger.slice(0, 0), ledger.slice(0, 0)))

    @cached_property
    def deleted(self) -> list[str]:
        """Paths that are published but no longer in the source."""
        listed, published = self.differing
        gone = pc.invert(pc.is_in(published.column("uri"), value_set=listed.column("uri")))
        return [path_of(self.spec, uri) for uri in published.column("uri").filter(gone).to_pylist()]

    def __len__(self) -> int:
        return int(self.listed.num_rows) + len(self.deleted)

    def __iter__(self) -> Iterator[str]:
        """Yield every path once, deleted files included."""
        for uri in self.listed.column("uri").to_pylist():
            yield path_of(self.spec, uri)
        yield from self.deleted

    def versions(self, partitioning: FilePartitioning) -> dict[str, str]:
        """Return versions by partition key, as `by_partition`."""
        # Append never removes rows, so in this mode a deleted file keeps its published version.
        kept = self.spec.mode == "append"
        rows = self._rows_with_deleted() if kept else self._rows()
        gone = dict.fromkeys([] if kept else self.deleted, DELETED)
        if partitioning.name != "directory":
            paths = (path_of(self.spec, uri) for uri in rows.column("uri").to_pylist())
            there = dict(zip(paths, rows.column("version").to_pylist(), strict=True))
            return by_partition(there | gone, partitioning.key_of)
        by_key = by_partition(gone, partitioning.key_of)
        return by_key | _by_directory(self._lines(rows), partitioning) if rows.num_rows else by_key

    def _rows(self) -> pa.Table:
        """Return `uri` and `version` of each file in the source, in the order of URIs."""
        changed, beside = self.differing
        uris = self.listed.column("uri")
        if not len(self.ledger) or len(changed) == len(uris):
            same = self.ledger.column("version").slice(0, 0)
            is_other = np.ones(len(uris), dtype=bool)
        else:
            same = self.ledger.column("version").filter(pc.invert(_are_in(self.ledger, beside)))
            is_other = _are_in(self.listed, changed).to_numpy()
        tokens = [file.fingerprint.token for file in files_of(changed.sort_by("uri"))] if len(changed) else []
        # Unchanged rows have the same order in listing and ledger.
        place = np.empty(len(uris), dtype=np.int64)
        place[~is_other] = np.arange(len(same))
        place[is_other] = len(same) + np.arange(len(tokens))
        versions = pa.concat_arrays([*same.chunks, pa.array(tokens, pa.string())])
        return pa.table({"uri": uris, "version": versions.take(pa.array(place))})

    def _rows_with_deleted(self) -> pa.Table:
        if not self.deleted:
            return self._rows()
        gone = pc.invert(_are_in(self.ledger, self.listed))
        return pa.concat_tables([self._rows(), self.ledger.filter(gone)]).sort_by("uri")

    def _lines(self, rows: pa.Table) -> _VersionLines:
        paths = without_root(rows.column("uri"), len(self.spec.input_uri()) + 1).cast(pa.binary())
        if escaped := b"%" in bytes(raw_of(paths)):
            raw = (path_of(self.spec, uri).encode(errors="surrogatepass") for uri in rows["uri"].to_pylist())
            paths = pa.array(raw, pa.binary())
        ends = pc.binary_join_element_wise(rows.column("version").cast(pa.binary()), b"", _LINE_END)
        lines = pc.binary_join_element_wise(paths, ends.combine_chunks(), b"\t")
        if escaped:
            order = pc.sort_indices(lines)
            paths, lines = paths.take(order), lines.take(order)
        return _VersionLines(paths, lines)


class _VersionLines:
    """Lines `path<TAB>version` of files, in order, in one block of memory. There is at least one line."""

    def __init__(self, paths: pa.BinaryArray, lines: pa.BinaryArray) -> None:
        self.paths, self._count = paths, len(lines)
        self._codes = np.frombuffer(raw_of(paths), np.uint8)
        self._text = raw_of(lines)
        self._starts, self._line_starts = _offsets(paths), _offsets(lines)

    def __len__(self) -> int:
        return self._count

    def path(self, line: int) -> bytes:
        """Return the path of one line."""
        return bytes(self.paths[line].as_py())

    def digest(self, stretches: list[tuple[int, int]]) -> str:
        """Return the digest of some lines, as the function `digest` does."""
        digested, between = hashlib.sha256(), b""
        for start, end in stretches:
            digested.update(between)
            digested.update(self._text[self._line_starts[start] : self._line_starts[end] - 1])
            between = _LINE_END
        return digested.hexdigest()[:12]

    def directories(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of lines whose files are in one directory; a directory may have several ranges."""
        start = 0
        while start < len(self):
            folder, slash, _ = self.path(start).rpartition(b"/")
            end, step = start + 1, _STEP
            while self._lie_in(folder + slash, end, end + step):
                end, step = end + step, step * 2
            while step := step // 2:
                if self._lie_in(folder + slash, end, end + step):
                    end += step
            yield start, end
            start = end

    def _lie_in(self, folder: bytes, start: int, end: int) -> bool:
        """Whether the files of all these lines are in the folder itself, none in a subfolder."""
        if end > len(self) or not self.path(end - 1).startswith(folder):
            return False
        slashes = np.count_nonzero(self._codes[self._starts[start] : self._starts[end]] == _SLASH)
        return bool(slashes == (end - start) * folder.count(b"/"))


def _by_directory(lines: _VersionLines, partitioning: FilePartitioning) -> dict[str, str]:
    members: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for start, end in lines.directories():
        key = partitioning.key_of(lines.path(start).decode(errors="surrogatepass"))
        members[key].append((start, end))
    digests = {key: lines.digest(stretches) for key, stretches in members.items()}
    return digests | {ALL_FILES: lines.digest([(0, len(lines))])}


def _offsets(texts: pa.BinaryArray) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return where each text begins in `raw_of`, and where the last one ends."""
    offsets: np.ndarray[tuple[int], np.dtype[np.int32]] = np.frombuffer(texts.buffers()[1], np.int32)
    mine = offsets[texts.offset : texts.offset + len(texts) + 1].copy()
    mine -= mine[0]
    return mine


def _are_in(some: pa.Table, others: pa.Table) -> pa.ChunkedArray:
    return pc.is_in(some.column("uri"), value_set=others.column("uri").combine_chunks())


def _newest(ledger: pa.Table) -> pa.Table:
    """Return the last row of each URI, in order."""
    if not in_order(ledger, pc.less_equal):
        ledger = ledger.take(pc.sort_indices(ledger, [("uri", "ascending")]))  # the sort is stable
    if in_order(ledger, pc.less):
        return ledger
    uris = ledger.column("uri")
    is_last = np.append(pc.not_equal(uris.slice(0, len(uris) - 1), uris.slice(1)).to_numpy(), True)
    return ledger.filter(pa.array(is_last))
