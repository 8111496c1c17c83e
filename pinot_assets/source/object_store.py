"""Object stores: one narrow protocol for the source's folders and the staging area.

It is small on purpose. Disks and clouds differ (when a listing is complete, how put-if-absent is atomic);
the implementations hide that, and one contract suite tests them all.
"""

from __future__ import annotations

import hashlib
import io
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from pinot_assets.core.untrusted import OBJECT, ByteLimit
from pinot_assets.errors import SourceChanged, SourceError, StoreConflict, TooLarge
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.source.file_table import ObjectInfo, Page
from pinot_assets.source.uris import Root, join_uri, key_below

# Bytes held in memory at a time while a file is copied or hashed.
CHUNK_BYTES = 4 * 1024 * 1024


class ObjectStore(Protocol):
    """A folder of objects that never change or are not ours. Keys are relative to the root, with `/` between.

    Picklable: an executor opens its own connection and resolves the references in its own environment when
    it first uses the store. Every method raises SourceError if the store cannot be reached or refuses.
    """

    @property
    def uri(self) -> str:
        """Return the root's normalised URI, without a slash at its end."""

    def uri_of(self, key: str) -> str:
        """Return the URI of a key."""

    def key_of(self, uri: str) -> str:
        """Return the key of a URI below the root.

        :raises SourceError: the URI is not below the root.
        """

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield all objects below a folder of the store, recursively, in any order.

        Complete or an error: only an iterator that ends by itself has yielded all. Folders, folder markers
        and symbolic links are not objects. A prefix without objects gives an empty listing.

        :param prefix: a folder as key, whole segments; empty for all.
        :raises ListingFailed: at any time of the iteration; the objects so far are then no listing (I12).
        """

    def pages(self, after: str = "") -> Iterator[Page]:
        """Yield all objects of `list` in pages of columns, fast for a million. It can be continued later.

        If one listing stops after a page with a `last`, and another one begins after that key, the two
        together have every object that existed from the start of the first to the end of the second.

        :param after: the `last` of a page; empty for all.
        :raises ListingFailed: as `list`.
        """

    def stat(self, key: str) -> Fingerprint | None:
        """Return the object's version now, equal to the one of `list`; None if there is no object."""

    def ask_if_folder(self, key: str) -> bool:
        """Whether a folder of that name exists; in a bucket: whether objects lie below it."""

    def read(self, key: str, most: ByteLimit = OBJECT) -> bytes:
        """Return a small object's content.

        :raises SourceError: it does not exist.
        :raises TooLarge: it is larger than `most`; reading stopped there.
        """

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Return some bytes of an object: fewer than `length` if it ends before.

        :param start: position of the first one, from 0.
        :raises SourceError: the object does not exist, or ends at or before `start`.
        :raises TooLarge: `length` is more than an object of the staging area may have.
        """

    def sha256(self, key: str) -> str:
        """Return the sha256 (hex) of an object's content, read as a stream."""

    def download(self, key: str, path: Path, size: int) -> str:
        """Copy an object into a local file (replaced if it exists) and return its sha256 in hex.

        It streams and hashes what it writes; after an error it removes the file.

        :param size: the object's size in bytes, as the caller knows it; it never writes more.
        :raises SourceChanged: the object has another size.
        :raises SourceError: the object does not exist.
        """

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Write an object if there is none yet; readers only ever see it complete (rule R13).

        If the same content is there, the call succeeds, so a repeated or lost write is no error.

        :raises StoreConflict: an object with other content is there. It stays as it is.
        """

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """Like `put_if_absent`, with a local file's content."""

    def delete(self, key: str) -> None:
        """Remove an object; no error if it does not exist."""

    def probe(self) -> None:
        """Check that the store can write, read and delete, and supports put-if-absent.

        :raises SourceError: it cannot; the error names what failed.
        """

    def exists_root(self) -> bool:
        """Whether the root exists for certain (a readable folder; a reachable bucket).

        :returns: False if it certainly does not exist.
        :raises SourceError: neither is certain. Only after True we believe an empty source (edge case E2).
        """


class RootedStore:
    """URIs and keys of a store, the same for every store.

    :ivar root: the store's folder.
    """

    root: Root

    @property
    def uri(self) -> str:
        """See `ObjectStore.uri`."""
        return self.root.uri

    def uri_of(self, key: str) -> str:
        """Return the root, a slash and the key in percent-encoding."""
        return join_uri(self.uri, key)

    def key_of(self, uri: str) -> str:
        """Return the key of a URI: the inverse of `uri_of`."""
        return key_below(self.uri, uri)


def whole(uri: str, size: int, chunks: Iterable[bytes], most: ByteLimit) -> bytes:
    """Return an object's content from its chunks.

    :param size: as the store reports it. The report may be wrong, so the chunks are counted, too.
    :raises TooLarge: the reported or the counted size is more than `most`.
    """
    limit, content = most.bytes, io.BytesIO()
    if size <= limit:
        for chunk in chunks:
            content.write(chunk)
            if content.tell() > limit:
                break
        else:
            return content.getvalue()
    raise TooLarge(f"{uri} is not read", why=most.why, hint=most.hint)


def require_range(uri: str, start: int, length: int) -> None:
    """Refuse to read so many bytes of an object at once.

    :raises TooLarge: they are more than an object of the staging area may have.
    """
    if start < 0 or not 0 < length <= OBJECT.bytes:
        raise TooLarge(f"{uri} is not read", why=OBJECT.why, hint=OBJECT.hint)


def past_end(uri: str, start: int) -> SourceError:
    """Return the error for a range that begins where the object has no byte."""
    return SourceError(f"Cannot read {uri}", why=f"it ends at or before byte {start:,}")


def copied(uri: str, chunks: Iterable[bytes], path: Path, size: int) -> str:
    """Write an object's chunks into a file; every store's `download` uses this.

    :returns: the SHA-256 (hex) of the written bytes.
    :raises SourceChanged: the object has another size; the file is removed, as after any error.
    """
    digest, left = hashlib.sha256(), size
    try:
        with path.open("wb") as target:
            for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    break
                digest.update(chunk)
                target.write(chunk)
        if left:
            raise SourceChanged(
                f"{uri} is not the file that was listed",
                why=f"it has {'more' if left < 0 else 'less'} than the {size:,} bytes that were listed",
                hint="wait for its writer; the next trigger reads it again",
            )
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return digest.hexdigest()


def probe_key() -> str:
    """Return a name that no other probe has. It has no folder, because executors that probe at the same time
    would create and remove it for each other."""
    return f".pinot-assets-probe-{uuid.uuid4().hex}"


def probe_put_if_absent(store: ObjectStore) -> None:
    """Write, read and delete a probe object; every store's `probe` uses this.

    :raises SourceError: as `ObjectStore.probe`.
    """
    key = probe_key()
    store.put_if_absent(key, b"first")  # outside the try: a failed delete would hide the failed write
    try:
        try:
            store.put_if_absent(key, b"second")
        except StoreConflict:
            pass
        else:
            raise SourceError(
                f"{store.uri} ignores put-if-absent",
                why="a second write to the same name was accepted",
                hint="use a store that supports If-None-Match on PUT (AWS S3, MinIO, Ceph, s3proxy, …)",
            )
        if store.read(key) != b"first":
            raise SourceError(
                f"{store.uri} does not keep what is written",
                why="the probe object read back differs",
                hint="check for a proxy or cache between this machine and the store",
            )
    finally:
        store.delete(key)
    if store.stat(key) is not None:
        raise SourceError(
            f"{store.uri} does not delete", why="the probe object is still there after a delete"
        )
