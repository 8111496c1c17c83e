"""The session's own objects in the staging area: plans, failures, switches, holds, snapshots."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.stored_format import (
    FIRST,
    Marks,
    Stored,
    by_keys,
    marks,
    plain,
    structured,
    with_keys,
)
from pinot_assets.core.untrusted import listed, read_json
from pinot_assets.core.waiting import in_threads
from pinot_assets.errors import SnapshotCorrupt, SourceError
from pinot_assets.ingest.contract.task_outputs import attempt_of, file_id
from pinot_assets.session.stores.plan_parquet import plan_from_parquet, plan_to_parquet
from pinot_assets.session.stores.staged_files import THREADS
from pinot_assets.session.stores.staged_receipts import StagedReceipts
from pinot_assets.session.values.hold import Hold
from pinot_assets.session.values.plan import Plan
from pinot_assets.session.values.state import ObjectRef
from pinot_assets.snapshot.batch_receipt import BATCHES
from pinot_assets.snapshot.manifest import (
    Snapshot,
    SnapshotRef,
    header_from_bytes,
    header_to_bytes,
    sha256_hex,
    snapshot_from,
)
from pinot_assets.snapshot.packs import (
    MemberList,
    PublishedPack,
    members_from_parquet,
    members_key,
    members_sha256,
    members_to_parquet,
    packs_from_parquet,
    packs_to_parquet,
)
from pinot_assets.snapshot.published_files import RESTORE, PublishedFiles, files_to_parquet
from pinot_assets.snapshot.receipt import Failure, Output, Receipt
from pinot_assets.source.file_table import ObjectInfo

S = TypeVar("S", bound=Stored)


@dataclass(frozen=True, slots=True)
class Switch(Stored):
    """The replacement of exactly these segments by exactly those.

    :ivar number: `n` of `switch-<n>`, counted per session.
    :ivar carried: the old name of the placeholder segment, a published segment that stays under a new name;
        `segments_to` has the new one. Only if Pinot refuses a replacement by nothing
        (`session/commit/one_switch.py`), else "".
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
    """What must stay in the staging area for some snapshots.

    :ivar objects: keys of their own objects. Two snapshots with one number may share their rows.
    :ivar segments: names of the segments whose tars they need.
    :ivar sessions: sessions that published them, or a file in them.
    """

    objects: frozenset[str] = frozenset()
    segments: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()

    def __or__(self, other: Reach) -> Reach:
        return Reach(
            self.objects | other.objects, self.segments | other.segments, self.sessions | other.sessions
        )


class Staging(StagedReceipts):
    """Typed access to all that one table has in the staging area."""

    # --- plans ---------------------------------------------------------------------------------------

    def put_plan(self, plan: Plan) -> ObjectRef:
        """Write the plan of one attempt."""
        return self._put(f"sessions/{plan.session}/plan-{plan.attempt}", "parquet", plan_to_parquet(plan))

    def plan(self, ref: ObjectRef) -> Plan:
        """Read a plan back."""
        return self._parsed(ref, plan_from_parquet, "plan")

    # --- failures ------------------------------------------------------------------------------------

    def put_failures(
        self, session: str, attempt: int, failures: Iterable[Failure], number: int = FIRST
    ) -> ObjectRef:
        """Store why files failed in this attempt (R14).

        :param number: the format. A plain list cannot state its format, so only format 1 writes one.
        """
        listed = [plain(failure, number) for failure in failures]
        value = listed if number == FIRST else {"failures": listed, **marks(number)}
        return self._put(
            f"sessions/{session}/failures-{attempt}", "json", json.dumps(value, indent=1).encode()
        )

    def failures(self, ref: ObjectRef) -> tuple[Failure, ...]:
        """Read the failures of an attempt back."""
        return self._parsed(ref, _failures, "list of failed files")

    # --- switches ------------------------------------------------------------------------------------

    def put_switch(self, session: str, switch: Switch) -> ObjectRef:
        """Store a switch (W1)."""
        data = json.dumps(with_keys(switch), indent=1).encode()
        return self._put(f"sessions/{session}/switch-{switch.number}", "json", data)

    def switch(self, ref: ObjectRef) -> Switch:
        """Read a switch back."""
        return self._parsed(ref, partial(_of_keys, Switch), "switch")

    # --- holds ---------------------------------------------------------------------------------------

    def put_hold(self, session: str, hold: Hold) -> ObjectRef:
        """Store the hold of a rollback (R23)."""
        said = with_keys(hold)
        if not hold.versions:
            said.pop("versions", None)
        return self._put(f"sessions/{session}/hold", "json", json.dumps(said, indent=1).encode())

    def hold(self, ref: ObjectRef) -> Hold:
        """Read a hold back."""
        return self._parsed(ref, partial(_of_keys, Hold), "hold")

    # --- member lists --------------------------------------------------------------------------------

    def put_members(self, members: MemberList) -> str:
        """Write a member list; return its key, which identifies it."""
        data = members_to_parquet(members)
        key = members_key(sha256_hex(data))
        self.store.put_if_absent(key, data)
        return key

    def members(self, key: str) -> MemberList:
        """Read a member list back.

        :raises SnapshotCorrupt: it is missing, or its content does not match its key.
        """
        return self._parsed(ObjectRef(key, members_sha256(key)), members_from_parquet, "member list")

    # --- snapshots -----------------------------------------------------------------------------------

    def put_snapshot(self, snapshot: Snapshot) -> SnapshotRef:
        """Write files and packs, then the header (W6)."""
        files = self._put(
            f"snapshots/{snapshot.seq}", "parquet", files_to_parquet(snapshot.files, snapshot.format)
        )
        packs = None
        if snapshot.packs:
            packs = self._put(f"snapshots/{snapshot.seq}", "parquet", packs_to_parquet(snapshot.packs))
        header = header_to_bytes(
            snapshot, _snapshot_ref(files), None if packs is None else _snapshot_ref(packs)
        )
        return _snapshot_ref(self._put(f"snapshots/{snapshot.seq}", "json", header))

    def header(self, ref: SnapshotRef) -> JsonMapping:
        """Read a snapshot's header, without its files, which may be a million: see `header_to_bytes`.

        :raises SnapshotCorrupt: the header is missing, or its content does not match its hash (R18).
        """
        return self._parsed(ObjectRef(ref.key, ref.sha256), header_from_bytes, "header of a snapshot")

    def snapshot(self, ref: SnapshotRef) -> Snapshot:
        """Read a snapshot back.

        :raises SnapshotCorrupt: an object is missing, or its content does not match its hash (R18).
        """
        header = self.header(ref)
        files, packs = self._published(header), self._packs(header)
        if lacking := files.packs() - {pack.name for pack in packs}:
            raise SnapshotCorrupt(
                f"{self._address(ref)} has files in packs that it does not name",
                why=f"first: {min(lacking)}",
                hint=RESTORE,
            )
        return snapshot_from(header, files, packs)

    def outline(self, ref: SnapshotRef) -> Snapshot:
        """Read a snapshot without its files.

        :raises SnapshotCorrupt: as `snapshot`.
        """
        return snapshot_from(self.header(ref), ())

    def reach(self, ref: SnapshotRef) -> Reach:
        """Return what a snapshot needs; for speed, it reads columns only and makes no object per file.

        :raises SnapshotCorrupt: as `snapshot`.
        """
        header = self.header(ref)
        segments, sessions = self._published(header).names()
        packs = self._packs(header)
        parts = (header[name]["key"] for name in ("files", "packs") if name in header)
        return Reach(
            frozenset((ref.key, *parts, *(members_key(pack.members) for pack in packs))),
            segments.union(output.segment for pack in packs for output in pack.outputs),
            sessions.union({header["session"]}, (pack.session for pack in packs)),
        )

    def _published(self, header: JsonMapping) -> PublishedFiles:
        ref = structured(ObjectRef, header["files"], "the name of a snapshot's rows")
        return PublishedFiles(self._get(ref), self._address(ref))

    def _packs(self, header: JsonMapping) -> tuple[PublishedPack, ...]:
        if "packs" not in header:
            return ()
        ref = structured(ObjectRef, header["packs"], "the name of a snapshot's packs")
        return self._parsed(ref, packs_from_parquet, "list of packs")


