"""One published state of a table: which version of each file is in which segments.

A snapshot is two immutable objects: its rows as Parquet, and a small JSON header that names the Parquet by
its hash. The pointer in ZooKeeper names the header by its hash, so no change of either can go unnoticed.
The newest snapshot is the ledger (docs/design/session.md#words).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.stored_format import (
    WITH_PACKS,
    Marks,
    Open,
    Stored,
    added,
    by_keys,
    plain,
    structured,
    with_keys,
)
from pinot_assets.core.untrusted import fields_of_json
from pinot_assets.snapshot.packs import PublishedPack
from pinot_assets.snapshot.published_files import PublishedFile
from pinot_assets.snapshot.receipt import Output
from pinot_assets.snapshot.recipes import StoredRecipe


@dataclass(frozen=True, slots=True)
class SnapshotRef(Open):
    """Key of a snapshot's header in the staging area, and the sha256 (hex) of its bytes."""

    key: str
    sha256: str


MODES: Final = frozenset({"APPEND", "SYNC", "SWAP", "ROLLBACK", "REBUILT"})
"""How a snapshot was made: the mode of its session, or REBUILT after the pointer was lost."""


@dataclass(frozen=True, slots=True)
class Snapshot(Stored):
    """One published state of a table.

    :ivar seq: number of the session that made it; it grows.
    :ivar mode: one of `MODES`.
    :ivar lineage_entry_id: the COMPLETED lineage entry; its revert restores `parent`.
    :ivar parent: the snapshot before, None for the first one.
    :ivar listing_digest: digest of the listing that was published.
    :ivar config_fingerprint: config fingerprint of the table spec that built it.
    :ivar audit: the findings that opened the gate, as plain values.
    :ivar files: published versions in the order of their URIs, oldest session first for each file. Older
        releases wrote them in another order of URIs.
    :ivar owner: the cluster to which it was published (`session/stores/stored_snapshots.py`); "" if
        an older release wrote it.
    :ivar asked_by: who asked for it; "" if that is not known.
    :ivar recipes: what built its files, by revision; the newest is the last one.
    :ivar packs: packs with the rows of those files that have no segments of their own.
    """

    seq: int
    table: str
    session: str
    mode: str
    lineage_entry_id: str
    parent: SnapshotRef | None
    listing_digest: str
    config_fingerprint: str
    published_ms: int
    files: Sequence[PublishedFile]
    audit: JsonMapping = field(default_factory=dict)
    owner: str = ""
    asked_by: str = field(default="", metadata=added(2))
    recipes: tuple[StoredRecipe, ...] = field(default=(), metadata=added(2))
    packs: tuple[PublishedPack, ...] = field(default=(), metadata=added(WITH_PACKS))

    @property
    def ledger(self) -> dict[str, PublishedFile]:
        """Return the newest published version of every file, by URI."""
        return {f.uri: f for f in self.files}

    @property
    def segments(self) -> dict[str, Output]:
        """Return every segment that should be visible, by name."""
        outputs = chain.from_iterable(one.outputs for one in self.files)
        of_packs = chain.from_iterable(one.outputs for one in self.packs)
        return {output.segment: output for output in chain(outputs, of_packs)}

    def with_segments(self, new: Mapping[str, Output]) -> Snapshot:
        """Return the same rows in other segments.

        :param new: what is instead of a segment, by its name; the others stay.
        """

        def replaced(outputs: Iterable[Output]) -> tuple[Output, ...]:
            return tuple(new.get(output.segment, output) for output in outputs)

        return replace(
            self,
            files=tuple(replace(one, outputs=replaced(one.outputs)) for one in self.files),
            packs=tuple(replace(one, outputs=replaced(one.outputs)) for one in self.packs),
        )

    @property
    def rows(self) -> int:
        """Return the number of documents that a query should see."""
        return sum(f.rows for f in self.files)

    @property
    def bad_rows(self) -> int:
        """Return the number of rows of its files that were put aside."""
        return sum(f.bad_rows for f in self.files)

    @property
    def tar_bytes(self) -> int:
        """Return the size of all segments' tars in bytes."""
        return sum(output.tar_bytes for output in self.segments.values())


LEFT = ("left", "source")
"""Keys of `audit` in a rollback's snapshot: the snapshot that it left, and the newest from the source."""


def header_to_bytes(snapshot: Snapshot, files: SnapshotRef, packs: SnapshotRef | None = None) -> bytes:
    """Return the header, which names the objects of its files and packs.

    :param packs: None if it has none.
    """
    header = with_keys(replace(snapshot, files=(), packs=())) | {
        "counts": {"files": len(snapshot.ledger), "segments": len(snapshot.segments), "rows": snapshot.rows},
        "files": plain(files),
    }
    if packs is not None:
        header["packs"] = plain(packs)
    return json.dumps(header, sort_keys=True, indent=1).encode()


def header_from_bytes(data: bytes, what: str = "a snapshot header") -> JsonObject:
    """Return the header as plain values.

    :param what: its address, for errors.
    :raises NeedsNewerRelease: its format is unknown to this release.
    :raises ValueError: not a snapshot header, or its mode is unknown although its format is known.
    """
    header = fields_of_json(data)
    Marks.of(header).require_known(what)
    if missing := {"files", "mode"} - header.keys():
        raise ValueError(f"not a snapshot header: it lacks {min(missing)}")
    snapshot = snapshot_from(header, ())
    if snapshot.mode not in MODES:
        raise ValueError(f"its mode is {snapshot.mode}, which this release of pinot-assets does not know")
    for ref in (header["files"], *filter(None, (header.get("packs"), *map(snapshot.audit.get, LEFT)))):
        structured(SnapshotRef, ref, "the name of an object")
    return header


def snapshot_from(
    header: JsonMapping, files: Sequence[PublishedFile], packs: tuple[PublishedPack, ...] = ()
) -> Snapshot:
    """Return header, files and packs as one snapshot.

    :raises ValueError: a value of the header has a wrong type.
    """
    values = {
        key: value for key, value in by_keys(Snapshot, header).items() if key not in ("counts", "packs")
    }
    outline = structured(Snapshot, values | {"files": ()}, "a snapshot header")
    return replace(outline, files=files, packs=packs)


def sha256_hex(data: bytes) -> str:
    """Return the sha256 in hex, as in object names."""
    return hashlib.sha256(data).hexdigest()
