"""The formats of a table's stored state, and the fence: if a newer release wrote an unknown format, this one
stops before it does anything (docs/upgrading.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Final, TypeVar

from pinot_assets.core.stored_format import Marks, parquet_metadata
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
from pinot_assets.snapshot.batch_receipt import BATCHES
from pinot_assets.snapshot.manifest import SnapshotRef

T = TypeVar("T")

POINTER: Final = "pointer"

_KINDS: Final = (
    ("snapshot", re.compile(r"snapshots/[0-9]+-[0-9a-f]{64}\.json")),
    ("plan", re.compile(r"sessions/[^/]+/plan-.*\.parquet")),
    ("receipt", re.compile(r"sessions/[^/]+/files/.*\.json")),
    ("batch", re.compile(rf"sessions/[^/]+/{BATCHES}/.*\.json")),
    ("failures", re.compile(r"sessions/[^/]+/failures-.*\.json")),
    ("switch", re.compile(r"sessions/[^/]+/switch-.*\.json")),
    ("hold", re.compile(r"sessions/[^/]+/hold-.*\.json")),
    ("cut", re.compile(rf"sessions/[^/]+/{CUT_VALUES}/.*\.json")),
)
"""Objects of the staging area that have a format. For a snapshot, the header: its rows have the same."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A stored object and the format that it states.

    :ivar kind: `pointer`, `session`, `snapshot`, `plan`, `receipt`, `batch` (a receipt of many files),
        `failures`, `switch`, `hold` or `cut` (values that a build cut).
    :ivar name: its address.
    """

    kind: str
    name: str
    marks: Marks


def require_known(store: SessionStore, staging: Staging) -> None:
    """Enforce the fence, before anything that changes a table: a trigger, a clear, a rollback, gc.

    Unreadable objects are skipped here: a step that needs one raises its own error.

    :raises NeedsNewerRelease: something stored has a format that this release does not know.
    :raises SourceError: the staging area does not answer.
    """
    for stored in stored_objects(store, staging):
        stored.marks.require_known(stored.name)


def stored_objects(store: SessionStore, staging: Staging) -> Iterator[StoredObject]:
    """Yield the nodes, the objects that they name, and the newest object of each kind in the staging area.

    An older release never writes after a newer one, since the fence stops it. So the newest object of a kind
    is enough, even if ZooKeeper was restored from a backup and does not name it.
    """
    for node in ("", *store.session_nodes()):
        kind = "session" if node else POINTER
        address = f"the {kind} {node}".rstrip() + f" of {store.table} in ZooKeeper"
        with suppress(ValueError):
            yield StoredObject(kind, address, Marks.of(record_of(store.content(node) or b"")[SIMPLE]))
    # As far as this release can read the nodes.
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
        return None  # the step that needs it raises
    with suppress(ValueError, OSError):  # Arrow's errors are these
        said = parquet_metadata(data) if key.endswith(".parquet") else read_json(data)
        values = said if isinstance(said, Mapping) else {}
        return StoredObject(kind, f"{staging.store.uri}/{key}", Marks.of(values))
    return None
