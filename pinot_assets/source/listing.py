"""Lists the source completely: the files that the table should equal."""

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
from pinot_assets.core.untrusted import fields_of_json, fitting, listed
from pinot_assets.snapshot.receipt import SourceFile
from pinot_assets.source.file_patterns import PathPattern, compile_pattern, path_of_uri
from pinot_assets.source.file_table import COLUMNS, FileTable, Page, files_of, page_of, raw_of, without_root
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.uris import is_plain, key_below

_META: Final = b"part"


@dataclass(frozen=True, slots=True)
class ListingPart:
    """The result of one stretch of a listing; fields as in `listing.Inventory`, for this stretch.

    :ivar columns: the chosen files, as `file_table.COLUMNS`.
    :ivar last: the key after which the listing continues; empty if this part reached the end.
    """

    columns: pa.Table
    skipped: int = 0
    hidden: int = 0
    complete: frozenset[str] = frozenset()
    being_written: frozenset[str] = frozenset()
    last: str = ""


def part_to_arrow(part: ListingPart, beside: JsonMapping) -> bytes:
    """Return a part as an Arrow stream; the columns are written as they are in memory.

    :param beside: plain values to store with it.
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
    """Read a part that `part_to_arrow` wrote; the columns are views of the data.

    If the data are not a part, the errors of the parsers are raised.

    :param what: its address, for errors.
    :raises NeedsNewerRelease: its format is unknown to this release.
    """
    table = pa.ipc.open_stream(data).read_all()
    table.validate(full=True)  # text offsets outside of the data would crash the process
    meta = fields_of_json(table.schema.metadata[_META])
    Marks.of(meta).require_known(what)
    require_schema(table.schema, COLUMNS)
    part = ListingPart(
        table.replace_schema_metadata(None),
        meta["skipped"],
        meta["hidden"],
        frozenset(listed(meta["complete"], str)),
        frozenset(listed(meta["being_written"], str)),
        meta["last"],
    )
    return fitting(part), meta["beside"]


@dataclass(frozen=True, slots=True)
class Inventory:
    """One complete listing.

    :ivar files: the chosen files by URI.
    :ivar listed_at_ms: when the listing began, by this machine's clock. Only `readiness` compares it with
        a file's time, and only if a rule needs an age: the two clocks may differ (edge case E28).
    :ivar digest: sha256 in hex of all URIs and versions: equal listings have equal digests.
    :ivar skipped: number of objects that the patterns did not choose.
    :ivar hidden: number of objects that the patterns chose and that were left out for their name (see
        `take_inventory`).
    :ivar complete: URIs of directories that hold the completeness marker.
    :ivar being_written: URIs of directories in which a writer works: their `_temporary` holds something.
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

    Files that upstream writers leave are left out unless the include pattern names them (edge case E26):
    names with a leading dot (also of a folder above), `_SUCCESS`, `_temporary/…`, `*.tmp`. The pattern names
    them by `/.`, `_SUCCESS`, `_temporary` or `.tmp` in its text. Symbolic links are never listed.

    :param marker: name of the files that mark their directories as complete; they are never chosen.
    :param on_listed: called with the number of objects so far, after some thousand each.
    :raises ListingFailed: the listing did not complete; there is then no inventory (invariant I12).
    :raises SourceError: a pattern cannot be used.
    """
    listed_at_ms = time.time_ns() // 1_000_000
    pages = _reporting(store.pages(), on_listed)
    return inventory_of([list_part(store.uri, pages, Choice(include, exclude, marker))], listed_at_ms)


@dataclass(frozen=True, slots=True)
class Choice:
    """The rules that choose files of a store: the arguments of `take_inventory`."""

    include: str | None = None
    exclude: str | None = None
    marker: str | None = None


def list_part(
    root: str, pages: Iterable[Page], choice: Choice, is_late: Callable[[], bool] = lambda: False
) -> ListingPart:
    """List until the end, or until `is_late`: then up to the end of the current page, at least one page.

    If the store cannot continue a listing in the middle, it is listed to its end, however late it gets.

    :param root: the store's URI.
    :param pages: of its objects, after the `last` of the part before.
    :raises ListingFailed: the listing did not complete; there is then no part.
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
    """Return all parts of one listing as one inventory.

    :param parts: each continues the one before; the last one reached the end.
    :param listed_at_ms: when the last part began. A file listed in an earlier part may be older by now than
        it was then, never younger.
    """
    assert parts[-1].last == "", "the listing continues"
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
    """Return the same listing without these URIs."""
    if not absent:
        return inventory
    files = {uri: file for uri, file in inventory.files.items() if uri not in absent}
    narrower = FileTable([page_of(files.values())])
    return replace(inventory, files=narrower, digest=narrower.digest)


# Names that need more than a pattern's decision: what writers leave behind, and escapes.
_SPECIAL = r"%|//|/\.|/_SUCCESS$|/_temporary/|\.tmp$"
_BEHIND_SLASH = b"/._"  # after a slash; without one of these, or `%`, `_SPECIAL` can only match at the end


class _Look:
    """Chooses files of a listing, page by page, and counts the others.

    :ivar skipped: as in `Inventory`; so are `hidden`, `complete` and `being_written`.
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
        """Return the chosen files of a page."""
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
        """Return which of the names below the root have to be looked at one by one; None: none of them."""
        if not self._root_is_plain:
            return pc.is_valid(below)
        if not (_has_mark(raw_of(below)) or any(pc.any(pc.ends_with(below, e)).as_py() for e in self._ends)):
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
        """Return which paths the patterns choose, whatever characters they hold."""
        included = [True] * len(paths) if self._include is None else self._include.those_of(paths)
        excluded = [False] * len(paths) if self._exclude is None else self._exclude.those_of(paths)
        return [yes and not no for yes, no in zip(included, excluded, strict=True)]

    def _takes(self, uri: str, is_let_in: bool) -> bool:
        """Whether one file is chosen, whatever its name; counts it if it is not."""
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
    """Whether some names, joined together, hold a mark of a special name, except one at a name's end."""
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
