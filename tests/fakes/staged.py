"""Staged objects for a push: `pinot_assets.pinot.port.StagedObjects`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Staged:
    """Objects that a function reads."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self.read = read

    def download(self, uri: str, path: Path) -> str:
        content = self.read(uri)
        path.write_bytes(content)
        return hashlib.sha256(content).hexdigest()


def _on_disk(uri: str) -> bytes:
    return Path(unquote(urlsplit(uri).path)).read_bytes()


STAGED = Staged(_on_disk)
"""By their `file:` URIs."""

EMPTY = Staged(lambda uri: b"")
"""Nothing but empty objects: enough for a Pinot in memory."""
