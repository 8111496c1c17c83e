"""The set of files that a table is to equal, as one complete listing says now."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.stored_format import Marks, require_schema
from pinot_assets.core.untrusted import fitting, listed, read_json
from pinot_assets.snapshot.receipt import SourceFile
from pinot_assets.source.file_patterns import PathPattern, compile_pattern, path_of_uri
from pinot_assets.source.file_table import COLUMNS, FileTable, Page, files_of, page_of, text_of, without_root
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.uris import is_plain, key_below

_META: Final = b"part"


@dataclass(frozen=True, slots=True)
class ListingPart:
    """What one stretch of a listing gave; fields as `listing.Inventory` has them, of this stretch.

    :ivar columns: the chosen files, as `file_table.COLUMNS`.
    :ivar last: the key that the listing goes on behind; empty when it has come to its end.
    """

    columns: pa.Table
    skipped: int = 0
    hidden: int = 0
    complete: frozenset[str] = frozenset()
    being_written: frozenset[str] = frozenset()
    last: str = ""


def part_to_arrow(part: ListingPart, beside: JsonMapping) -> bytes:
    """A part as an Arrow stream: what it holds is written as it lies in memory.

    :param beside: plain values that are kept with it.
    """
    meta = {
        "skipped": part.skipped,
        "hidden": part.hidden,
        "complete": sorted(part.complete),
        "being_written": sorted(part.being_written),
        "last": part.last,
        "beside": dict(beside),
    }
    table = part.columns.replace_schema_metadata({_META: json.dumps(meta).encode()})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def part_from_arrow(data: bytes, what: str = "a part of a listing") -> tuple[ListingPart, JsonObject]:
    """Inverse of `part_to_arrow`; the columns are views of the data.

    What is no part raises what its parsers raise.

    :param what: its address, for errors.
    :raises NeedsNewerRelease: it is of a format that this release does not know.
    """
    table = pa.ipc.open_stream(data).read_all()
    table.validate(full=True)  # places of texts that point outside of it would end the process
    meta = read_json(table.schema.metadata[_META])
    Marks.of(meta).require_known(what)
    require_schema(table.schema, COLUMNS)
    part = ListingPart(
        table.replace_schema_metadata(None),
        meta["skipped"],
        meta["hidden"],
        frozenset(listed(meta["complete"])),
        frozenset(listed(meta["being_written"])),
        meta["last"],
    )
    return fitting(part), meta["beside"]


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
    on_listed: Callable[[int], None] = lambda _: None,
) -> Inventory:
    """List a store completely and choose files by Java path patterns (`patterns.compile_pattern`).

    What upstream writers leave around is left out unless the include pattern spells it (edge case E26):
    names that start with a dot (or lie in such a folder), `_SUCCESS`, `_temporary/…`, `*.tmp`. To spell it
    is to have `/.`, `_SUCCESS`, `_temporary` or `.tmp` in its text. Symbolic links are never listed.

    :param marker: name of the files that mark their directories as complete; these are never chosen.
    :param on_listed: told how many objects were seen so far, some thousand at a time.
    :raises ListingFailed: the listing did not complete; there is then no inventory (invariant I12).
    :raises SourceError: a pattern cannot be used.
    """
    listed_at_ms = time.time_ns() // 1_000_000
    pages = _reporting(store.pages(), on_listed)
    return inventory_of([list_part(store.uri, pages, Choice(include, exclude, marker))], listed_at_ms)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files of a store count: the arguments of `take_inventory`."""

    include: str | None = None
    exclude: str | None = None
    marker: str | None = None


def list_part(
    root: str, pages: Iterable[Page], choice: Choice, is_late: Callable[[], bool] = lambda: False
) -> ListingPart:
    """List on until the end, or until it gets late: then as far as the page at hand, and at least one.

    A store that cannot be gone on with in the middle is listed to its end, however late it gets.

    :param root: the store's URI.
    :param pages: of its objects, behind the `last` of the part before.
    :raises ListingFailed: the listing broke off; there is then nothing of this part.
    :raises SourceError: a pattern cannot be used.
    """
    look = _Look(root, choice)
    chosen, last = [COLUMNS.empty_table()], ""
    for page in pages:
        chosen.append(look.chosen(page.columns))
        if page.last and is_late():
            last = page.last
            break
    return ListingPart(
        pa.concat_tables(chosen),
        look.skipped,
        look.hidden,
        frozenset(look.complete),
        frozenset(look.being_written),
        last,
    )


def inventory_of(parts: Sequence[ListingPart], listed_at_ms: int) -> Inventory:
    """All parts of one listing, put together.

    :param parts: each behind the one before; the last has come to the end.
    :param listed_at_ms: when the last of them began. A file that was looked at earlier may be older by now
        than it was then, never younger.
    """
    assert parts[-1].last == "", "the listing goes on"
    files = FileTable([part.columns for part in parts])
    return Inventory(
        files,
        listed_at_ms,
        files.digest,
        sum(part.skipped for part in parts),
        sum(part.hidden for part in parts),
        frozenset().union(*(part.complete for part in parts)),
        frozenset().union(*(part.being_written for part in parts)),
    )


