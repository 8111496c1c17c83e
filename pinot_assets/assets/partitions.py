"""Which partition a file belongs to: one per file while there are few, one per group when there are many.

Dagster writes some thirty events a second and its pages elide long keys in the middle, so keys are few, short
and differ at their end. What a key looks like tells whether it stands for a file or for a group, so nothing
has to be remembered beside the partitions themselves.

A partition of one file has that file's version; a group's is a digest of its files'. Two equal versions mean
equal content as far as listing and ledger tell, so a file that is rewritten and then written back has the
version that it had before.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from pinot_assets.snapshot.manifest import PublishedFile
from pinot_assets.source.uris import unquote_key
from pinot_assets.table_spec import TableSpec

LONGEST = 60
"""Characters of a key that Dagster's pages show unelided."""
ALL_FILES = "all files"
"""The partition that stands for the table as a whole. A run that nobody started for one file is a run of this
one: Dagster wants a partition for a partitioned asset, and files come and go."""
FALLBACK_BUCKETS = 256
"""When even the groups are more than `maxFilePartitions`."""

_REFUSED = re.compile(r"\.\.\.|[\x00-\x1f\x7f]|[\ud800-\udfff]")
"""Dagster refuses these in a dynamic partition key, and no database stores a surrogate."""
_GROUP_MARKS = ("dir:", "re:", "hash:")

KeyOf = Callable[[str], str]
"""From a file's path below the input directory to its partition key."""


@dataclass(frozen=True, slots=True)
class FilePartitioning:
    """How the files of a table are spread over partitions now.

    :ivar name: `file`, `directory`, `regex` or `hash`, for people.
    :ivar mark: every key begins with it.
    :ivar key_of: from a path to its key.
    """

    name: str
    mark: str
    key_of: KeyOf


def path_of(spec: TableSpec, uri: str) -> str:
    """A file's path below the input directory, as people write it; bytes that are no UTF-8 are surrogates."""
    return unquote_key(uri.removeprefix(f"{spec.input_uri()}/"))


def choose(spec: TableSpec, paths: Collection[str], existing: Collection[str]) -> FilePartitioning:
    """One partition per file up to `maxFilePartitions`, then one per group.

    A table that was grouped stays so, and by what it was grouped by, or its partitions would come and go
    around the limit; migrating it is a person's decision (`choose` without existing keys).

    :param paths: of all files that have a partition.
    :param existing: partition keys that stand in Dagster.
    """
    most = spec.ingestion.max_file_partitions
    if len(paths) <= most and not any(is_group(key) for key in existing):
        return FilePartitioning("file", "", file_key)
    chosen, fallback = _grouping(spec.ingestion.partition_group), _hashed(FALLBACK_BUCKETS)
    for standing in (chosen, fallback):
        if any(key.startswith(standing.mark) for key in existing):
            return standing
    if chosen.name == "hash":
        return chosen  # its number of groups is what somebody asked for
    many = len({chosen.key_of(path) for path in paths}) > max(most, FALLBACK_BUCKETS)
    return fallback if many else chosen


def is_group(key: str) -> bool:
    """Whether a key stands for a group of files."""
    return key.startswith(_GROUP_MARKS)


def file_key(path: str) -> str:
    """The path where it is short, else the end of its directory, the beginning of its name and a digest.

    Names that Spark writes differ in the middle only (`part-00000-<uuid>.c000.snappy.parquet`).
    """
    if len(path) <= LONGEST and path != ALL_FILES and not _REFUSED.search(path) and not is_group(path):
        return path
    return _shortened(path)


def _shortened(path: str) -> str:
    directory, _, name = _REFUSED.sub("_", path).rpartition("/")
    digest = _digest(path).hex()[:10]
    return f"{directory[-28:]}/{name[:18]}~{digest}".lstrip("/")


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
"""Version of a file that is published and gone from the source."""

Versions = Mapping[str, str]
"""Version by path or by partition key."""


def published_versions(spec: TableSpec, ledger: Mapping[str, PublishedFile]) -> dict[str, str]:
    """Versions that queries see, by path."""
    return {path_of(spec, uri): file.version for uri, file in ledger.items()}


def by_partition(versions: Versions, key_of: KeyOf) -> dict[str, str]:
    """Versions by partition key; a group's is a digest over its paths and versions, and so is the table's."""
    members: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path, version in versions.items():
        members[key_of(path)].append((path, version))
    versions_by_key = {
        key: _joined(pairs) if is_group(key) else pairs[0][1] for key, pairs in members.items()
    }
    return versions_by_key | {ALL_FILES: _joined(list(versions.items()))}


def _joined(pairs: Iterable[tuple[str, str]]) -> str:
    """Files that are gone take no part: once their rows are gone, too, nothing is left of them to compare."""
    there = [f"{path}\t{version}" for path, version in pairs if version != DELETED]
    return digest(there) if there else DELETED


def digest(lines: Iterable[str]) -> str:
    """Twelve hex digits of some lines, in whatever order they come."""
    text = "\n".join(sorted(lines))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]
