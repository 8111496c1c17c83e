"""Files on a local (or shared, POSIX) disk as an object store.

It uses `os.scandir`, because obstore's local store silently drops names such as `a#1`, and its put-if-absent
does not fsync.
"""

from __future__ import annotations

import builtins
import errno
import filecmp
import hashlib
import os
import re
import shutil
import socket
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from pinot_assets.core.untrusted import OBJECT, ByteLimit
from pinot_assets.errors import ListingFailed, SourceChanged, SourceError, StoreConflict
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.source.file_table import ObjectInfo, Page, pages_of
from pinot_assets.source.object_store import (
    CHUNK_BYTES,
    RootedStore,
    copied,
    past_end,
    probe_put_if_absent,
    require_range,
    whole,
)
from pinot_assets.source.uris import Root, check_key

# The folder of unfinished writes, on the same file system as their targets. Never listed.
TEMPORARY = ".pinot-assets-tmp"

DEAD_S = 24 * 3600
"""A writer on another host counts as dead after so many seconds without a write."""

_TEMPORARY = re.compile(r"(?P<host>.+)-(?P<pid>[0-9]+)-[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class LocalObjectStore(RootedStore):
    """An `ObjectStore` (see there) below a local folder."""

    root: Root

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield the tree's regular files; symbolic links are neither followed nor listed (edge case E26)."""
        return self._walk(prefix, ())

    def pages(self, after: str = "") -> Iterator[Page]:
        """Return the files of `list` in pages; a disk lists one file at a time."""
        return pages_of(self._walk("", tuple(after.split("/")) if after else ()))

    def _walk(self, prefix: str, after: tuple[str, ...]) -> Iterator[ObjectInfo]:
        """Yield the files below a prefix, folder by folder, in the order of their names.

        :param after: path of one of them, to yield only the files after it; empty for all.
        """
        if not self.exists_root():
            raise ListingFailed(f"{self.uri} does not exist", hint="create the folder, or correct the URI")
        start = self._path(prefix) if prefix else self.root.path
        if not os.path.isdir(start):
            return
        pending = self._behind(start, f"{prefix}/" if prefix else "", after)
        while pending:
            entry, key, rest = pending.pop()
            try:
                if entry.is_symlink():
                    continue
                if entry.is_dir():
                    if entry.name != TEMPORARY:
                        pending += self._behind(entry.path, f"{key}/", rest or ())
                    continue
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # deleted since the folder was read
            except OSError as error:
                raise _listing_failed(self.uri, error) from error
            if rest is None and stat.S_ISREG(status.st_mode):
                yield ObjectInfo(key, self.uri_of(key), _fingerprint(status))

    def _behind(
        self, folder: str, base: str, after: tuple[str, ...]
    ) -> builtins.list[tuple[os.DirEntry[str], str, tuple[str, ...] | None]]:
        """Return the entries of a folder that are not completely before a path in it, last name first.

        :returns: entry, key, and the rest of the path inside the entry; None if the entry is after the path.
        """
        first = after[0] if after else ""
        entries = sorted(self._scan(folder), key=lambda entry: entry.name, reverse=True)
        return [
            (entry, base + entry.name, after[1:] if entry.name == first else None)
            for entry in entries
            if entry.name >= first
        ]

    def stat(self, key: str) -> Fingerprint | None:
        """Reads size and mtime; None also if the key is not a regular file."""
        status = self._status(key)
        return _fingerprint(status) if status is not None and stat.S_ISREG(status.st_mode) else None

    def ask_if_folder(self, key: str) -> bool:
        """True for a folder, also an empty one; False for a symbolic link to one."""
        status = self._status(key)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def _status(self, key: str) -> os.stat_result | None:
        with _mapped(f"Cannot read the attributes of {self.uri_of(key)}"):
            try:
                return os.lstat(self._path(key))
            except (FileNotFoundError, NotADirectoryError):
                return None

    def read(self, key: str, most: ByteLimit = OBJECT) -> bytes:
        """Reads the file."""
        with _mapped(f"Cannot read {self.uri_of(key)}"), self._opened(key) as file:
            size = os.fstat(file.fileno()).st_size
            return whole(self.uri_of(key), size, iter(lambda: file.read(CHUNK_BYTES), b""), most)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Reads that part of the file."""
        require_range(self.uri_of(key), start, length)
        with _mapped(f"Cannot read {self.uri_of(key)}"), self._opened(key) as file:
            file.seek(start)
            if not (data := file.read(length)):
                raise past_end(self.uri_of(key), start)
            return data

    def sha256(self, key: str) -> str:
        """Hashes the file."""
        with _mapped(f"Cannot read {self.uri_of(key)}"), self._opened(key) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def download(self, key: str, path: Path, size: int) -> str:
        """Copies in chunks and hashes what it writes."""
        with _mapped(f"Cannot copy {self.uri_of(key)}"), self._opened(key) as source:
            return copied(self.uri_of(key), iter(lambda: source.read(CHUNK_BYTES), b""), path, size)

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Writes a temporary file, syncs it and links it (rule R13)."""
        self._put(key, lambda target: target.write(data))

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """Writes a temporary file, syncs it and links it (rule R13); never links the given file itself."""
        with path.open("rb") as source:
            self._put(key, lambda target: shutil.copyfileobj(source, target, CHUNK_BYTES))

    def delete(self, key: str) -> None:
        """Unlinks the file; its folder stays."""
        with _mapped(f"Cannot delete {self.uri_of(key)}"), suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(self._path(key))

    def probe(self) -> None:
        """Tries put-if-absent; also removes files that killed writers left."""
        probe_put_if_absent(self)
        with _mapped(f"Cannot clean up in {self.uri}"):
            self._delete_dead()

    def exists_root(self) -> bool:
        """Whether the root is a readable folder."""
        with _mapped(f"Cannot read the folder {self.uri}"):
            try:
                with os.scandir(self.root.path):
                    return True
            except FileNotFoundError:
                return False

    @contextmanager
    def _opened(self, key: str) -> Iterator[BufferedReader]:
        """Open a regular file of this folder for reading.

        Below the root each name is opened by itself, so that neither the file nor a folder above it can lead
        elsewhere, even if somebody just replaced it by a symbolic link. The root itself may be a link.

        :raises SourceChanged: the file is a symbolic link, a pipe or a device, or lies below one.
        """
        *folders, name = key.split("/")
        check_key(key)
        place = os.open(self.root.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for folder in folders:
                place, above = self._open_at(place, folder, key, os.O_DIRECTORY), place
                os.close(above)
            # Without O_NONBLOCK the open would wait for a pipe's writer.
            file = self._open_at(place, name, key, os.O_NONBLOCK)
        finally:
            os.close(place)
        with os.fdopen(file, "rb") as opened:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise self._not_regular(key)
            yield opened

    def _open_at(self, place: int, name: str, key: str, how: int) -> int:
        try:
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | how, dir_fd=place)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO) or _is_link(name, place):
                raise self._not_regular(key) from None
            raise

    def _not_regular(self, key: str) -> SourceChanged:
        return SourceChanged(
            f"{self.uri_of(key)} is not read",
            why="it is not a regular file, or a folder above it is a symbolic link, and pinot-assets "
            "follows none",
            hint="put the file itself there",
        )

    def _path(self, key: str) -> str:
        check_key(key)
        return os.path.join(self.root.path, key)

    def _scan(self, folder: str) -> builtins.list[os.DirEntry[str]]:
        # The list is read at once, so that few folders are open at a time, however deep the tree.
        try:
            with os.scandir(folder) as entries:
                return builtins.list(entries)
        except OSError as error:
            raise _listing_failed(self.uri, error) from error

    def _put(self, key: str, write: Callable[[BinaryIO], object]) -> None:
        """Write a temporary file, sync, link, sync the folder: a name always has its whole content."""
        path = self._path(key)
        folder = os.path.dirname(path)
        name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"
        temporary = os.path.join(self.root.path, TEMPORARY, name)
        with _mapped(f"Cannot write {self.uri_of(key)}"):
            os.makedirs(os.path.dirname(temporary), exist_ok=True)
            _make_folders(folder)
            try:
                with open(temporary, "xb") as file:
                    write(file)
                    file.flush()
                    os.fsync(file.fileno())
                self._link(temporary, path, key)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
            _sync_folder(folder)

    def _link(self, temporary: str, path: str, key: str) -> None:
        try:
            os.link(temporary, path)
        except FileExistsError:
            if not filecmp.cmp(temporary, path, shallow=False):
                raise StoreConflict(
                    f"{self.uri_of(key)} already exists with other content",
                    hint="read it and continue from its content; pinot-assets never overwrites objects here",
                ) from None

    def _delete_dead(self) -> None:
        folder = os.path.join(self.root.path, TEMPORARY)
        now = os.stat(folder).st_mtime  # by the disk's own clock: we have just written something there
        for entry in self._scan(folder):
            with suppress(OSError):  # it is gone already, or belongs to another user
                if _is_dead(entry.name, now - entry.stat(follow_symlinks=False).st_mtime):
                    os.unlink(entry.path)


