"""What a single item of a policy's lists may be: an item that would be read as something else is refused.

Nothing here widens what an item allows. An item that means nothing would leave a table refused, and nobody
told why; one that means more than it says (a path behind an endpoint) would let in more than was meant.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import Final
from urllib.parse import urlsplit

from pinot_assets.core.connections import service_of
from pinot_assets.core.policy import FOR_SPECS, LOOPBACK, PROJECT, PROVIDER, is_never_read, is_ours

Trouble = tuple[str, str]
"""What is wrong, and what to write instead."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_VARIABLE: Final = re.compile(r"[A-Za-z_*][A-Za-z0-9_*]*", re.ASCII)
_REFERENCE: Final = re.compile(r"\$\{?([A-Za-z_*][A-Za-z0-9_*]*)\}?", re.ASCII)
_HOST: Final = re.compile(r"[\w.:-]+")
_WORDS: Final = {"endpoints": (LOOPBACK,), "ambientCredentials": (LOOPBACK, PROVIDER)}


def item_trouble(key: str, item: str) -> Trouble | None:
    """What is wrong with an item, None if it is good.

    :param key: the list that it stands in, as it is written: `variables`, `endpoints`, `roots`,
        `ambientCredentials`.
    """
    if key == "roots":
        return _root_trouble(item)
    if item != item.strip():
        return "has a blank at its start or end", f"write {item.strip()}"
    return _variable_trouble(item) if key == "variables" else _endpoint_trouble(key, item)


def root_path(item: str, folder: str) -> str:
    """The folder that a root means.

    :param item: one without trouble, and not `project`.
    :param folder: what relative ones start from.
    """
    # Of a folder that is a link, `..` is the folder around what it leads to, as it is to the system.
    base = os.path.realpath(folder) if item.startswith("..") else folder
    return os.path.abspath(os.path.join(base, os.path.expanduser(item)))


def path_trouble(path: str) -> Trouble | None:
    """What is wrong with the folder that a root means, None if nothing is.

    :param path: as `root_path` gives it.
    """
    if is_never_read(path):
        return "is a folder of the system or of secrets, which no policy can allow", "take it out"
    return None


def _root_trouble(item: str) -> Trouble | None:
    if item == PROJECT:
        return None
    if item != item.lstrip():
        return "has a blank at its start", f"write {item.strip()}"
    if item.lower() == PROJECT:
        return "is no root", f"did you mean {PROJECT}?"
    if (scheme := _SCHEME.match(item)) is not None:
        if scheme[1].lower() == "file":
            return "is a URI, and a root is a path", "write the path alone: /data/lake"
        return (
            "is no folder of this machine, and roots limit those alone",
            "leave it out: buckets of the cloud's own service need no entry, another service is listed in "
            "endpoints",
        )
    if "${" in item or item.startswith("$"):
        return "refers to the environment, which is not read here", "write the path"
    if os.path.expanduser(item).startswith("~"):
        return "names the home of a user that this machine does not have", "write the path"
    if "\0" in item:
        return "has a character that no path has", "write the path"
    steps = [step for step in item.split("/") if step not in ("", ".")]
    behind = item if item.startswith("/") else item.lstrip("./")
    if ".." in behind.split("/"):
        return "has .. behind a name, and means another folder where that is a link", "write what it means"
    if "*" in steps or "**" in steps:
        return "has *, and roots are no patterns", "write the folder: what lies below it is allowed as well"
    return None


def _variable_trouble(item: str) -> Trouble | None:
    if not _VARIABLE.fullmatch(item):
        meant = _REFERENCE.fullmatch(item)
        if meant is not None:
            return "is a reference, and a policy lists names", f"write {meant[1]}"
        return "is no name of a variable", "write letters, digits and _; * stands for any text"
    if is_ours(item) and not any(fnmatchcase(name, item) for name in FOR_SPECS):
        return (
            "is this installation's own, which no policy can let a table spec read",
            "take it out; what a table needs stands in a variable of its own, TABLE_…",
        )
    return None


def _endpoint_trouble(key: str, item: str) -> Trouble | None:
    words = _WORDS[key]
    if item in words:
        return None
    service = service_of(item)
    if service is None or not _HOST.fullmatch(urlsplit(item).hostname or ""):
        fix = f"write https://host[:port] or kafka://host[:port], or {' or '.join(words)}"
        return ("has * in its host, which stands for itself", fix) if "*" in item else ("is no endpoint", fix)
    parts = urlsplit(item)
    if parts.path not in ("", "/") or parts.query or parts.fragment or item.endswith(("?", "#")):
        # Its text is not shown: a query may hold a signature.
        return "has more than scheme, host and port, and would allow all of that service", f"write {service}"
    return None
