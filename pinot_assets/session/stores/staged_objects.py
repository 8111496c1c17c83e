"""Objects of the staging area: immutable, written put-if-absent, most of them named by their hash.

Only the reference in ZooKeeper counts (rules R12, R13).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pinot_assets.core.limits import OBJECT, ByteLimit
from pinot_assets.core.untrusted import reading
from pinot_assets.errors import SnapshotCorrupt, SourceError, TooLarge
from pinot_assets.session.values.state import ObjectRef
from pinot_assets.snapshot.manifest import RESTORE, SnapshotRef, sha256_hex
from pinot_assets.source.object_store import ObjectStore
from pinot_assets.source.uris import check_key

T = TypeVar("T")

THREADS = 8
"""Objects of the staging area that are looked at, or copied, at a time."""


class StagedObjects:
    """One table's folder of the staging area.

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
