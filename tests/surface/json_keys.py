"""Keys of the mappings that a function makes, read from its source: nothing of it is run.

A key within another one's value is `outer.inner`, a key that is computed is `*`. Lists add nothing to a name.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.stored_format import Open

PLAIN = ("str", "int", "float", "bool", "bytes", "None")
"""Functions that return one of these, or many, make no mapping."""
WRITERS = {"show_json": 0, "json.dumps": 0, "show_answer": 1}
"""Which argument of a function is written as JSON."""
COPIES = ("dict", "list", "tuple", "sorted")


class NotKnown(Exception):
    """The source alone does not say which class is written: `Reader` wants a meaning for it."""


@dataclass(frozen=True)
class Scope:
    """A function's source, and what its names mean.

    :ivar module: without `pinot_assets.`.
    """

    node: ast.AST
    module: str
    names: JsonMapping

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Scope:
        """Of a function, also of one that another one is wrapped around."""
        bare = inspect.unwrap(function)
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(bare))).body
        return cls(
            node, bare.__module__.removeprefix("pinot_assets."), {**bare.__globals__, **_imports(node)}
        )


def _imports(node: ast.AST) -> JsonObject:
    """What a function imports when it is called."""
    imported: JsonObject = {}
    for one in ast.walk(node):
        if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("pinot_assets"):
            module = importlib.import_module(str(one.module))
            for alias in one.names:
                value = getattr(module, alias.name, None)
                imported[alias.asname or alias.name] = value or importlib.import_module(
                    f"{one.module}.{alias.name}"
                )
    return imported


COMMANDS = "pinot_assets.cli.commands."


class Reader:
    """Reads keys.

    :param meanings: `module:expression` → the dataclass, or the function, whose keys it has.
    """

    def __init__(self, meanings: JsonMapping) -> None:
        self._meanings = meanings
        self._under_way: set[tuple[int, str]] = set()

    def printed(self, function: Callable[..., Any]) -> set[str]:
        """Keys of all that a function, or one near it that it calls, writes as JSON."""
        return set(self._printed(Scope.of(function), set()))

    def returned(self, function: Callable[..., Any]) -> set[str]:
        """Keys of what a function returns or yields."""
        return set(self._returned(Scope.of(function)))

    def _printed(self, scope: Scope, visited: set[str]) -> Iterator[str]:
        for call in ast.walk(scope.node):
            if not isinstance(call, ast.Call):
                continue
            place = WRITERS.get(ast.unparse(call.func))
            if place is not None:
                yield from self.keys(call.args[place], scope)
                continue
            called = self._called(call, scope)
            name = getattr(called, "__qualname__", "")
            module = called.__module__ if called else ""
            # A command of its own folder may leave the printing to a module that it shares with others.
            is_near = module == f"pinot_assets.{scope.module}" or module.startswith(COMMANDS)
            if called and is_near and name not in visited:
                yield from self._printed(Scope.of(called), visited | {name})

    def _returned(self, scope: Scope) -> Iterator[str]:
        for one in ast.walk(scope.node):
            if isinstance(one, ast.Return | ast.Yield) and one.value is not None:
                yield from self.keys(one.value, scope)

    def keys(self, node: ast.AST, scope: Scope) -> Iterator[str]:
        """Keys of an expression's value."""
        meaning = self._meanings.get(f"{scope.module}:{ast.unparse(node)}")
        if meaning is not None:
            yield from self._of_meaning(meaning)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    yield from self.keys(value, scope)
                else:
                    yield from self._nested(text_of(key), value, scope)
        elif isinstance(node, ast.DictComp):
            for key in self._comprehended(node, scope):
                yield from self._nested(key, node.value, scope)
        elif isinstance(node, ast.Name):
            yield from self._assigned(node.id, scope)
        elif isinstance(node, ast.Call):
            yield from self._of_call(node, scope)
        else:
            for part in _parts(node):
                yield from self.keys(part, scope)

    def _comprehended(self, node: ast.DictComp, scope: Scope) -> list[str]:
        """Keys of a comprehension: over a tuple of the module, or a mapping's items, those; else `*`."""
        over = node.generators[0].iter
        target, key = ast.unparse(node.generators[0].target), ast.unparse(node.key)
        names = scope.names.get(ast.unparse(over))
        if key == target and isinstance(names, tuple):
            return [*names]
        if isinstance(over, ast.Call) and ast.unparse(over.func).endswith(".items") and f"({key}," in target:
            assert isinstance(over.func, ast.Attribute)
            return [*self.keys(over.func.value, scope)] or ["*"]
        return [text_of(node.key)]

    def _nested(self, key: str, value: ast.AST, scope: Scope) -> Iterator[str]:
        yield key
        yield from (f"{key}.{inner}" for inner in self.keys(value, scope))

    def _of_meaning(self, meaning: Any) -> Iterator[str]:
        if dataclasses.is_dataclass(meaning):
            yield from fields_of(meaning)
        else:
            yield from self._returned(Scope.of(meaning))

    def _assigned(self, name: str, scope: Scope) -> Iterator[str]:
        """What a local name is given, all over its function."""
        mark = (id(scope.node), name)
        if mark in self._under_way:
            return
        self._under_way.add(mark)
        for one in ast.walk(scope.node):
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
            if not isinstance(one, ast.Assign | ast.AnnAssign | ast.AugAssign) or one.value is None:
                continue
            for target in targets:
                if isinstance(target, ast.Name) and target.id == name:
                    yield from self.keys(one.value, scope)
                elif isinstance(target, ast.Subscript) and ast.unparse(target.value) == name:
                    yield from self._nested(text_of(target.slice), one.value, scope)
        self._under_way.discard(mark)

    def _of_call(self, call: ast.Call, scope: Scope) -> Iterator[str]:
        name = ast.unparse(call.func)
        if name in ("asdict", "dataclasses.asdict"):
            what = f"{scope.module}:{ast.unparse(call.args[0])}"
            if what not in self._meanings:
                raise NotKnown(f"{what} is written by asdict: name its class in surface/json_output.py")
            yield from self._of_meaning(self._meanings[what])
        elif name in COPIES and call.args:
            yield from self.keys(call.args[0], scope)
        elif name == "map":
            yield from self._of_function(self._called(ast.Call(call.args[0], [], []), scope))
        else:
            yield from self._of_function(self._called(call, scope))

    def _of_function(self, function: types.FunctionType | None) -> Iterator[str]:
        if function is None:
            return
        answer = str(inspect.signature(function).return_annotation)
        is_mapping = answer.startswith(("dict", "Mapping", "JsonObject", "JsonMapping"))
        if is_mapping or not answer.strip("]").endswith(PLAIN):
            yield from self._returned(Scope.of(function))

    def _called(self, call: ast.Call, scope: Scope) -> types.FunctionType | None:
        """A function of this project, None for all else."""
        base, *rest = ast.unparse(call.func).split(".")
        found: Any = scope.names.get(base)
        for part in rest:
            found = getattr(found, part, None)
        is_ours = isinstance(found, types.FunctionType) and found.__module__.startswith("pinot_assets")
        return found if is_ours else None


def _parts(node: ast.AST) -> list[ast.AST]:
    """What a value may be, or is made of."""
    match node:
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.BinOp():
            return [node.left, node.right]
        case ast.BoolOp():
            return [*node.values]
        case ast.List() | ast.Tuple() | ast.Set():
            return [*node.elts]
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return [node.elt]
        case ast.Starred():
            return [node.value]
        case _:
            return []


def text_of(node: ast.AST) -> str:
    """A text as the source has it, `*` for each part that is computed."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else "*"


def fields_of(kind: Any) -> Iterator[str]:
    """Fields of a dataclass as `asdict` writes them, with those of dataclasses within."""
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.name == "kept" and issubclass(kind, Open):
            continue  # nothing prints what a stored value keeps of a later release
        yield field.name
        waiting = [hints[field.name]]
        while waiting:
            part = waiting.pop()
            if dataclasses.is_dataclass(part):
                yield from (f"{field.name}.{inner}" for inner in fields_of(part))
            waiting += typing.get_args(part)
