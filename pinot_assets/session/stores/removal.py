"""Taking objects out of the staging area, as far as the store lets us."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pinot_assets.core.threads import in_threads
from pinot_assets.errors import SourceError
from pinot_assets.session.stores.staged_objects import THREADS
from pinot_assets.source.object_store import ObjectStore

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
