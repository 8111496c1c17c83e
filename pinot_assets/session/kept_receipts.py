"""Receipts of published files, which stay in the staging area while a kept snapshot names their session."""

from __future__ import annotations

from collections.abc import Mapping

from pinot_assets.build.keys import file_id
from pinot_assets.errors import SourceError
from pinot_assets.session.receipt import Receipt
from pinot_assets.session.staging import Staging, staged


def kept_receipts(staging: Staging, session: str, versions: Mapping[str, str]) -> dict[str, Receipt]:
    """What is kept of files that a session published, by URI; one that cannot be read is left out.

    The folder is listed once, however many files are asked for.

    :param versions: token of the version that was read, by URI.
    """
    wanted = {f"{file_id(uri)}-{version}": uri for uri, version in versions.items()}
    folder = f"sessions/{session}/files"
    keys = sorted(info.key for info in staged(staging, folder))
    found: dict[str, Receipt] = {}
    for key in reversed(keys):  # of two attempts the later one, whose segments may have been renamed
        uri = wanted.get(key.removeprefix(f"{folder}/").rpartition("-")[0])
        if uri is not None and uri not in found and (receipt := _read(staging, key)) is not None:
            found[uri] = receipt
    return found


def _read(staging: Staging, key: str) -> Receipt | None:
    try:
        return staging.readable_receipt(key)
    except SourceError:
        return None
