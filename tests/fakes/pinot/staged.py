"""Staged objects for a push: `pinot_assets.pinot.api.StagedObjects`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pinot_assets.errors import SnapshotCorrupt
from pinot_assets.snapshot.receipt import Output


class Staged:
    """Objects that a function reads."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self.read = read

    def fetch_tar(self, output: Output, path: Path) -> None:
        """Of one that names no hash, any content is right."""
        content = self.read(output.tar_uri)
        if output.tar_sha256 not in ("", hashlib.sha256(content).hexdigest()):
            raise SnapshotCorrupt(f"{output.tar_uri} is not what was staged there")
        path.write_bytes(content)


def _on_disk(uri: str) -> bytes:
    return Path(unquote(urlsplit(uri).path)).read_bytes()


STAGED = Staged(_on_disk)
"""By their `file:` URIs."""

EMPTY = Staged(lambda uri: b"")
"""Nothing but empty objects: enough for a Pinot in memory."""
