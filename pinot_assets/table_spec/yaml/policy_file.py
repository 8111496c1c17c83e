"""Read the policy file of an installation, and that of a folder of tables, into a `Policy`.

An item that would be read as something else is refused, and nothing here widens what an item allows. An item
without a meaning would leave a table refused without a reason. An item that means more than it says (a path
after an endpoint) would allow more than its author meant.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pinot_assets.core.connections import service_of
from pinot_assets.core.installation_policy import (
    FOR_SPECS,
    LOOPBACK,
    POLICY,
    PROJECT,
    PROVIDER,
    Layer,
    Policy,
    is_never_read,
    is_own_variable,
)
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SpecError
from pinot_assets.settings.local_stack import HOME
from pinot_assets.table_spec.yaml.document import DocumentNode, Note, Problem, did_you_mean, read_document

Trouble = tuple[str, str]
"""What is wrong, and what to write instead."""

_WORDS: Final = {"endpoints": (LOOPBACK,), "ambientCredentials": (LOOPBACK, PROVIDER)}


def item_trouble(key: str, item: str) -> Trouble | None:
    """Return what is wrong with an item and a fix; None if it is good.

    :param key: the list that has the item, as it is written: `variables`, `endpoints`, `roots`,
        `ambientCredentials`.
    """
    if key == "roots":
        return _root_trouble(item)
    if item != item.strip():
        return "has a blank at its start or end", f"write {item.strip()}"
    return _variable_trouble(item) if key == "variables" else _endpoint_trouble(key, item)


def root_path(item: str, folder: str) -> str:
    """Return the folder that a root names.

    :param item: a root without trouble that is not `project`.
    :param folder: the folder that relative roots start from.
    """
    # After a symbolic link, `..` means the folder around the link's target, as for the operating system.
    base = os.path.realpath(folder) if item.startswith("..") else folder
    return os.path.abspath(os.path.join(base, os.path.expanduser(item)))


def _root_trouble(item: str) -> Trouble | None:
    if item == PROJECT:
        return None
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", item)
    behind = item if item.startswith("/") else item.lstrip("./")
    troubles = (
        (item != item.lstrip(), "has a blank at its start", f"write {item.strip()}"),
        (item.lower() == PROJECT, "is not a root", f"did you mean {PROJECT}?"),
        (
            scheme is not None and scheme[1].lower() == "file",
            "is a URI, but a root is a path",
            "write only the path: /data/lake",
        ),
        (
            scheme is not None,
            "is not a folder of this machine, and roots only limit those",
            "remove it: buckets of the cloud's own service need no entry; another service needs "
            "one in endpoints",
        ),
        (
            "${" in item or item.startswith("$"),
            "refers to the environment, which is not read here",
            "write the path",
        ),
        (
            os.path.expanduser(item).startswith("~"),
            "names the home of a user that this machine does not have",
            "write the path",
        ),
        ("\0" in item, "has a character that no path has", "write the path"),
        (
            ".." in behind.split("/"),
            "has .. after a name, and means another folder if that is a link",
            "write the path that it means",
        ),
        (
            not {"*", "**"}.isdisjoint(item.split("/")),
            "has *, but roots are not patterns",
            "write the folder: what is below it is allowed as well",
        ),
    )
    return next(((reason, fix) for applies, reason, fix in troubles if applies), None)


def _variable_trouble(item: str) -> Trouble | None:
    if not re.fullmatch(r"[A-Za-z_*][A-Za-z0-9_*]*", item):
        if meant := re.fullmatch(r"\$\{?([A-Za-z_*][A-Za-z0-9_*]*)\}?", item):
            return "is a reference, but a policy lists names", f"write {meant[1]}"
        return "is not the name of a variable", "write letters, digits and _; * means any text"
    if is_own_variable(item) and not any(fnmatchcase(name, item) for name in FOR_SPECS):
        return (
            "belongs to this installation, and no policy can let a table spec read it",
            "remove it; put what a table needs into a variable of its own, TABLE_…",
        )
    return None


def _endpoint_trouble(key: str, item: str) -> Trouble | None:
    words = _WORDS[key]
    if item in words:
        return None
    service = service_of(item)
    if service is None or not re.fullmatch(r"[\w.:-]+", urlsplit(item).hostname or ""):
        reason = "has * in its host, where it is not a pattern" if "*" in item else "is not an endpoint"
        return reason, f"write https://host[:port] or kafka://host[:port], or {' or '.join(words)}"
    parts = urlsplit(item)
    if parts.path not in ("", "/") or parts.query or parts.fragment or item.endswith(("?", "#")):
        # The item is not shown: a query may hold a signature.
        return "has more than scheme, host and port, and would allow all of that service", f"write {service}"
    return None


FOLDER_POLICY: Final = "policy.yaml"
"""The policy file in a folder of tables: it narrows what the installation allows."""

"""The local stack's folder, unless PINOT_ASSETS_HOME names another one."""

_LISTS: Final = {
    "variables": "variables",
    "endpoints": "endpoints",
    "roots": "roots",
    "ambientCredentials": "credentials",
}
_KEYS: Final = (*_LISTS, "allowCode")
_EMPTY: Final = f"write one of {', '.join(_KEYS)}, or delete the file: then the defaults apply"


