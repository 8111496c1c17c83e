"""What names promise: a class has one to itself, and what looks like a fact asks nobody."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes.project import ROOT

OUTSIDE = {"pinot", "_pinot", "store", "_store", "staging", "_staging", "source", "zk", "_zk", "clients"}
OUTSIDE |= {"_clients", "instance", "_instance", "history", "_get", "_post"}
"""Names of what leads out of the process, before the call of one of its methods; and own calls that do."""
LOCAL = {
    "uri_of",  # of a store: puts two texts together
    "key_of",
    "now_ms",
}
FILES = sorted(
    path for top in ("pinot_assets", "resources", "sensors") for path in (ROOT / top).rglob("*.py")
)


def asked(body: ast.AST) -> Iterator[str]:
    """Calls that leave the process."""
    for call in ast.walk(body):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            names = ast.unparse(call.func).split(".")
            if names[-1] not in LOCAL and (OUTSIDE.intersection(names[:-1]) or names[-1] in OUTSIDE):
                yield ast.unparse(call)


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            yield node


def is_property(function: ast.FunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def is_predicate(function: ast.FunctionDef) -> bool:
    return function.name.lstrip("_").startswith(("is_", "has_"))


@pytest.mark.parametrize("looks_like_a_fact", [is_property, is_predicate])
def test_what_looks_like_a_fact_asks_nobody(looks_like_a_fact: Callable[[ast.FunctionDef], bool]) -> None:
    offenders = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}: {call}"
        for path in FILES
        for function in filter(looks_like_a_fact, functions(path))
        for call in asked(function)
    ]
    assert not offenders, "\n".join(offenders)


def test_no_two_classes_share_a_name() -> None:
    """An underscore makes no other word of it (docs/glossary.md)."""
    places = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not {name: at for name, at in places.items() if len(at) > 1}


def test_the_rule_sees_what_it_forbids() -> None:
    tree = ast.parse("def f(self):\n    return self.clients.pinot.version() == context.pinot.lineage('t')")
    assert len(list(asked(tree))) == 2
