"""Object stores: one narrow port to the folders that files come from and segments are staged in.

Small on purpose. What differs between a disk and a cloud (how a listing is complete, how put-if-absent is
atomic) is settled below this port, and one contract suite holds both to it.
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
    """A folder of immutable or foreign objects. Keys are relative to the root, with `/` between segments.

    Picklable: an executor opens its own connection, and resolves its own environment, when it first
    uses the store. Every method raises SourceError where the store cannot be reached or refuses.
    """

    @property
    def uri(self) -> str:
        """The root, normalised, without a slash at its end."""

    def uri_of(self, key: str) -> str:
        """The URI of a key."""

    def key_of(self, uri: str) -> str:
        """The key of a URI below the root.

        :raises SourceError: it lies elsewhere.
        """

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects below a folder of the store, recursively, in no promised order.

        Complete or an error: only an iterator that ends by itself has told everything. Folders, folder
        markers and symbolic links are no objects. A prefix below which nothing lies is an empty listing.

        :param prefix: a folder as key, whole segments; empty for all.
        :raises ListingFailed: at any time while iterating; what came before is then no listing (I12).
        """

    def pages(self, after: str = "") -> Iterator[Page]:
        """`list` of all, as columns: for a million objects. It may be cut and gone on with later.

        A listing that stops behind a page with a `last`, and another one after that key, tell together every
        object that stood there from the first's beginning to the second's end.

        :param after: the `last` of a page; empty for all.
        :raises ListingFailed: as `list`.
        """

    def stat(self, key: str) -> Fingerprint | None:
        """The object's version now, None where there is none; equal to what `list` says of it."""

    def ask_if_folder(self, key: str) -> bool:
        """Whether a folder of that name is there: of a bucket, whether objects lie below it."""

    def read(self, key: str, most: ByteLimit = OBJECT) -> bytes:
        """A small object's content.

        :raises SourceError: it does not exist.
        :raises TooLarge: it is larger than that; no more of it was read.
        """

    def sha256(self, key: str) -> str:
        """Hex digest of an object's content, read as a stream."""

    def download(self, key: str, path: Path, size: int) -> str:
        """Copy an object into a local file (replaced if there) and return its sha256 in hex.

        Streams, hashing what it writes; on an error the file is removed.

        :param size: bytes that it has, as the caller knows it; no more than those fill the disk.
        :raises SourceChanged: it has another size.
        :raises SourceError: the object does not exist.
        """

    def put_if_absent(self, key: str, data: bytes) -> None:
        """Write an object that nobody ever sees torn, unless one stands there already (rule R13).

        One with the same content counts as success, so a repeated or lost write is no error.

        :raises StoreConflict: one with other content stands there. It is left as it is.
        """

    def put_file_if_absent(self, key: str, path: Path) -> None:
        """`put_if_absent` with a local file's content."""

    def delete(self, key: str) -> None:
        """Remove an object; one that does not exist is fine."""

    def probe(self) -> None:
        """Prove that the store can be written, read and deleted, and honours put-if-absent.

        :raises SourceError: it does not; names what failed.
        """

    def exists_root(self) -> bool:
        """Whether the root is positively there (a readable folder; a reachable bucket).

        :returns: False when it is positively not there.
        :raises SourceError: neither is known. An empty source is believed only after True (edge case E2).
        """


class RootedStore:
    """What every store says of its place.

    :ivar root: the folder.
    """

    root: Root

    @property
    def uri(self) -> str:
        """See `ObjectStore.uri`."""
        return self.root.uri

    def uri_of(self, key: str) -> str:
        """The root, a slash and the key in percent-encoding."""
        return join_uri(self.uri, key)

    def key_of(self, uri: str) -> str:
        """Inverse of `uri_of`."""
        return key_below(self.uri, uri)


def whole(uri: str, size: int, chunks: Iterable[bytes], most: ByteLimit) -> bytes:
    """The content of an object, read in chunks.

    :param size: what the store says of it. It may lie: the chunks are counted, too.
    :raises TooLarge: either is more than `most`.
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


def copied(uri: str, chunks: Iterable[bytes], path: Path, size: int) -> str:
    """Write an object that is read in chunks into a file; the body of every store's `download`.

    :returns: the hex SHA-256 of what was written.
    :raises SourceChanged: it has another size; the file is removed, as after any error.
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
                f"{uri} is another one than was looked at",
                why=f"it has {'more' if left < 0 else 'less'} than the {size:,} bytes that it had",
                hint="let its writer finish; the next trigger reads it again",
            )
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return digest.hexdigest()


def probe_key() -> str:
    """A name that no other probe has. No folder of its own, which several executors that probe at once would
    make and remove."""
    return f".pinot-assets-probe-{uuid.uuid4().hex}"


def probe_put_if_absent(store: ObjectStore) -> None:
    """The body of every store's `probe`.

    :raises SourceError: as `ObjectStore.probe`.
    """
    key = probe_key()
    store.put_if_absent(key, b"first")  # outside: a delete that fails too would hide why
    try:
        try:
            store.put_if_absent(key, b"second")
        except StoreConflict:
            pass
        else:
            raise SourceError(
                f"{store.uri} ignores put-if-absent",
                why="a second write to the same name was accepted",
                hint="use a store that honours If-None-Match on PUT (AWS S3, MinIO, Ceph, s3proxy, …)",
            )
        if store.read(key) != b"first":
            raise SourceError(
                f"{store.uri} does not keep what it is given",
                why="the probe object read back differs",
                hint="check for a proxy or cache between this machine and the store",
            )
    finally:
        store.delete(key)
    if store.stat(key) is not None:
        raise SourceError(
            f"{store.uri} does not delete", why="the probe object is still there after a delete"
        )
