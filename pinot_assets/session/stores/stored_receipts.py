"""Receipts of published files, which stay in the staging area while a kept snapshot names their session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pinot_assets.core.threads import in_threads
from pinot_assets.errors import SourceError
from pinot_assets.ingest.contract.keys import attempt_of, file_id
from pinot_assets.session.stores.staged_objects import THREADS
from pinot_assets.session.stores.staging import Staging, staged
from pinot_assets.snapshot.receipt import Receipt
from pinot_assets.source.object_info import ObjectInfo


def kept_receipts(staging: Staging, session: str, versions: Mapping[str, str]) -> dict[str, Receipt]:
    """What is kept of files that a session published, by URI; one that cannot be read is left out.

    The folder is listed once, however many files are asked for.

    :param versions: token of the version that was read, by URI.
    :raises TooLarge: they have too many bytes together.
    """
    wanted = {f"{file_id(uri)}-{version}": uri for uri, version in versions.items()}
    folder = f"sessions/{session}/files"
    of_file: dict[str, list[ObjectInfo]] = defaultdict(list)
    for info in staged(staging, folder):
        if (uri := wanted.get(info.key.removeprefix(f"{folder}/").rpartition("-")[0])) is not None:
            of_file[uri].append(info)
    for infos in of_file.values():
        infos.sort(key=lambda info: attempt_of(info.key), reverse=True)  # as numbers: 10 comes after 9
    staging.fitting_receipts([info for infos in of_file.values() for info in infos])

    def newest(infos: list[ObjectInfo]) -> Receipt | None:
        """Of two attempts the later one, whose segments may have been renamed."""
        return next((found for info in infos if (found := _read(staging, info.key)) is not None), None)

    found = in_threads(newest, of_file.values(), THREADS, "receipts")
    return {uri: receipt for uri, receipt in zip(of_file, found, strict=True) if receipt is not None}


def _read(staging: Staging, key: str) -> Receipt | None:
    try:
        return staging.readable_receipt(key)
    except SourceError:
        return None
