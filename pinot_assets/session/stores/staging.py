"""The session's own objects in the staging area: plans, receipts, switches, snapshots.

All are immutable and written put-if-absent. Names of plans, switches, holds and snapshots carry their hash,
and only the reference in ZooKeeper counts (rules R12, R13).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeVar

from pinot_assets.core.limits import MIB, OBJECT, RECEIPT, RECEIPTS, ByteLimit
from pinot_assets.core.stored_format import FIRST, Marks, Stored, marks, plain, structured
from pinot_assets.core.temporary_folders import temporary_folder
from pinot_assets.core.text import plural, size
from pinot_assets.core.thread_map import in_threads
from pinot_assets.core.untrusted import listed, read_json, reading
from pinot_assets.errors import SnapshotCorrupt, SourceChanged, SourceError, TooLarge
from pinot_assets.ingest.contract.keys import CUT_VALUES, attempt_of, cut_key, file_id, receipt_key
from pinot_assets.ingest.contract.truncations import CutValues
from pinot_assets.segment import rename_tar
from pinot_assets.session.values.plan import Hold, Plan, Row, plan_from_parquet, plan_to_parquet
from pinot_assets.session.values.state import ObjectRef
from pinot_assets.snapshot.manifest import (
    RESTORE,
    PublishedFiles,
    Snapshot,
    SnapshotRef,
    files_to_parquet,
    header_from_bytes,
    header_to_bytes,
    sha256_hex,
    snapshot_from,
)
from pinot_assets.snapshot.receipt import Failure, Output, Receipt
from pinot_assets.source.object_info import ObjectInfo
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.uris import check_key

T = TypeVar("T")

THREADS = 8
"""Objects of the staging area that are looked at, or copied, at a time."""


@dataclass(frozen=True, slots=True)
class Switch(Stored):
    """Exactly what one switch replaces by what.

    :ivar number: `n` of `switch-<n>`, counted per session.
    :ivar carried: a published segment that stays, under a new name: its old name, and its place in
        `segments_to`. Only where Pinot does not take a replacement by nothing
        (`session/recover/placeholder_segment.py`).
    """

    number: int
    segments_from: tuple[str, ...]
    segments_to: tuple[Output, ...]
    carried: str = ""

    @property
    def names_to(self) -> tuple[str, ...]:
        """Segment names of `segments_to`."""
        return tuple(o.segment for o in self.segments_to)


@dataclass(frozen=True, slots=True)
class Reach:
    """What snapshots need.

    :ivar objects: keys of their own objects. Two of one number may share their rows.
    :ivar segments: whose tars they name.
    :ivar sessions: that published them, or a file in them.
    """

    objects: frozenset[str] = frozenset()
    segments: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()

    def __or__(self, other: Reach) -> Reach:
        return Reach(
            self.objects | other.objects, self.segments | other.segments, self.sessions | other.sessions
        )


class Staging:
    """Typed access to one table's folder of the staging area.

    :param store: rooted at `<output.segment.dir.uri>/<tableNameWithType>`.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    @property
    def segments_uri(self) -> str:
        """Where the tars lie."""
        return self.store.uri_of("segments")

    def session_uri(self, session: str) -> str:
        """The folder of one session."""
        return self.store.uri_of(f"sessions/{session}")

    # --- plans ---------------------------------------------------------------------------------------

    def put_plan(self, plan: Plan) -> ObjectRef:
        """Write the plan of one attempt."""
        return self._put(f"sessions/{plan.session}/plan-{plan.attempt}", "parquet", plan_to_parquet(plan))

    def plan(self, ref: ObjectRef) -> Plan:
        """Read a plan back."""
        return self._parsed(ref, plan_from_parquet, "plan")

    # --- receipts ------------------------------------------------------------------------------------

    def receipts(self, plan: Plan) -> dict[int, tuple[str, Receipt]]:
        """Valid receipts of the plan's rows, by ordinal, each with its key.

        A row that already accepted a receipt keeps that one (R11); another row takes the newest attempt's,
        unless that was revoked (R14).
        A receipt is valid when it parses and every tar that it names lies there as it was written (R12).

        :raises TooLarge: those of the plan's files have too many bytes together.
        """
        found: dict[int, tuple[str, Receipt]] = {}
        accepted = {r.ordinal: r.receipt for r in plan.done}
        folder, files = f"sessions/{plan.session}/files", {file_id(row.uri) for row in plan.rows}
        keys = self.fitting_receipts(
            info  # what else lies there is no receipt of a file of this plan
            for info in self.store.list(folder)
            if info.key.removeprefix(f"{folder}/").partition("-")[0] in files
        )
        receipts = in_threads(self._valid_receipt, keys, THREADS, "receipts")
        for key, receipt in zip(keys, receipts, strict=True):
            if receipt is None:
                continue
            wanted = accepted.get(receipt.ordinal)
            before = found.get(receipt.ordinal)
            if wanted is not None:
                newer = key == wanted
            else:
                newer = receipt.attempt <= plan.attempt and (
                    before is None or before[1].attempt < receipt.attempt
                )
            if newer:
                found[receipt.ordinal] = (key, receipt)
        revoked = {r.ordinal: r.receipt for r in plan.to_build}
        return {o: (key, receipt) for o, (key, receipt) in found.items() if revoked.get(o) != key}

    def fitting_receipts(self, infos: Iterable[ObjectInfo]) -> list[str]:
        """The keys of these receipts, which are about to be read.

        :raises TooLarge: they have too many bytes together; names the largest.
        """
        found = [*infos]
        if sum(info.fingerprint.size for info in found) > RECEIPTS.bytes:
            largest = max(found, key=lambda info: info.fingerprint.size)
            raise TooLarge(
                f"{plural(len(found), 'receipt')} of {self.store.uri} cannot be read",
                why=f"together they have more than {RECEIPTS.bytes // MIB:,} MiB, which is the most that is "
                f"read of {RECEIPTS.what}; the largest is {largest.key}, {size(largest.fingerprint.size)}",
                hint=f"{RECEIPTS.hint}; if they should not, find out who wrote them",
            )
        return [info.key for info in found]

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
        try:
            data = self.store.read(key, RECEIPT)
        except TooLarge:
            return None
        try:
            with reading(key, SnapshotCorrupt):
                return self._receipt_of(key, data)
        except SnapshotCorrupt:
            return None

    def _receipt_of(self, key: str, data: bytes) -> Receipt:
        """A receipt whose tars lie in this staging area."""
        receipt = Receipt.from_bytes(data, f"{self.store.uri}/{key}")
        for output in receipt.outputs:
            check_key(self.key_of(output.tar_uri))
            check_key(self.key_of(output.metadata_uri))
        return receipt

    def _valid_receipt(self, key: str) -> Receipt | None:
        receipt = self.readable_receipt(key)
        if receipt is None:
            return None
        whole = all(
            self._is_whole(output, token)
            for output, token in zip_longest(receipt.outputs, receipt.tars[: len(receipt.outputs)])
        )
        return receipt if whole else None

    def _is_whole(self, output: Output, token: str | None) -> bool:
        """Whether both tars are there, the big one with its content.

        It is read only where the store shows another version of it than when it was written: restored from
        a copy, say, or damaged.
        """
        key = self.key_of(output.tar_uri)
        found = self.store.stat(key)
        if found is None or found.size != output.tar_bytes:
            return False
        if self.store.stat(self.key_of(output.metadata_uri)) is None:
            return False
        return found.token == token or self.store.sha256(key) == output.tar_sha256

    def put_receipt(self, session: str, receipt: Receipt) -> str:
        """Write a receipt for tars that lie here; returns its key.

        :raises StoreConflict: another one stands there.
        """
        stats = [self.store.stat(self.key_of(o.tar_uri)) for o in receipt.outputs]
        receipt = replace(receipt, tars=tuple(found.token if found else "" for found in stats))
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
        keys: dict[str, str] = {}
        for info in self.store.list(f"sessions/{session}/{CUT_VALUES}"):
            stem, _, _ = info.key.rpartition("-")
            keys[stem] = info.key
        found = {}
        for receipt in receipts if keys else ():
            stem, _, _ = f"sessions/{session}/{cut_key(receipt.uri, receipt.read, 0)}".rpartition("-")
            if (key := keys.get(stem)) is not None:
                found[receipt.uri] = self._cut_values(key)
        return found

    def _cut_values(self, key: str) -> CutValues:
        hint = "restore the object, or clear the session, which builds its files anew"
        with reading(f"the count {self.store.uri}/{key}", SnapshotCorrupt, hint=hint):
            return CutValues.from_bytes(self.store.read(key, RECEIPT), f"{self.store.uri}/{key}")

    def key_of(self, uri: str) -> str:
        """Key of an object that lies in this staging area.

        :raises SourceError: the URI lies elsewhere.
        """
        return self.store.key_of(uri)

    def read(self, uri: str) -> bytes:
        """A staged object."""
        return self.store.read(self.key_of(uri))

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
            tar, metadata = f"segments/{name}.tar.gz", f"segments/{name}.metadata.tar.gz"
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
        receipt = Receipt(
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
        )
        self.put_receipt(session, receipt)

    # --- failures ------------------------------------------------------------------------------------

    def put_failures(
        self, session: str, attempt: int, failures: Iterable[Failure], number: int = FIRST
    ) -> ObjectRef:
        """Remember why files failed in this attempt (R14).

        :param number: the format; a list has no place for its own, so only the first one is.
        """
        listed = [plain(failure, number) for failure in failures]
        value = listed if number == FIRST else {"failures": listed, **marks(number)}
        return self._put(
            f"sessions/{session}/failures-{attempt}", "json", json.dumps(value, indent=1).encode()
        )

    def failures(self, ref: ObjectRef) -> tuple[Failure, ...]:
        """Read them back."""
        return self._parsed(ref, _failures, "list of failed files")

    # --- switches ------------------------------------------------------------------------------------

    def put_switch(self, session: str, switch: Switch) -> ObjectRef:
        """Write exactly what push n replaces by what (W1)."""
        data = _with_keys(_SWITCH, switch)
        return self._put(f"sessions/{session}/switch-{switch.number}", "json", data)

    def switch(self, ref: ObjectRef) -> Switch:
        """Read a switch back."""
        return self._parsed(ref, partial(_by_keys, Switch, _SWITCH), "switch")

    # --- holds ---------------------------------------------------------------------------------------

    def put_hold(self, session: str, hold: Hold) -> ObjectRef:
        """Remember what a rollback took back (R23)."""
        return self._put(f"sessions/{session}/hold", "json", _with_keys(_HOLD, hold))

    def hold(self, ref: ObjectRef) -> Hold:
        """Read a hold back."""
        return self._parsed(ref, partial(_by_keys, Hold, _HOLD), "hold")

    # --- snapshots -----------------------------------------------------------------------------------

    def put_snapshot(self, snapshot: Snapshot) -> SnapshotRef:
        """Write rows, then header (W6)."""
        files = files_to_parquet(snapshot.files, snapshot.format)
        rows = self._put(f"snapshots/{snapshot.seq}", "parquet", files)
        header = header_to_bytes(snapshot, SnapshotRef(rows.key, rows.sha256))
        ref = self._put(f"snapshots/{snapshot.seq}", "json", header)
        return SnapshotRef(ref.key, ref.sha256)

    def header(self, ref: SnapshotRef) -> Mapping[str, Any]:
        """What a snapshot says without its files, whose rows may be a million: `header_to_bytes`.

        :raises SnapshotCorrupt: it is missing or is not what its hash says (R18).
        """
        return self._parsed(ObjectRef(ref.key, ref.sha256), header_from_bytes, "header of a snapshot")

    def snapshot(self, ref: SnapshotRef) -> Snapshot:
        """Read a snapshot back.

        :raises SnapshotCorrupt: an object is missing or is not what its hash says (R18).
        """
        header = self.header(ref)
        return snapshot_from(header, self._published(header))

    def outline(self, ref: SnapshotRef) -> Snapshot:
        """A snapshot without its files.

        :raises SnapshotCorrupt: as `snapshot`.
        """
        return snapshot_from(self.header(ref), ())

    def reach(self, ref: SnapshotRef) -> Reach:
        """What a snapshot needs; of a million files it takes the columns alone.

        :raises SnapshotCorrupt: as `snapshot`.
        """
        header = self.header(ref)
        segments, sessions = self._published(header).names()
        objects = frozenset((ref.key, header["files"]["key"]))
        return Reach(objects, segments, sessions | {header["session"]})

    def _published(self, header: Mapping[str, Any]) -> PublishedFiles:
        ref = structured(ObjectRef, header["files"], "the name of a snapshot's rows")
        return PublishedFiles(self._get(ref), self._address(ref))

    # --- all -----------------------------------------------------------------------------------------

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


