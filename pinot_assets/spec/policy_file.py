"""The policy file of an installation, and that of a folder of tables: YAML in, a `Policy` out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pinot_assets.addresses import service_of
from pinot_assets.errors import SpecError
from pinot_assets.policy import FOR_SPECS, LOOPBACK, POLICY, PROJECT, PROVIDER, Layer, Policy
from pinot_assets.spec.document import Part, read_document
from pinot_assets.spec.problem import Problem, did_you_mean

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


def read_layer(file: Path) -> tuple[Layer, list[Problem]]:
    """One policy file, and everything that is wrong with it.

    Relative roots start from the folder that the file lies in.
    """
    document, problems = read_document(file)
    if document is None:
        return Layer(file=str(file)), problems
    root = Part(document, ())
    if not isinstance(root.value, dict):
        return Layer(file=str(file)), [root.problem("is no mapping", f"write {', '.join(_KEYS)}")]
    said: dict[str, Any] = {}
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


def _items(place: Part, key: str, problems: list[Problem]) -> list[str]:
    if not isinstance(place.value, list):
        problems.append(place.problem("is no list", f"write {key}: [], or with what is allowed in it"))
        return []
    found = []
    for position, item in enumerate(place.value):
        inner = place.at(position)
        if not isinstance(item, str) or not item.strip():
            problems.append(inner.problem("is no text", "quote it"))
        elif key == "roots" and item != PROJECT:
            found.append(os.path.abspath(place.document.file.parent / os.path.expanduser(item)))
        elif trouble := _trouble(key, item):
            problems.append(inner.problem(*trouble))
        else:
            found.append(item)
    return found


def _trouble(key: str, item: str) -> tuple[str, str] | None:
    words = {"endpoints": (LOOPBACK,), "ambientCredentials": (LOOPBACK, PROVIDER)}.get(key)
    if words is None or item in words or service_of(item) is not None:
        return None
    return "is no endpoint", f"write https://host[:port] or kafka://host[:port], or {' or '.join(words)}"


def _usual_endpoints(env: Mapping[str, str]) -> tuple[str, ...]:
    from pinot_assets.settings import Profile, load_profile  # here: settings know all clients, and they this

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
