"""Read and write objects of the staging area, above all those of built files: receipts, tars, cut values.

The objects are immutable, written put-if-absent, and most are named by their hash. An object counts only if
ZooKeeper refers to it (rules R12, R13).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import TypeVar

from pinot_assets.core.files import temporary_folder
from pinot_assets.core.stored_format import FIRST
from pinot_assets.core.text import plural, size
from pinot_assets.core.untrusted import MIB, OBJECT, RECEIPT, RECEIPTS, ByteLimit, reading
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import SnapshotCorrupt, SourceChanged, SourceError, TooLarge
from pinot_assets.ingest.contract.task_outputs import (
    CUT_VALUES,
    CutValues,
    attempt_of,
    cut_key,
    file_id,
    receipt_key,
)
from pinot_assets.session.values.plan import Plan, Row
from pinot_assets.session.values.state import ObjectRef
from pinot_assets.snapshot.batch_receipt import BATCHES, BatchReceipt, attempt_of_batch, rows_key
from pinot_assets.snapshot.manifest import SnapshotRef, sha256_hex
from pinot_assets.snapshot.published_files import RESTORE
from pinot_assets.snapshot.receipt import Failure, Output, Receipt
from pinot_assets.source.file_table import ObjectInfo
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

    def receipts(self, plan: Plan) -> dict[int, tuple[str, Receipt]]:
        """Return the valid receipts of the plan's rows, by ordinal, each with its key.

        A row that has accepted a receipt keeps it (R11). Any other row gets the newest attempt's receipt,
        unless that was revoked (R14).
        A receipt is valid if it parses and every tar that it names exists as it was written (R12).

        :raises TooLarge: the receipts of the plan's files have too many bytes together.
        """
        valid: dict[int, tuple[str, Receipt]] = {}
        accepted = {r.ordinal: r.receipt for r in (*plan.done, *plan.packs_done)}
        rows = (*plan.rows, *plan.packs)
        uris = {row.ordinal: row.uri for row in rows}
        folder, files = f"sessions/{plan.session}/files", {file_id(row.uri) for row in rows}
        keys = self.fitting_receipts(
            info  # what else lies there is no receipt of a file of this plan
            for info in self.store.list(folder)
            if info.key.removeprefix(f"{folder}/").partition("-")[0] in files
        )
        receipts = zip(keys, in_threads(self._valid_receipt, keys, THREADS, "receipts"), strict=True)
        for key, receipt in chain(receipts, self._of_batches(plan)):
            if receipt is None or accepted.get(receipt.ordinal, key) != key:
                continue
            if uris.get(receipt.ordinal, receipt.uri) != receipt.uri:
                continue  # of a plan that a restored ZooKeeper does not know
            before = valid.get(receipt.ordinal)
            is_newer = before is None or before[1].attempt < receipt.attempt
            if receipt.ordinal in accepted or (is_newer and receipt.attempt <= plan.attempt):
                valid[receipt.ordinal] = (key, receipt)
        revoked = {r.ordinal: r.receipt for r in (*plan.to_build, *plan.packs_to_build)}
        return {o: (key, receipt) for o, (key, receipt) in valid.items() if revoked.get(o) != key}

    def _of_batches(self, plan: Plan) -> Iterator[tuple[str, Receipt]]:
        """Yield the receipts of small files whose rows objects are there, each with its batch's key."""
        if not any(row.is_small for row in plan.rows):
            return
        keys = sorted(self.fitting_receipts(self.store.list(f"sessions/{plan.session}/{BATCHES}")))
        batches = in_threads(self._valid_batch, keys, THREADS, "receipts")
        for key, batch in zip(keys, batches, strict=True):
            yield from ((key, receipt) for receipt in (batch.files if batch is not None else ()))

    def _valid_batch(self, key: str) -> BatchReceipt | None:
        with suppress(TooLarge, SnapshotCorrupt):
            data = self.store.read(key, RECEIPT)
            with reading(key, SnapshotCorrupt):
                batch = BatchReceipt.from_bytes(data, f"{self.store.uri}/{key}")
            return batch if not batch.digest or self.ask_if_rows_whole(batch.digest, batch.token) else None
        return None

    def ask_if_rows_whole(self, digest: str, token: str = "") -> bool:
        """Whether a rows object exists with its content, which is read only if its version is another one.

        :param token: its version when it was written.
        """
        key = rows_key(digest)
        there = self.store.stat(key)
        return there is not None and (there.token == token or self.store.sha256(key) == digest)

    def fitting_receipts(self, infos: Iterable[ObjectInfo]) -> list[str]:
        """Return the keys of these receipts, after checking their size before they are read.

        :raises TooLarge: they have too many bytes together; the error names the largest.
        """
        listed = [*infos]
        if sum(info.fingerprint.size for info in listed) > RECEIPTS.bytes:
            largest = max(listed, key=lambda info: info.fingerprint.size)
            raise TooLarge(
                f"{plural(len(listed), 'receipt')} of {self.store.uri} cannot be read",
                why=f"together they have more than {RECEIPTS.bytes // MIB:,} MiB, the most that is "
                f"read of {RECEIPTS.what}; the largest is {largest.key}, "
                f"{size(largest.fingerprint.size)}",
                hint=f"{RECEIPTS.hint}; if they should not be so large, find out what wrote them",
            )
        return [info.key for info in listed]

    def newest_attempt(self, session: str) -> int:
        """Return the newest attempt of a session that wrote a receipt, 0 if none did."""
        files = (attempt_of(info.key) for info in self.store.list(f"sessions/{session}/files"))
        batches = (
            attempt_of_batch(info.key) or 0 for info in self.store.list(f"sessions/{session}/{BATCHES}")
        )
        return max(chain(files, batches), default=0)

    def accepted_receipts(self, plan: Plan) -> dict[int, Receipt]:
        """Read the receipts that a plan accepted, by ordinal (R11).

        :raises SnapshotCorrupt: one cannot be read.
        """
        done = (*plan.done, *plan.packs_done)
        keys = [*dict.fromkeys(row.receipt for row in done)]  # the files of a batch share one
        read = in_threads(self._receipts_in, keys, THREADS, "receipts")
        by_key = dict(zip(keys, read, strict=True))
        for row in done:
            if row.ordinal not in by_key[row.receipt]:
                raise SnapshotCorrupt(
                    f"the receipt {self.store.uri}/{row.receipt} is not one of {row.uri}", hint=RESTORE
                )
        return {row.ordinal: by_key[row.receipt][row.ordinal] for row in done}

    def _receipts_in(self, key: str) -> dict[int, Receipt]:
        """Read what a receipt says, by ordinal: one file, or all files of a batch."""
        if attempt_of_batch(key) is None:
            receipt = self._receipt(key)
            return {receipt.ordinal: receipt}
        data, address = self._read(key, RECEIPT), f"the receipt {self.store.uri}/{key}"
        with reading(address, SnapshotCorrupt, hint=RESTORE):
            return {receipt.ordinal: receipt for receipt in BatchReceipt.from_bytes(data, address).files}

    def _receipt(self, key: str) -> Receipt:
        data, address = self._read(key, RECEIPT), f"the receipt {self.store.uri}/{key}"
        with reading(address, SnapshotCorrupt, hint=RESTORE):
            return self._receipt_of(key, data)

    def readable_receipt(self, key: str) -> Receipt | None:
        """Return the receipt with that key, None if the object there is no receipt.

        :raises SourceError: the staging area does not answer, or there is no such object.
        """
        with suppress(TooLarge, SnapshotCorrupt):
            data = self.store.read(key, RECEIPT)
            with reading(key, SnapshotCorrupt):
                return self._receipt_of(key, data)
        return None

    def _receipt_of(self, key: str, data: bytes) -> Receipt:
        """Parse a receipt; all its tars must have keys in this staging area."""
        receipt = Receipt.from_bytes(data, f"{self.store.uri}/{key}")
        if receipt.rows_object:
            rows_key(receipt.rows_object)
        for output in receipt.outputs:
            check_key(self.key_of(output.tar_uri))
            check_key(self.key_of(output.metadata_uri))
        return receipt

    def _valid_receipt(self, key: str) -> Receipt | None:
        if (receipt := self.readable_receipt(key)) is None:
            return None
        token = receipt.tars[0] if receipt.tars else ""
        if receipt.rows_object and not self.ask_if_rows_whole(receipt.rows_object, token):
            return None
        whole = all(
            self._ask_if_whole(output, token)
            for output, token in zip_longest(receipt.outputs, receipt.tars[: len(receipt.outputs)])
        )
        return receipt if whole else None

    def _ask_if_whole(self, output: Output, token: str | None) -> bool:
        """Whether both tars exist, and the segment's tar has its content.

        That tar is read only if the store shows another version than when it was written: it may have been
        restored from a copy or damaged.
        """
        key = self.key_of(output.tar_uri)
        there = self.store.stat(key)
        if there is None or there.size != output.tar_bytes:
            return False
        if self.store.stat(self.key_of(output.metadata_uri)) is None:
            return False
        return there.token == token or self.store.sha256(key) == output.tar_sha256

    def put_receipt(self, session: str, receipt: Receipt) -> str:
        """Write a receipt for tars in this staging area; return its key.

        :raises StoreConflict: another receipt has that key.
        """
        keys = [self.key_of(o.tar_uri) for o in receipt.outputs]
        keys += [rows_key(receipt.rows_object)] if receipt.rows_object else []
        stats = map(self.store.stat, keys)
        receipt = replace(receipt, tars=tuple(tar.token if tar else "" for tar in stats))
        key = f"sessions/{session}/{receipt_key(receipt.uri, receipt.read, receipt.attempt)}"
        self.store.put_if_absent(key, receipt.to_bytes())
        return key

    def cut_values(self, session: str, receipts: Collection[Receipt]) -> dict[str, CutValues]:
        """Return the counts of cut values, by URI; only of files that have columns with cut values.

        A renamed receipt keeps the count of the attempt that built the file.

        :raises SnapshotCorrupt: a count cannot be read.
        """
        if not any(receipt.outputs or receipt.rows_object for receipt in receipts):
            return {}
        listed = self.store.list(f"sessions/{session}/{CUT_VALUES}")
        keys = {info.key.rpartition("-")[0]: info.key for info in listed}
        stems = {
            receipt.uri: f"sessions/{session}/{cut_key(receipt.uri, receipt.read, 0)}".rpartition("-")[0]
            for receipt in (receipts if keys else ())
        }
        return {uri: self._cut_values(keys[stem]) for uri, stem in stems.items() if stem in keys}

    def _cut_values(self, key: str) -> CutValues:
        hint = "restore the object, or clear the session, which then builds its files again"
        with reading(f"the count {self.store.uri}/{key}", SnapshotCorrupt, hint=hint):
            return CutValues.from_bytes(self.store.read(key, RECEIPT), f"{self.store.uri}/{key}")

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
