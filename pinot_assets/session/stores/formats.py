"""Of what format a table's stored state is, and the fence: state of a newer release stops this one before it
does anything (docs/upgrading.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Final, TypeVar

from pinot_assets.core.stored_format import Marks, metadata_of
from pinot_assets.core.untrusted import read_json
from pinot_assets.errors import NeedsNewerRelease, TooLarge
from pinot_assets.ingest.contract.task_outputs import CUT_VALUES
from pinot_assets.session.stores.session_store import SessionStore
from pinot_assets.session.stores.staging import Staging, staged
from pinot_assets.session.values.state import (
    ObjectRef,
    Pointer,
    Session,
    pointer_from_bytes,
    session_from_bytes,
)
from pinot_assets.session.values.znrecord import SIMPLE, record_of
from pinot_assets.snapshot.manifest import SnapshotRef

T = TypeVar("T")

POINTER: Final = "pointer"

_KINDS: Final = (
    ("snapshot", re.compile(r"snapshots/[0-9]+-[0-9a-f]{64}\.json")),
    ("plan", re.compile(r"sessions/[^/]+/plan-.*\.parquet")),
    ("receipt", re.compile(r"sessions/[^/]+/files/.*\.json")),
    ("failures", re.compile(r"sessions/[^/]+/failures-.*\.json")),
    ("switch", re.compile(r"sessions/[^/]+/switch-.*\.json")),
    ("hold", re.compile(r"sessions/[^/]+/hold-.*\.json")),
    ("cut", re.compile(rf"sessions/[^/]+/{CUT_VALUES}/.*\.json")),
)
"""The objects of the staging area that have a format. Of a snapshot the header: its rows have the same."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A stored object and what it says of its format.

    :ivar kind: `pointer`, `session`, `snapshot`, `plan`, `receipt`, `failures`, `switch`, `hold` or
        `cut` (values that a build cut).
    :ivar name: its address.
    """

    kind: str
    name: str
    marks: Marks


def require_known(store: SessionStore, staging: Staging) -> None:
    """The fence, in front of all that changes a table: a trigger, a clear, a rollback, gc.

    What cannot be read at all is passed over: whoever needs it says so.

    :raises NeedsNewerRelease: something stored is of a format that this release does not know.
    :raises SourceError: the staging area cannot be asked.
    """
    for stored in look(store, staging):
        stored.marks.require_known(stored.name)


def look(store: SessionStore, staging: Staging) -> Iterator[StoredObject]:
    """What decides: the nodes, what they name, and of each kind in the staging area what was written last.

    An older release never writes after a newer one, since it is stopped here. So the last object of a kind
    tells of all of them, also where ZooKeeper was restored from a backup and knows nothing of the newest.
    """
    for node in ("", *store.session_nodes()):
        kind = "session" if node else POINTER
        address = f"the {kind} {node}".rstrip() + f" of {store.table} in ZooKeeper"
        with suppress(ValueError):
            yield StoredObject(kind, address, Marks.of(record_of(store.content(node) or b"")[SIMPLE]))
    # What this release can read of the nodes.
    pointer = _read(pointer_from_bytes, store.content()) or Pointer()
    active = pointer.active_session
    session = _read(session_from_bytes, store.content(active)) if active else None
    folders = ["snapshots", *([f"sessions/{session.id}"] if session is not None else [])]
    listed = [info for folder in folders for info in staged(staging, folder)]
    by_age = sorted(listed, key=lambda info: info.fingerprint.mtime_us)
    last = {_kind_of(info.key): info.key for info in by_age}
    as_listed = (last[_kind_of(info.key)] for info in listed)
    for key in dict.fromkeys([*_named(pointer), *_named(session), *as_listed]):
        if (stored := _object(staging, key)) is not None:
            yield stored


def _read(parse: Callable[[bytes], T], data: bytes | None) -> T | None:
    with suppress(ValueError, NeedsNewerRelease):
        return parse(data) if data else None
    return None


def _named(node: Pointer | Session | None) -> Iterator[str]:
    refs = [getattr(node, field.name) for field in fields(node)] if node is not None else []
    return (ref.key for ref in refs if isinstance(ref, ObjectRef | SnapshotRef))


def _kind_of(key: str) -> str:
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(key)), "")


def _object(staging: Staging, key: str) -> StoredObject | None:
    if not (kind := _kind_of(key)) or staging.store.stat(key) is None:
        return None
    try:
        data = staging.store.read(key)
    except TooLarge:
        return None  # whoever needs it says so
    with suppress(ValueError, OSError):  # Arrow's errors are these
        said = metadata_of(data) if key.endswith(".parquet") else read_json(data)
        marks = Marks.of(said if isinstance(said, Mapping) else {})
        return StoredObject(kind, f"{staging.store.uri}/{key}", marks)
    return None
