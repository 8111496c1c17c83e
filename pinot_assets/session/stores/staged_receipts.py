"""Read what built files left in the staging area: receipts, and counts of cut values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain, zip_longest

from pinot_assets.core.text import plural, size
from pinot_assets.core.untrusted import MIB, RECEIPT, RECEIPTS, reading
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import SnapshotCorrupt, TooLarge
from pinot_assets.ingest.contract.task_outputs import CUT_VALUES, CutValues, attempt_of, cut_key, file_id
from pinot_assets.session.stores.staged_files import THREADS, StagedFiles
from pinot_assets.session.values.plan import Plan
from pinot_assets.snapshot.batch_receipt import BATCHES, BatchReceipt, attempt_of_batch, rows_key
from pinot_assets.snapshot.published_files import RESTORE
from pinot_assets.snapshot.receipt import Output, Receipt
from pinot_assets.source.file_table import ObjectInfo
from pinot_assets.source.uris import check_key


class StagedReceipts(StagedFiles):
    """One table's folder of the staging area, with the receipts of its sessions."""

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

    def readable_batch(self, key: str) -> BatchReceipt | None:
        """Return the batch receipt with that key, None if the object there is none.

        :raises SourceError: the staging area does not answer, or there is no such object.
        """
        with suppress(TooLarge, SnapshotCorrupt):
            data = self.store.read(key, RECEIPT)
            with reading(key, SnapshotCorrupt):
                return BatchReceipt.from_bytes(data, f"{self.store.uri}/{key}")
        return None

    def _valid_batch(self, key: str) -> BatchReceipt | None:
        if (batch := self.readable_batch(key)) is None:
            return None
        whole = all(self.ask_if_rows_whole(one.digest, one.token) for one in batch.stored_rows)
        return batch if whole else None

    def missing_rows(self, digests: Iterable[str]) -> frozenset[str]:
        """Return those of these rows objects that do not exist; none is read."""
        asked = sorted({*digests})
        stats = in_threads(lambda digest: self.store.stat(rows_key(digest)), asked, THREADS, "kept rows")
        return frozenset(digest for digest, there in zip(asked, stats, strict=True) if there is None)

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
        for digest in receipt.rows_objects:
            rows_key(digest)
        if not receipt.is_placed:
            raise ValueError(f"the rows of {receipt.uri} cannot be where it says")
        for output in receipt.outputs:
            check_key(self.key_of(output.tar_uri))
            check_key(self.key_of(output.metadata_uri))
        return receipt

    def _valid_receipt(self, key: str) -> Receipt | None:
        if (receipt := self.readable_receipt(key)) is None:
            return None
        # A receipt with rows objects has no tars: these are the objects' versions then.
        kept = zip_longest(receipt.rows_objects, receipt.tars[: len(receipt.rows_objects)], fillvalue="")
        if not all(self.ask_if_rows_whole(digest, token) for digest, token in kept):
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

    def cut_values(self, session: str, receipts: Collection[Receipt]) -> dict[str, CutValues]:
        """Return the counts of cut values, by URI; only of files that have columns with cut values.

        A renamed receipt keeps the count of the attempt that built the file.

        :raises SnapshotCorrupt: a count cannot be read.
        """
        if not any(receipt.outputs or receipt.places for receipt in receipts):
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
