"""Directories as `pinot_assets.source` spells them, with paths relative to the file they are written in."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from pinot_assets.source.uris import parse_root

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def normalise_location(text: str, base: Path) -> str:
    """One spelling for one directory: `file:///…` or `s3://bucket/prefix`, without a trailing slash.

    :param text: a URI, or a path on the local disk, relative to `base`.
    :raises SourceError: the text is no usable directory.
    """
    if text and not _SCHEME.match(text):
        # Not resolve(): a symbolic link that is switched later must not change the identity of the files.
        text = os.path.abspath(base / os.path.expanduser(text))
    return parse_root(text).uri


def is_within(inner: str, outer: str) -> bool:
    """Whether one normalised directory is the other or lies below it."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")
