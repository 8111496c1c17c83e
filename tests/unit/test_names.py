"""What names promise: a class or public function has one to itself, what looks like a fact asks nobody."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes.project import ROOT
from typer.core import TyperGroup
from typer.main import get_command

from pinot_assets.cli.main import app
from tools.docs.cli_page import commands

OUTSIDE = {"pinot", "_pinot", "store", "_store", "staging", "_staging", "source", "zk", "_zk", "clients"}
OUTSIDE |= {"_clients", "instance", "_instance", "history", "_get", "_post"}
"""Names of what leads out of the process, before the call of one of its methods; and own calls that do."""
LOCAL = {
    "uri_of",  # of a store: puts two texts together
    "key_of",
    "now_ms",
}
SHARED = {
    "stage",  # steps that `session/commit/strategy.py` gathers, always with the module's name
    "audit",
    "publish",
    "resolve_interrupted",
    "check",  # the decorator of a health check, of OFFLINE tables and of REALTIME ones
    "main",  # entry points; nothing imports them by name
}
"""Names of functions that several modules may have."""
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


def test_no_two_public_functions_share_a_name() -> None:
    """An import shows the name alone, so the name has to say which function it is. A command's is typed."""
    places = defaultdict(set)
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                places[node.name].add(path.relative_to(ROOT).as_posix())
    for name, path in command_functions():
        places[name].discard(path)
    shared = {name: at for name, at in places.items() if len(at) > 1}
    assert {name: sorted(at) for name, at in shared.items() if name not in SHARED} == {}
    assert shared.keys() == SHARED, "a name that only one function has any more goes from the list"
    assert len(SHARED) <= 6, "the list only gets shorter"


def command_functions() -> Iterator[tuple[str, str]]:
    """Name and file of the function of each command, those of the groups included."""
    program = get_command(app)
    assert isinstance(program, TyperGroup)
    for _, command in commands(program):
        assert command.callback is not None
        module = command.callback.__module__.replace(".", "/")
        yield command.callback.__name__, f"{module}.py"


def test_the_rule_sees_what_it_forbids() -> None:
    tree = ast.parse("def f(self):\n    return self.clients.pinot.version() == context.pinot.lineage('t')")
    assert len(list(asked(tree))) == 2
