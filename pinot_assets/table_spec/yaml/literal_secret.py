"""Secrets that stand in a spec are refused with the line to write instead; the value is never repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pinot_assets.source.settings import is_reference
from pinot_assets.table_spec.yaml.document import DocumentNode
from pinot_assets.table_spec.yaml.environment import is_secret_key, is_secret_value, variable_for
from pinot_assets.table_spec.yaml.problem import Problem


def secret_problems(part: DocumentNode) -> tuple[list[Problem], set[tuple[str | int, ...]]]:
    """Every literal secret at or below a place.

    :returns: the problems, and the paths whose values must not be looked at any further.
    """
    problems, paths = [], set()
    for key, place in _scalars(part.value, part, ""):
        text = place.text()
        if not text or isinstance(place.value, bool) or is_reference(text):
            continue
        if is_secret_key(key):
            problems.append(place.problem("holds a literal secret", f"write {key}: ${{{variable_for(key)}}}"))
        elif is_secret_value(text):
            fix = f"write {key}: ${{{variable_for(key)}}}" if key else "keep it in the environment"
            problems.append(place.problem("holds what looks like a credential", fix))
        else:
            continue
        paths.add(place.path)
    return problems, paths


def _scalars(value: Any, part: DocumentNode, key: str) -> Iterator[tuple[str, DocumentNode]]:
    """All scalars with the key that they stand at; the items of a list stand at the list's key."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _scalars(inner, part.at(name), name)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _scalars(inner, part.at(position), key)
    elif value is not None:
        yield key, part