def _snapshot_ref(ref: ObjectRef) -> SnapshotRef:
    return SnapshotRef(ref.key, ref.sha256)


def _failures(data: bytes, what: str) -> tuple[Failure, ...]:
    value = read_json(data)
    if isinstance(value, Mapping):
        Marks.of(value).require_known(what)
        value = value["failures"]
    return tuple(structured(Failure, failure, what) for failure in listed(value, dict))


def _of_keys(kind: type[S], data: bytes, what: str) -> S:
    value = read_json(data)
    return structured(kind, by_keys(kind, value) if isinstance(value, Mapping) else value, what)


# --- what lies there ---------------------------------------------------------------------------------


def staged(staging: Staging, folder: str) -> Iterator[ObjectInfo]:
    """Yield the objects of a folder of the staging area; none if nothing was ever written to the area."""
    if staging.store.exists_root():
        yield from staging.store.list(folder)


def kept_receipts(staging: Staging, session: str, versions: Mapping[str, str]) -> dict[str, Receipt]:
    """Return the kept receipts of files that a session published, by URI; unreadable ones are left out.

    Each folder is listed once, however many files are given.

    :param versions: token of the version that was read, by URI.
    :raises TooLarge: the receipts have too many bytes together.
    """
    uri_of = {f"{file_id(uri)}-{version}": uri for uri, version in versions.items()}
    folder = f"sessions/{session}/files"
    of_file: dict[str, list[ObjectInfo]] = defaultdict(list)
    for info in staged(staging, folder):
        if (uri := uri_of.get(info.key.removeprefix(f"{folder}/").rpartition("-")[0])) is not None:
            of_file[uri].append(info)
    for infos in of_file.values():
        infos.sort(key=lambda info: attempt_of(info.key), reverse=True)  # as numbers: 10 comes after 9
    staging.fitting_receipts([info for infos in of_file.values() for info in infos])

    def newest(infos: list[ObjectInfo]) -> Receipt | None:
        """Return the receipt of the latest attempt, since a later attempt may have renamed segments."""
        return next((receipt for info in infos if (receipt := _read(staging, info.key)) is not None), None)

    receipts = in_threads(newest, of_file.values(), THREADS, "receipts")
    found = {uri: receipt for uri, receipt in zip(of_file, receipts, strict=True) if receipt is not None}
    if len(found) == len(versions):
        return found
    keys = staging.fitting_receipts(staged(staging, f"sessions/{session}/{BATCHES}"))
    batches = in_threads(staging.readable_batch, sorted(keys), THREADS, "receipts")
    of_batches = (receipt for batch in batches if batch is not None for receipt in batch.files)
    of_versions = (one for one in of_batches if versions.get(one.uri) == one.read.token)
    return {receipt.uri: receipt for receipt in of_versions} | found


def _read(staging: Staging, key: str) -> Receipt | None:
    try:
        return staging.readable_receipt(key)
    except SourceError:
        return None
