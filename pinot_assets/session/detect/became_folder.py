"""Published files whose place a folder has now: they were not deleted, and fail by their own names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from pinot_assets.core.threads import in_threads
from pinot_assets.errors import SourceError
from pinot_assets.session.values.plan import Changes
from pinot_assets.snapshot.manifest import Snapshot
from pinot_assets.source import ObjectStore, SourceFile

_LOOKS: Final = 16
"""Requests at a time: one for each file that is gone."""


def with_folders(
    source: ObjectStore, changes: Changes, current: Snapshot | None, but: Collection[str] = ()
) -> Changes:
    """The changes, where such a file is rewritten and not deleted: building it fails, and its rows stay.

    :param current: the ledger; its version of the file is the planned one.
    :param but: files whose deletion is held back anyway.
    :raises SourceError: the source does not say.
    """
    gone = [uri for uri in changes.deleted if uri not in but]
    if current is None or not gone:
        return changes
    is_folder = in_threads(lambda uri: _is_folder(source, uri), gone, _LOOKS, "folders")
    folders = {uri for uri, found in zip(gone, is_folder, strict=True) if found}
    if not folders:
        return changes
    files = {uri: SourceFile(uri, current.ledger[uri].fingerprint) for uri in sorted(folders)}
    return replace(
        changes,
        rewritten=(*changes.rewritten, *files.values()),
        deleted=tuple(uri for uri in changes.deleted if uri not in folders),
        listed={**changes.listed, **files},
    )


def _is_folder(source: ObjectStore, uri: str) -> bool:
    try:
        key = source.key_of(uri)
    except SourceError:
        return False  # of another source, which the table spec named before
    return source.is_folder(key)
