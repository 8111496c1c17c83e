"""Which version of every partition lies in the source, and which one is published.

A partition of one file has that file's version; a group's is a digest of its files'. Two equal versions mean
equal content as far as listing and ledger tell, so a file that is rewritten and then written back has the
version that it had before.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping

from pinot_assets.assets.partitions import ALL_FILES, KeyOf, is_group, path_of
from pinot_assets.snapshot.manifest import PublishedFile
from pinot_assets.table_spec import TableSpec

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
