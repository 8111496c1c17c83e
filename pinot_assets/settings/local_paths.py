"""Where the local stack keeps things: the user's cache (jars) and the project's home (state, logs, data)."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache() -> Path:
    """The folder for what is resolved once per user.

    :returns: `PINOT_ASSETS_CACHE`, else `pinot-assets` in the XDG cache folder.
    """
    if set_by_user := os.environ.get("PINOT_ASSETS_CACHE"):
        return Path(set_by_user).expanduser().resolve()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "pinot-assets"


def default_home() -> Path:
    """The folder of this project's local stack.

    :returns: `PINOT_ASSETS_HOME`, else `.pinot-assets` in the current directory.
    """
    return Path(os.environ.get("PINOT_ASSETS_HOME") or ".pinot-assets").expanduser().resolve()
