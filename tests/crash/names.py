"""What proxies call the requests that they see, without what differs from run to run."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

_OBJECTS = (
    (r"/files/[^/]+$", "receipt"),
    (r"/batches/[^/]+$", "batch receipt"),
    (r"/rows/[^/]+$", "rows object"),
    (r"/packs/[^/]+$", "member list"),
    (r"/plan-\d+-[0-9a-f]+\.parquet$", "plan"),
    (r"/switch-\d+-[0-9a-f]+\.json$", "switch"),
    (r"/failures-\d+-[0-9a-f]+\.json$", "failures"),
    (r"/hold-[0-9a-f]+\.json$", "hold"),
    (r"/snapshots/[^/]+\.parquet$", "snapshot rows"),
    (r"/snapshots/[^/]+\.json$", "snapshot"),
    (r"/segments/[^/]+\.metadata\.tar\.gz$", "metadata tar"),
    (r"/segments/[^/]+\.tar\.gz$", "tar"),
)
_UPLOADS = ("/v2/segments", "/segments/batchUpload")


def of_store(method: str, path: str) -> str | None:
    """A request to the object store."""
    if method in ("GET", "HEAD"):
        return None
    if method == "DELETE" or path.endswith("?delete"):
        return "store delete"
    key = unquote(urlsplit(path).path)
    what = next((name for pattern, name in _OBJECTS if re.search(pattern, key)), None)
    return f"store {method} {what or 'another object'}"


def of_controller(method: str, path: str) -> str | None:
    """A request to Pinot's controller."""
    if method in ("GET", "HEAD"):
        return None
    parts = urlsplit(path)
    force = "forced " if {"forceCleanup", "forceRevert"} & parse_qs(parts.query).keys() else ""
    last = parts.path.rpartition("/")[2]
    return f"pinot {force}{'upload' if parts.path in _UPLOADS else last}"


def of_broker(method: str, path: str) -> str | None:
    """A request to a broker; a query changes nothing."""
    return "pinot rebuild routing" if method == "PUT" and path.startswith("/routing/") else None
