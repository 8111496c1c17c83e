"""The policy file of an installation, and that of a folder of tables: YAML in, a `Policy` out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.policy import FOR_SPECS, LOOPBACK, POLICY, PROJECT, Layer, Policy
from pinot_assets.errors import SpecError
from pinot_assets.table_spec.yaml.document import DocumentNode, read_document
from pinot_assets.table_spec.yaml.policy_items import item_trouble, path_trouble, root_path
from pinot_assets.table_spec.yaml.problem import Note, Problem, did_you_mean

FOLDER_POLICY: Final = "policy.yaml"
"""In a folder of tables: narrows what the installation allows."""

_STACK: Final = ".pinot-assets"
"""The local stack's folder, where nothing else is said."""

_LISTS: Final = {
    "variables": "variables",
    "endpoints": "endpoints",
    "roots": "roots",
    "ambientCredentials": "credentials",
}
_CODE: Final = "allowCode"
_KEYS: Final = (*_LISTS, _CODE)
_EMPTY: Final = f"write one of {', '.join(_KEYS)}, or do without the file: the defaults count then"


def policy_of(folder: Path, environ: Mapping[str, str] | None = None) -> Policy:
    """What the specs of a folder may reach: what the installation allows, narrowed by the folder's policy.

    Without a file that PINOT_ASSETS_POLICY names the defaults count. They let a spec name this machine as an
    endpoint in the profile `local` alone, where that is the local stack.

    :raises SpecError: a policy file cannot be read, or something in it is wrong; tells all of it, with lines.
    """
    env = os.environ if environ is None else environ
    layer = Layer()
    if named := env.get(POLICY):
        layer = _checked(Path(named).expanduser().absolute())
    policy = Policy((layer.with_defaults(_usual_endpoints(env)),), _project(folder, env))
    own = folder.absolute() / FOLDER_POLICY
    return policy.narrowed(_checked(own)) if os.path.lexists(own) else policy


def policy_notes(folder: Path, environ: Mapping[str, str] | None = None) -> list[Note]:
    """Roots of the policies of a folder's specs that are not on this machine.

    No problem: a disk may be mounted later, or on other machines alone. A slip of the pen looks the same.

    :param folder: as `policy_of`, which raises what is wrong with the files.
    """
    env = os.environ if environ is None else environ
    files = [Path(env[POLICY]).expanduser().absolute()] if env.get(POLICY) else []
    own = folder.absolute() / FOLDER_POLICY
    return [note for file in (*files, own) if os.path.lexists(file) for note in _absent_roots(file)]


def _absent_roots(file: Path) -> Iterator[Note]:
    document, _ = read_document(file, _EMPTY)
    written = document.value.get("roots") if document and isinstance(document.value, dict) else None
    for position, item in enumerate(written if isinstance(written, list) else ()):
        if document is None or not isinstance(item, str) or item == PROJECT or item_trouble("roots", item):
            continue
        place = DocumentNode(document, ("roots", position))
        path = _root(place, item)
        if not os.path.lexists(path):
            text = f"{path} does not exist on this machine, and allows nothing until it does"
            meant = did_you_mean(item, (PROJECT,))
            star = "; * stands for itself in a root" if "*" in item else ""
            yield place.note(f"{text}{star}" + (f"; {meant}" if meant else ""))


def read_layer(file: Path) -> tuple[Layer, list[Problem]]:
    """One policy file, and everything that is wrong with it.

    Relative roots start from the folder that the file lies in.
    """
    document, problems = read_document(file, _EMPTY)
    if document is None:
        return Layer(file=str(file)), problems
    root = DocumentNode(document, ())
    if not isinstance(root.value, dict):
        return Layer(file=str(file)), [root.problem("is no mapping", f"write {', '.join(_KEYS)}")]
    said: JsonObject = {}
    for key in root.value:
        place = root.at(key)
        if key == _CODE:
            if isinstance(place.value, bool):
                said["allow_code"] = place.value
            else:
                problems.append(place.problem("is neither true nor false", "write true or false"))
        elif key in _LISTS:
            said[_LISTS[key]] = tuple(_items(place, key, problems))
        else:
            fix = did_you_mean(key, _KEYS) or f"the keys are {', '.join(_KEYS)}"
            problems.append(place.problem("is not a key of a policy", fix))
    return Layer(**said, file=str(file)), problems


def _checked(file: Path) -> Layer:
    layer, problems = read_layer(file)
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise SpecError(
            f"the policy {file} cannot be used, and without it no table spec is read:\n{listed}",
            hint="docs/security.md has every key of a policy",
        )
    return layer


def _items(place: DocumentNode, key: str, problems: list[Problem]) -> list[str]:
    if not isinstance(place.value, list):
        problems.append(place.problem("is no list", f"write {key}: [], or with what is allowed in it"))
        return []
    found = []
    for position, item in enumerate(place.value):
        inner = place.at(position)
        if not isinstance(item, str):
            problems.append(inner.problem("is no text", "quote it"))
        elif not item.strip():
            problems.append(inner.problem("is empty", "write what is allowed, or take it out"))
        elif trouble := item_trouble(key, item):
            problems.append(inner.problem(*trouble))
        elif key == "roots" and item != PROJECT:
            found.append(_root(place, item))
            if trouble := path_trouble(found[-1]):
                problems.append(inner.problem(*trouble))
        else:
            found.append(item)
    return found


def _root(place: DocumentNode, item: str) -> str:
    return root_path(item, str(place.document.file.parent))


def _usual_endpoints(env: Mapping[str, str]) -> tuple[str, ...]:
    from pinot_assets.settings.environment import (  # here: settings know all clients, and they this
        Profile,
        load_profile,
    )

    return (LOOPBACK,) if load_profile(env) is Profile.LOCAL else ()


def _project(folder: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """The folder around the folder of tables, or that one alone where the other is a whole disk or a home."""
    tables = folder.absolute()
    around = tables.parent
    whole = {Path(tables.anchor), Path.home().absolute()}
    own = tables if around in whole or around.resolve() in whole else around
    # A stack that was started elsewhere, or from elsewhere, keeps the sample files and their staging area.
    said = [env.get("PINOT_ASSETS_HOME") or _STACK, *(env.get(name) or "" for name in FOR_SPECS)]
    return (
        str(own),
        str(own / _STACK),  # named, since it is a dot-folder, of which the project's are no data
        *(os.path.abspath(os.path.expanduser(path)) for path in said if path and "://" not in path),
    )
