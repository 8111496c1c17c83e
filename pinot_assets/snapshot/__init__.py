"""What was published: immutable manifests, the ledger, history."""

from pinot_assets.snapshot.manifest import PublishedFile, Snapshot, SnapshotRef

__all__ = ["PublishedFile", "Snapshot", "SnapshotRef"]