def _is_link(name: str, place: int) -> bool:
    # If a folder is expected, Linux reports a link as "not a directory".
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
    return False


def _is_dead(temporary: str, age_s: float) -> bool:
    """Whether the writer of an unfinished file is dead. On this host its process is gone; of another host we
    know only the file's age: more than a day."""
    if (writer := _TEMPORARY.fullmatch(temporary)) is None:
        return False
    if writer["host"] == socket.gethostname():
        import psutil  # only a writer that died leaves something to look at

        return not psutil.pid_exists(int(writer["pid"]))
    return age_s > DEAD_S


def _fingerprint(status: os.stat_result) -> Fingerprint:
    return Fingerprint(size=status.st_size, mtime_us=status.st_mtime_ns // 1000)


def _make_folders(path: str) -> None:
    """Create missing folders and sync their parents, because a file in a lost folder would be lost, too."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder)
        _sync_folder(os.path.dirname(folder))


def _sync_folder(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _mapped(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SourceError(what, why=error.strerror, hint=_hint(error)) from error


def _listing_failed(uri: str, error: OSError) -> ListingFailed:
    return ListingFailed(
        f"Listing {uri} did not complete", why=f"{error.filename}: {error.strerror}", hint=_hint(error)
    )


def _hint(error: OSError) -> str:
    return _HINTS.get(type(error), "check the disk and its mount")


_HINTS: dict[type[OSError], str] = {
    FileNotFoundError: "it was removed meanwhile, or the path is wrong",
    PermissionError: "give the user that runs Dagster (and Spark) access to the folder",
    NotADirectoryError: "the URI must name a folder",
}
