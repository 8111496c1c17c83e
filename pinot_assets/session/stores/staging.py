"""The session's own objects in the staging area: plans, failures, switches, holds, snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.stored_format import FIRST, Marks, Stored, marks, plain, structured
from pinot_assets.core.untrusted import listed, read_json
from pinot_assets.session.stores.staged_files import StagedFiles
from pinot_assets.session.values.plan import Hold, Plan, plan_from_parquet, plan_to_parquet
from pinot_assets.session.values.state import ObjectRef
from pinot_assets.snapshot.manifest import (
    PublishedFiles,
    Snapshot,
    SnapshotRef,
    files_to_parquet,
    header_from_bytes,
    header_to_bytes,
    snapshot_from,
)
from pinot_assets.snapshot.receipt import Failure, Output
from pinot_assets.source.object_info import ObjectInfo

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Switch(Stored):
    """Exactly what one switch replaces by what.

    :ivar number: `n` of `switch-<n>`, counted per session.
    :ivar carried: a published segment that stays, under a new name: its old name, and its place in
        `segments_to`. Only where Pinot does not take a replacement by nothing
        (`session/commit/one_switch.py`).
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


class Staging(StagedFiles):
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

    def header(self, ref: SnapshotRef) -> JsonMapping:
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

    def _published(self, header: JsonMapping) -> PublishedFiles:
        ref = structured(ObjectRef, header["files"], "the name of a snapshot's rows")
        return PublishedFiles(self._get(ref), self._address(ref))


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
