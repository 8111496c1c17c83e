"""The set of files that a table is to equal, as one complete listing says now."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pinot_assets.source.fingerprint import SourceFile
from pinot_assets.source.objects import ObjectInfo, ObjectStore
from pinot_assets.source.patterns import PathPattern, compile_pattern, path_of_uri


@dataclass(frozen=True, slots=True)
class Inventory:
    """One complete listing.

    :ivar files: the chosen files by URI.
    :ivar listed_at_ms: when the listing began, by this machine's clock. Only `readiness` compares it with
        a file's time, and only where an age is asked for: the two clocks may differ (edge case E28).
    :ivar digest: sha256 in hex of all URIs and versions: equal listings have equal digests.
    :ivar skipped: how many objects the patterns did not choose.
    :ivar hidden: how many objects were chosen by the patterns but left out for their name (see
        `take_inventory`).
    :ivar complete: URIs of directories that hold the completeness marker.
    :ivar being_written: URIs of directories that a writer uses now: something lies in their `_temporary`.
    """

    files: Mapping[str, SourceFile]
    listed_at_ms: int
    digest: str
    skipped: int = 0
    hidden: int = 0
    complete: frozenset[str] = frozenset()
    being_written: frozenset[str] = frozenset()


def take_inventory(
    store: ObjectStore,
    *,
    include: str | None = None,
    exclude: str | None = None,
    marker: str | None = None,
) -> Inventory:
    """List a store completely and choose files by Java path patterns (`patterns.compile_pattern`).

    What upstream writers leave around is left out unless the include pattern spells it (edge case E26):
    names that start with a dot (or lie in such a folder), `_SUCCESS`, `_temporary/…`, `*.tmp`. To spell it
    is to have `/.`, `_SUCCESS`, `_temporary` or `.tmp` in its text. Symbolic links are never listed.

    :param marker: name of the files that mark their directories as complete; these are never chosen.
    :raises ListingFailed: the listing did not complete; there is then no inventory (invariant I12).
    :raises SourceError: a pattern cannot be used.
    """
    chosen_by = None if include is None else compile_pattern(include)
    refused_by = None if exclude is None else compile_pattern(exclude)
    listed_at_ms = time.time_ns() // 1_000_000
    files: dict[str, SourceFile] = {}
    skipped = hidden = 0
    complete, being_written = set(), set()
    root = store.uri
    for info in store.list():
        path = path_of_uri(info.uri)
        folder, _, name = info.uri.rpartition("/")
        above, writing, _ = info.uri.removeprefix(root).partition("/_temporary/")
        if writing:
            being_written.add(root + above)
        if name == marker:
            complete.add(folder)
        elif (chosen_by and not chosen_by.matches(path)) or (refused_by and refused_by.matches(path)):
            skipped += 1
        elif _is_hidden(info, chosen_by):
            hidden += 1
        else:
            files[info.uri] = SourceFile(info.uri, info.fingerprint)
    return Inventory(
        files, listed_at_ms, _digest(files), skipped, hidden, frozenset(complete), frozenset(being_written)
    )


def narrowed(inventory: Inventory, absent: Collection[str]) -> Inventory:
    """The same listing without some URIs."""
    if not absent:
        return inventory
    files = {uri: file for uri, file in inventory.files.items() if uri not in absent}
    return replace(inventory, files=files, digest=_digest(files))


def _is_hidden(info: ObjectInfo, include: PathPattern | None) -> bool:
    *folders, name = info.key.split("/")
    marks = []
    if name.startswith(".") or any(folder.startswith(".") for folder in folders):
        marks.append("/.")
    if name == "_SUCCESS":
        marks.append(name)
    if "_temporary" in folders:
        marks.append("_temporary")
    if name.endswith(".tmp"):
        marks.append(".tmp")
    return any(include is None or not include.names(mark) for mark in marks)


def _digest(files: Mapping[str, SourceFile]) -> str:
    digest = hashlib.sha256()
    for uri in sorted(files):
        version = files[uri].fingerprint
        digest.update(f"{uri}\t{version.size}\t{version.mtime_us}\t{version.etag or ''}\n".encode())
    return digest.hexdigest()