def policy_of(folder: Path, environ: Mapping[str, str] | None = None) -> Policy:
    """Return what the specs of a folder may reach: the installation's policy, narrowed by the folder's.

    Every subject that no file of PINOT_ASSETS_POLICY mentions has its default. The defaults allow this
    machine as an endpoint only in the profile `local`, because the local stack runs there.

    :raises SpecError: a policy file cannot be read or has problems; the text lists all of them, with lines.
    """
    env = os.environ if environ is None else environ
    from pinot_assets.settings.environment import (  # here: settings import the clients, and they this
        Profile,
        load_profile,
    )

    layer = Layer()
    if named := env.get(POLICY):
        layer = _checked(Path(named).expanduser().absolute())
    usual = (LOOPBACK,) if load_profile(env) is Profile.LOCAL else ()
    policy = Policy((layer.with_defaults(usual),), _project(folder, env))
    own = folder.absolute() / FOLDER_POLICY
    return policy.narrowed(_checked(own)) if os.path.lexists(own) else policy


def policy_notes(folder: Path, environ: Mapping[str, str] | None = None) -> list[Note]:
    """Return a note for each root of the folder's policies that does not exist on this machine.

    It is no problem: a disk may be mounted later, or only on other machines. A misspelling looks the same.

    :param folder: as for `policy_of`, which raises if a policy file has problems.
    """
    env = os.environ if environ is None else environ
    files = [Path(env[POLICY]).expanduser().absolute()] if env.get(POLICY) else []
    own = folder.absolute() / FOLDER_POLICY
    return [note for file in (*files, own) if os.path.lexists(file) for note in _absent_roots(file)]


def _absent_roots(file: Path) -> Iterator[Note]:
    document, _ = read_document(file, _EMPTY)
    for place in DocumentNode(document, ()).items("roots") if document else ():
        item = place.value
        if not isinstance(item, str) or item == PROJECT or item_trouble("roots", item):
            continue
        path = root_path(item, str(file.parent))
        if not os.path.lexists(path):
            text = f"{path} does not exist on this machine, and allows nothing until it does"
            star = "* is not a pattern in a root" if "*" in item else None
            yield place.note("; ".join(filter(None, (text, star, did_you_mean(item, (PROJECT,))))))


def read_layer(file: Path) -> tuple[Layer, list[Problem]]:
    """Read one policy file; return its layer and everything that is wrong with it.

    Relative roots start from the folder of the file.
    """
    document, problems = read_document(file, _EMPTY)
    if document is None:
        return Layer(file=str(file)), problems
    root = DocumentNode(document, ())
    if not isinstance(root.value, dict):
        return Layer(file=str(file)), [root.problem("is not a mapping", f"write {', '.join(_KEYS)}")]
    said: JsonObject = {}
    for key, value in root.value.items():
        place = root.at(key)
        if key in _LISTS:
            said[_LISTS[key]] = tuple(_items(place, key, problems))
        elif key not in _KEYS:
            problems.append(place.unknown_key("a policy", _KEYS))
        elif isinstance(value, bool):
            said["allow_code"] = value
        else:
            problems.append(place.problem("is neither true nor false", "write true or false"))
    return Layer(**said, file=str(file)), problems


def _checked(file: Path) -> Layer:
    layer, problems = read_layer(file)
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise SpecError(
            f"the policy {file} cannot be used, and without it no table spec is read:\n{listed}",
            hint="docs/security.md describes every key of a policy",
        )
    return layer


def _items(place: DocumentNode, key: str, problems: list[Problem]) -> list[str]:
    if not isinstance(place.value, list):
        problems.append(place.problem("is not a list", f"write {key}: [], or with what it allows"))
        return []
    items = []
    for inner in place.items():
        item = inner.value
        if not isinstance(item, str):
            problems.append(inner.problem("is not a text", "quote it"))
        elif not item.strip():
            problems.append(inner.problem("is empty", "write what is allowed, or remove it"))
        elif trouble := item_trouble(key, item):
            problems.append(inner.problem(*trouble))
        elif key == "roots" and item != PROJECT:
            items.append(root_path(item, str(place.document.file.parent)))
            if is_never_read(items[-1]):
                reason = "is a folder of the system or of secrets, which no policy can allow"
                problems.append(inner.problem(reason, "remove it"))
        else:
            items.append(item)
    return items


def project_folder(folder: Path) -> Path:
    """Return the folder around that of the tables; that of the tables, if the other is a disk or a home."""
    tables = folder.absolute()
    around = tables.parent
    whole = {Path(tables.anchor), Path.home().absolute()}
    return tables if around in whole or around.resolve() in whole else around


def _project(folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """The project's folders: its own and those of the stack."""
    own = project_folder(folder)
    # A stack that was started in another folder keeps the sample files and their staging area there.
    said = [env.get("PINOT_ASSETS_HOME") or HOME, *(env.get(name) or "" for name in FOR_SPECS)]
    return (
        str(own),
        str(own / HOME),  # listed, because other dot-folders of the project are no data
        *(os.path.abspath(os.path.expanduser(path)) for path in said if path and "://" not in path),
    )
