"""An object store in memory; `tests/contract/test_object_store.py` holds it to the port."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakValueDictionary

from pinot_assets.core.untrusted import OBJECT, ByteLimit
from pinot_assets.errors import SourceError, StoreConflict
from pinot_assets.source import Fingerprint
from pinot_assets.source.file_table import ObjectInfo, Page, pages_of
from pinot_assets.source.object_store import copied, past_end, probe_put_if_absent, require_range, whole
from pinot_assets.source.uris import check_key, join_uri, key_below, quote_key, unquote_key

Around = Callable[[str], AbstractContextManager[object]]
"""Wraps one call; what it raises before or after is the trouble."""


class _Space(dict[str, tuple[bytes, Fingerprint]]):
    """The objects of stores that lie in one place; gone with the last of them."""


_SPACES: WeakValueDictionary[str, _Space] = WeakValueDictionary()
_numbers = itertools.count()


def new_memory(folder: str = "") -> MemoryObjectStore:
    """A store in an empty place of its own.

    :param folder: where in that place it is rooted; what lies beside it cannot be seen.
    """
    name, space = f"mem://{next(_numbers)}", _Space()
    _SPACES[name] = space
    return open_memory(f"{name}/{quote_key(folder)}" if folder else name)


def open_memory(uri: str) -> MemoryObjectStore:
    """The store of a folder of a place that is still there."""
    place = "/".join(uri.split("/", 3)[:3])
    prefix = unquote_key(uri.removeprefix(place).strip("/"))
    return MemoryObjectStore(uri, _SPACES[place], f"{prefix}/" if prefix else "")


@dataclass
class MemoryObjectStore:
    """An `ObjectStore` (see there); two of the same URI share what they hold.

    :ivar around: wraps every put and delete (a crash, a lost reply, another driver's turn).
    :ivar on_list: called at the start of every listing.
    """

    uri: str
    _objects: _Space
    _prefix: str
    around: Around = field(default=lambda what: nullcontext())
    on_list: Callable[[], None] = field(default=lambda: None)

    def __reduce__(self) -> tuple[Callable[[str], MemoryObjectStore], tuple[str]]:
        return open_memory, (self.uri,)

    def uri_of(self, key: str) -> str:
        return join_uri(self.uri, key)

    def key_of(self, uri: str) -> str:
        return key_below(self.uri, uri)

    # --- the port --------------------------------------------------------------------------------

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        self.on_list()
        full_prefix = self._prefix + (f"{prefix}/" if prefix else "")
        for path, (_, version) in tuple(self._objects.items()):
            if path.startswith(full_prefix):
                key = path.removeprefix(self._prefix)
                yield ObjectInfo(key, self.uri_of(key), version)

    def pages(self, after: str = "") -> Iterator[Page]:
        listed = sorted(self.list(), key=lambda info: info.key)
        return pages_of(info for info in listed if info.key > after)

    def stat(self, key: str) -> Fingerprint | None:
        found = self._objects.get(self._path(key))
        return found[1] if found else None

    def ask_if_folder(self, key: str) -> bool:
        return any(path.startswith(f"{self._path(key)}/") for path in tuple(self._objects))

    def read(self, key: str, most: ByteLimit = OBJECT) -> bytes:
        found = self._objects.get(self._path(key))
        if found is None:
            raise SourceError(f"{self.uri_of(key)} does not exist")
        return whole(self.uri_of(key), len(found[0]), [found[0]], most)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        require_range(self.uri_of(key), start, length)
        if not (data := self.read(key)[start : start + length]):
            raise past_end(self.uri_of(key), start)
        return data

    def sha256(self, key: str) -> str:
        return hashlib.sha256(self.read(key)).hexdigest()

    def download(self, key: str, path: Path, size: int) -> str:
        data = self._objects[self._path(key)][0] if self.stat(key) else self.read(key)
        return copied(self.uri_of(key), [data], path, size)

    def put_if_absent(self, key: str, data: bytes) -> None:
        path = self._path(key)
        with self.around(f"put {key}"):
            there = self._objects.get(path)
            if there is not None and there[0] != data:
                raise StoreConflict(f"{self.uri_of(key)} already exists with other content")
            if there is None:
                self._objects[path] = data, Fingerprint(len(data), next(_numbers))

    def put_file_if_absent(self, key: str, path: Path) -> None:
        self.put_if_absent(key, path.read_bytes())

    def delete(self, key: str) -> None:
        path = self._path(key)
        with self.around(f"delete {key}"):
            self._objects.pop(path, None)

    def probe(self) -> None:
        probe_put_if_absent(self)

    def exists_root(self) -> bool:
        return True

    # --- what others do to it --------------------------------------------------------------------

    def write(self, key: str, data: bytes, mtime_us: int | None = None) -> None:
        """A file's owner writes it, over what was there.

        :param mtime_us: None is a new one.
        """
        mtime = next(_numbers) if mtime_us is None else mtime_us
        self._objects[self._path(key)] = data, Fingerprint(len(data), mtime)

    def remove(self, key: str) -> None:
        """A file's owner removes it."""
        del self._objects[self._path(key)]

    def _path(self, key: str) -> str:
        check_key(key)
        return self._prefix + key