def _failures(data: bytes, what: str) -> tuple[Failure, ...]:
    value = read_json(data)
    if isinstance(value, Mapping):
        Marks.of(value).require_known(what)
        value = value["failures"]
    return tuple(structured(Failure, failure, what) for failure in listed(value))


_SWITCH: Final = {
    "number": "number",
    "segmentsFrom": "segments_from",
    "segmentsTo": "segments_to",
    "carried": "carried",
}
_HOLD: Final = {"files": "files", "removals": "removals", "versions": "versions"}
"""Keys of stored JSON, with the fields that they hold."""
_OPTIONAL: Final = frozenset({"versions"})
"""Those that are left out where they say nothing."""


def _with_keys(keys: Mapping[str, str], value: Stored) -> bytes:
    of_format = plain(value)
    said = {key: of_format[name] for key, name in keys.items() if name in of_format}
    values = {key: v for key, v in said.items() if v or key not in _OPTIONAL}
    return json.dumps(values | marks(value.format) | dict(value.kept), indent=1).encode()


def _by_keys(kind: type[T], keys: Mapping[str, str], data: bytes, what: str) -> T:
    value = read_json(data)
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if key not in keys}
        value = kept | {name: value[key] for key, name in keys.items() if key in value}
    return structured(kind, value, what)


def staged(staging: Staging, folder: str) -> Iterator[ObjectInfo]:
    """The objects of a folder of the staging area, none where the area was never written to."""
    if staging.store.exists_root():
        yield from staging.store.list(folder)
