"""Read and write objects of the staging area, above all those of built files: receipts, tars, cut values.

The objects are immutable, written put-if-absent, and most are named by their hash. An object counts only if
ZooKeeper refers to it (rules R12, R13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pinot_assets.core.files import temporary_folder
from pinot_assets.core.stored_format import FIRST
from pinot_assets.core.untrusted import OBJECT, ByteLimit, reading
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import SnapshotCorrupt, SourceChanged, SourceError, TooLarge
from pinot_assets.ingest.contract.task_outputs import (
    receipt_key,
)
from pinot_assets.session.values.plan import Row
from pinot_assets.session.values.state import ObjectRef
from pinot_assets.snapshot.batch_receipt import rows_key
from pinot_assets.snapshot.manifest import SnapshotRef, sha256_hex
from pinot_assets.snapshot.published_files import RESTORE
from pinot_assets.snapshot.receipt import Failure, Output, Receipt
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.uris import check_key

T = TypeVar("T")

THREADS = 8
"""Objects of the staging area that are read, checked or copied at the same time."""

BATCH = 200
"""Objects that are deleted per check of the lease: an object store needs a few seconds for them."""


def tar_keys(segment: str) -> tuple[str, str]:
    """Return the keys of a staged segment: its tar, and the tar of its metadata."""
    return f"segments/{segment}.tar.gz", f"segments/{segment}.metadata.tar.gz"


def remove(
    store: ObjectStore, keys: Sequence[str], before_batch: Callable[[], None]
) -> Iterator[tuple[str, str]]:
    """Delete these objects; a missing object counts as deleted.

    :param before_batch: called before each batch; raises if the deletion must stop.
    :returns: yields each key once it is done, with why it could not be deleted, or "".
    """
    for start in range(0, len(keys), BATCH):
        before_batch()
        batch = keys[start : start + BATCH]
        if len(batch) <= THREADS:
            yield from ((key, _removed(store, key)) for key in batch)
        else:
            removed = in_threads(lambda key: _removed(store, key), batch, THREADS, "remove")
            yield from zip(batch, removed, strict=True)


def _removed(store: ObjectStore, key: str) -> str:
    try:
        store.delete(key)
    except SourceError as error:
        return error.reason
    return ""


class StagedFiles:
    """One table's folder of the staging area: its objects, receipts, and what they name.

    :param store: rooted at `<output.segment.dir.uri>/<tableNameWithType>`.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def session_uri(self, session: str) -> str:
        """The folder of one session."""
        return self.store.uri_of(f"sessions/{session}")

    def key_of(self, uri: str) -> str:
        """Key of an object that lies in this staging area.

        :raises SourceError: the URI is not in this staging area.
        """
        return self.store.key_of(uri)

    def read(self, uri: str) -> bytes:
        """Read a staged object."""
        return self.store.read(self.key_of(uri))

    def _address(self, ref: ObjectRef | SnapshotRef) -> str:
        return f"{self.store.uri}/{ref.key}"

    def _put(self, stem: str, suffix: str, data: bytes) -> ObjectRef:
        sha256 = sha256_hex(data)
        key = f"{stem}-{sha256}.{suffix}"
        self.store.put_if_absent(key, data)
        return ObjectRef(key, sha256)

    def _get(self, ref: ObjectRef) -> bytes:
        address, data = self._address(ref), self._read(ref.key)
        if sha256_hex(data) != ref.sha256:
            raise SnapshotCorrupt(
                f"{address} is not what was written there",
                why="its hash differs from the one in ZooKeeper",
                hint=RESTORE,
            )
        return data

    def _read(self, key: str, most: ByteLimit = OBJECT) -> bytes:
        """Read an object that was once written.

        :raises SnapshotCorrupt: it is missing, or larger than the limit of its kind.
        :raises SourceError: the store does not answer now; the object itself is not lost.
        """
        address = f"{self.store.uri}/{key}"
        with reading(address, SnapshotCorrupt, why="its name cannot be a key", hint=RESTORE):
            check_key(key)
        try:
            return self.store.read(key, most)
        except SourceError as error:
            if not isinstance(error, TooLarge) and self.store.stat(key) is not None:
                raise
            raise SnapshotCorrupt(f"{address} cannot be read", why=str(error), hint=RESTORE) from error

    def _parsed(self, ref: ObjectRef, parse: Callable[[bytes, str], T], kind: str) -> T:
        data, what = self._get(ref), self._address(ref)
        with reading(what, SnapshotCorrupt, why=f"it is not a {kind}", hint=RESTORE):
            return parse(data, what)

    # --- what built files leave ----------------------------------------------------------------------

    def put_receipt(self, session: str, receipt: Receipt) -> str:
        """Write a receipt for tars in this staging area; return its key.

        :raises StoreConflict: another receipt has that key.
        """
        keys = [self.key_of(o.tar_uri) for o in receipt.outputs]
        keys += map(rows_key, receipt.rows_objects)
        stats = map(self.store.stat, keys)
        receipt = replace(receipt, tars=tuple(tar.token if tar else "" for tar in stats))
        key = f"sessions/{session}/{receipt_key(receipt.uri, receipt.read, receipt.attempt)}"
        self.store.put_if_absent(key, receipt.to_bytes())
        return key

    def fetch_tar(self, output: Output, path: Path) -> None:
        """Copy a segment's tar into a local file; a tar of another size is not read to its end.

        :raises SnapshotCorrupt: the tar is not what was staged; then there is no local file.
        :raises SourceError: the tar is missing.
        """
        why = "its hash differs from its receipt's"
        try:
            sha256 = self.store.download(self.key_of(output.tar_uri), path, output.tar_bytes)
            if sha256 == output.tar_sha256:
                return
        except SourceChanged as changed:
            why = changed.why or changed.what
        path.unlink(missing_ok=True)
        raise SnapshotCorrupt(
            f"{output.tar_uri} is not what was staged there", why=why, hint="restore the object"
        )

    def put_renamed(self, output: Output, name: str) -> Output:
        """Copy a staged segment under another name, without building it again (rule R16).

        :raises SnapshotCorrupt: the tar is not what was staged.
        :raises SourceError: it is not there.
        """
        from pinot_assets.segment import rename_tar  # the whole writer comes with it

        with temporary_folder("rename") as folder:
            old, new = folder / "old.tar.gz", folder / "new.tar.gz"
            self.fetch_tar(output, old)
            renamed = rename_tar(old, new, name=name)
            tar, metadata = tar_keys(name)
            self.store.put_file_if_absent(tar, new)
            self.store.put_if_absent(metadata, renamed.metadata_tar)
        return replace(
            output,
            segment=name,
            crc=renamed.crc,
            tar_uri=self.store.uri_of(tar),
            tar_bytes=renamed.tar.bytes,
            tar_sha256=renamed.tar.sha256,
            metadata_uri=self.store.uri_of(metadata),
        )

    def put_skipped(self, session: str, row: Row, failure: Failure, number: int = FIRST) -> None:
        """Write a receipt without rows for an unreadable file that is skipped (edge case E17).

        :param number: the receipt's format.
        """
        self.put_receipt(
            session,
            Receipt(
                uri=row.uri,
                ordinal=row.ordinal,
                attempt=failure.attempt,
                read=row.planned,
                sha256="",
                rows=0,
                bad_rows=0,
                outputs=(),
                seconds=0.0,
                worker="",
                format=number,
            ),
        )