def _reporting(pages: Iterable[Page], on_listed: Callable[[int], None]) -> Iterator[Page]:
    listed = 0
    for page in pages:
        yield page
        listed += page.columns.num_rows
        on_listed(listed)


def narrowed(inventory: Inventory, absent: Collection[str]) -> Inventory:
    """The same listing without some URIs."""
    if not absent:
        return inventory
    files = {uri: file for uri, file in inventory.files.items() if uri not in absent}
    narrower = FileTable([page_of(files.values())])
    return replace(inventory, files=narrower, digest=narrower.digest)


# What more than a pattern decides about: names that writers leave around, and escapes.
_SPECIAL = r"%|//|/\.|/_SUCCESS$|/_temporary/|\.tmp$"
_BEHIND_SLASH = b"/._"  # nothing of the middle of it without one of these


class _Look:
    """What is chosen of a listing, page by page, and what is not.

    :ivar skipped: as `Inventory` has it, as are `hidden`, `complete` and `being_written`.
    """

    def __init__(self, root: str, choice: Choice) -> None:
        self._root, self._marker = root.removesuffix("/"), choice.marker
        self._include = None if choice.include is None else compile_pattern(choice.include)
        self._exclude = None if choice.exclude is None else compile_pattern(choice.exclude)
        self._root_path = path_of_uri(root)
        self._root_is_plain = is_plain(self._root_path.replace(":", "", 1))
        self._ends = [".tmp"] if choice.marker is None else [".tmp", f"/{choice.marker}"]
        self.skipped = self.hidden = 0
        self.complete: set[str] = set()
        self.being_written: set[str] = set()

    def chosen(self, page: pa.Table) -> pa.Table:
        """Those of the files that count."""
        page = page.combine_chunks()
        below = without_root(page.column("uri"), len(self._root))
        special = self._special(below)
        ones = page.slice(0, 0)
        if special is not None:
            plain = pc.invert(special)
            ones, page, below = page.filter(special), page.filter(plain), below.filter(plain)
        matched = self._matched(below)
        kept = page if matched is None or pc.all(matched).as_py() else page.filter(matched)
        self.skipped += page.num_rows - kept.num_rows
        files = list(files_of(ones))
        let_in = self._let_in([path_of_uri(file.uri) for file in files])
        taken = [
            file for file, is_let_in in zip(files, let_in, strict=True) if self._takes(file.uri, is_let_in)
        ]
        return pa.concat_tables([kept, page_of(taken)]) if taken else kept

    def _special(self, below: pa.Array) -> pa.Array | None:
        """Which of the names below the root need to be looked at one by one; None: none of them."""
        if not self._root_is_plain:
            return pc.is_valid(below)
        if not (_has_mark(text_of(below)) or any(pc.any(pc.ends_with(below, e)).as_py() for e in self._ends)):
            return None
        special = pc.match_substring_regex(below, _SPECIAL)
        return special if self._marker is None else pc.or_(special, pc.ends_with(below, f"/{self._marker}"))

    def _matched(self, below: pa.Array) -> pa.Array | None:
        matched = None if self._include is None else self._include.matching(self._root_path, below)
        if self._exclude is None:
            return matched
        others = pc.invert(self._exclude.matching(self._root_path, below))
        return others if matched is None else pc.and_(matched, others)

    def _let_in(self, paths: list[str]) -> list[bool]:
        """Which paths the patterns let in, whatever they hold."""
        included = [True] * len(paths) if self._include is None else self._include.those_of(paths)
        excluded = [False] * len(paths) if self._exclude is None else self._exclude.those_of(paths)
        return [yes and not no for yes, no in zip(included, excluded, strict=True)]

    def _takes(self, uri: str, is_let_in: bool) -> bool:
        """Whether one file counts, whatever its name."""
        folder, _, name = uri.rpartition("/")
        above, writing, _ = uri.removeprefix(self._root).partition("/_temporary/")
        if writing:
            self.being_written.add(self._root + above)
        if name == self._marker:
            self.complete.add(folder)
        elif not is_let_in:
            self.skipped += 1
        elif _is_hidden(key_below(self._root, uri), self._include):
            self.hidden += 1
        else:
            return True
        return False


def _has_mark(text: memoryview) -> bool:
    """Whether any of some names, put together, holds what a special one has, but for its end."""
    codes = np.frombuffer(text, np.uint8)
    behind = bytes(codes[np.flatnonzero(codes[:-1] == ord("/")) + 1])
    return b"%" in bytes(text) or any(code in behind for code in _BEHIND_SLASH)


def _is_hidden(key: str, include: PathPattern | None) -> bool:
    *folders, name = key.split("/")
    marks = {
        "/.": any(part.startswith(".") for part in (*folders, name)),
        "_SUCCESS": name == "_SUCCESS",
        "_temporary": "_temporary" in folders,
        ".tmp": name.endswith(".tmp"),
    }
    present = [mark for mark, is_there in marks.items() if is_there]
    return any(include is None or not include.names(mark) for mark in present)
