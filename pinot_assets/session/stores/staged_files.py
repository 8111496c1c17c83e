"""Objects of the staging area, and of them what built files leave: receipts, tars, counts of cut values.

They are immutable, written put-if-absent, most of them named by their hash. Only the reference in ZooKeeper
counts (rules R12, R13).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
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
from pinot_assets.segment import rename_tar
from pinot_assets.session.values.plan import Plan, Row
from pinot_assets.session.values.state import ObjectRef
from pinot_assets.snapshot.manifest import RESTORE, SnapshotRef, sha256_hex
from pinot_assets.snapshot.receipt import Failure, Output, Receipt
from pinot_assets.source.file_table import ObjectInfo
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.uris import check_key

T = TypeVar("T")

THREADS = 8
"""Objects of the staging area that are looked at, or copied, at a time."""

BATCH = 200
"""Objects that are removed on one look at the lease: a few seconds' work of an object store."""


def tar_keys(segment: str) -> tuple[str, str]:
    """Where a segment is staged: the tar, and that of its metadata."""
    return f"segments/{segment}.tar.gz", f"segments/{segment}.metadata.tar.gz"


def remove(
    store: ObjectStore, keys: Sequence[str], before_batch: Callable[[], None]
) -> Iterator[tuple[str, str]]:
    """Delete these objects; what is not there any more counts as deleted.

    :param before_batch: looks whether that may go on, and raises where it may not.
    :returns: each key, as it is done, with why it could not be deleted, "" where it was.
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

        :raises SourceError: the URI lies elsewhere.
        """
        return self.store.key_of(uri)

    def read(self, uri: str) -> bytes:
        """A staged object."""
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
        """What an object holds that was written once.

        :raises SnapshotCorrupt: it is missing, or more than is read of its kind.
        :raises SourceError: the store does not answer now: it has lost nothing.
        """
        address = f"{self.store.uri}/{key}"
        with reading(address, SnapshotCorrupt, why="its name is no key", hint=RESTORE):
            check_key(key)
        try:
            return self.store.read(key, most)
        except SourceError as error:
            if not isinstance(error, TooLarge) and self.store.stat(key) is not None:
                raise
            raise SnapshotCorrupt(f"{address} cannot be read", why=str(error), hint=RESTORE) from error

    def _parsed(self, ref: ObjectRef, parse: Callable[[bytes, str], T], kind: str) -> T:
        data, what = self._get(ref), self._address(ref)
        with reading(what, SnapshotCorrupt, why=f"it is no {kind}", hint=RESTORE):
            return parse(data, what)

    # --- what built files leave ----------------------------------------------------------------------

    def receipts(self, plan: Plan) -> dict[int, tuple[str, Receipt]]:
        """Valid receipts of the plan's rows, by ordinal, each with its key.

        A row that already accepted a receipt keeps that one (R11); another row takes the newest attempt's,
        unless that was revoked (R14).
        A receipt is valid when it parses and every tar that it names lies there as it was written (R12).

        :raises TooLarge: those of the plan's files have too many bytes together.
        """
        valid: dict[int, tuple[str, Receipt]] = {}
        accepted = {r.ordinal: r.receipt for r in plan.done}
        folder, files = f"sessions/{plan.session}/files", {file_id(row.uri) for row in plan.rows}
        keys = self.fitting_receipts(
            info  # what else lies there is no receipt of a file of this plan
            for info in self.store.list(folder)
            if info.key.removeprefix(f"{folder}/").partition("-")[0] in files
        )
        receipts = in_threads(self._valid_receipt, keys, THREADS, "receipts")
        for key, receipt in zip(keys, receipts, strict=True):
            if receipt is None or accepted.get(receipt.ordinal, key) != key:
                continue
            before = valid.get(receipt.ordinal)
            is_newer = before is None or before[1].attempt < receipt.attempt
            if receipt.ordinal in accepted or (is_newer and receipt.attempt <= plan.attempt):
                valid[receipt.ordinal] = (key, receipt)
        revoked = {r.ordinal: r.receipt for r in plan.to_build}
        return {o: (key, receipt) for o, (key, receipt) in valid.items() if revoked.get(o) != key}

    def fitting_receipts(self, infos: Iterable[ObjectInfo]) -> list[str]:
        """The keys of these receipts, which are about to be read.

        :raises TooLarge: they have too many bytes together; names the largest.
        """
        listed = [*infos]
        if sum(info.fingerprint.size for info in listed) > RECEIPTS.bytes:
            largest = max(listed, key=lambda info: info.fingerprint.size)
            raise TooLarge(
                f"{plural(len(listed), 'receipt')} of {self.store.uri} cannot be read",
                why=f"together they have more than {RECEIPTS.bytes // MIB:,} MiB, which is the most that is "
                f"read of {RECEIPTS.what}; the largest is {largest.key}, {size(largest.fingerprint.size)}",
                hint=f"{RECEIPTS.hint}; if they should not, find out who wrote them",
            )
        return [info.key for info in listed]

    def newest_attempt(self, session: str) -> int:
        """The newest attempt of a session that wrote a receipt, 0 where none did."""
        listed = (info.key for info in self.store.list(f"sessions/{session}/files"))
        return max((attempt_of(key) for key in listed), default=0)

    def accepted_receipts(self, plan: Plan) -> dict[int, Receipt]:
        """The receipts that a plan accepted, by ordinal, as they were written (R11).

        :raises SnapshotCorrupt: one cannot be read.
        """
        done = plan.done
        receipts = in_threads(lambda row: self._receipt(row.receipt), done, THREADS, "receipts")
        return {row.ordinal: receipt for row, receipt in zip(done, receipts, strict=True)}

    def _receipt(self, key: str) -> Receipt:
        data, address = self._read(key, RECEIPT), f"the receipt {self.store.uri}/{key}"
        with reading(address, SnapshotCorrupt, hint=RESTORE):
            return self._receipt_of(key, data)

    def readable_receipt(self, key: str) -> Receipt | None:
        """The receipt of that key, None where something else lies there.

        :raises SourceError: the staging area cannot be asked, or nothing lies there.
        """
        with suppress(TooLarge, SnapshotCorrupt):
            data = self.store.read(key, RECEIPT)
            with reading(key, SnapshotCorrupt):
                return self._receipt_of(key, data)
        return None

    def _receipt_of(self, key: str, data: bytes) -> Receipt:
        """A receipt whose tars lie in this staging area."""
        receipt = Receipt.from_bytes(data, f"{self.store.uri}/{key}")
        for output in receipt.outputs:
            check_key(self.key_of(output.tar_uri))
            check_key(self.key_of(output.metadata_uri))
        return receipt

    def _valid_receipt(self, key: str) -> Receipt | None:
        if (receipt := self.readable_receipt(key)) is None:
            return None
        whole = all(
            self._ask_if_whole(output, token)
            for output, token in zip_longest(receipt.outputs, receipt.tars[: len(receipt.outputs)])
        )
        return receipt if whole else None

    def _ask_if_whole(self, output: Output, token: str | None) -> bool:
        """Whether both tars are there, the big one with its content.

        It is read only where the store shows another version of it than when it was written: restored from
        a copy, say, or damaged.
        """
        key = self.key_of(output.tar_uri)
        there = self.store.stat(key)
        if there is None or there.size != output.tar_bytes:
            return False
        if self.store.stat(self.key_of(output.metadata_uri)) is None:
            return False
        return there.token == token or self.store.sha256(key) == output.tar_sha256

    def put_receipt(self, session: str, receipt: Receipt) -> str:
        """Write a receipt for tars that lie here; returns its key.

        :raises StoreConflict: another one stands there.
        """
        stats = [self.store.stat(self.key_of(o.tar_uri)) for o in receipt.outputs]
        receipt = replace(receipt, tars=tuple(tar.token if tar else "" for tar in stats))
        key = f"sessions/{session}/{receipt_key(receipt.uri, receipt.read, receipt.attempt)}"
        self.store.put_if_absent(key, receipt.to_bytes())
        return key

    def cut_values(self, session: str, receipts: Collection[Receipt]) -> dict[str, CutValues]:
        """What columns of files lost when they were built, by URI; only those of files with such columns.

        A receipt under another name keeps the count of the attempt that built it.

        :raises SnapshotCorrupt: a count cannot be read.
        """
        if not any(receipt.outputs for receipt in receipts):
            return {}
        listed = self.store.list(f"sessions/{session}/{CUT_VALUES}")
        keys = {info.key.rpartition("-")[0]: info.key for info in listed}
        stems = {
            receipt.uri: f"sessions/{session}/{cut_key(receipt.uri, receipt.read, 0)}".rpartition("-")[0]
            for receipt in (receipts if keys else ())
        }
        return {uri: self._cut_values(keys[stem]) for uri, stem in stems.items() if stem in keys}

    def _cut_values(self, key: str) -> CutValues:
        hint = "restore the object, or clear the session, which builds its files anew"
        with reading(f"the count {self.store.uri}/{key}", SnapshotCorrupt, hint=hint):
            return CutValues.from_bytes(self.store.read(key, RECEIPT), f"{self.store.uri}/{key}")

    def fetch_tar(self, output: Output, path: Path) -> None:
        """Copy a segment's tar into a file; one of another size is not read to its end.

        :raises SnapshotCorrupt: it is not what was staged; there is no file then.
        :raises SourceError: it is not there.
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
        """A receipt without rows for a file that cannot be read and is to be left out (edge case E17).

        :param number: its format.
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
