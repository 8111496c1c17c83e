"""`Any` in signatures and comments that silence a tool: as many as `tests/typing_debt.toml` says, or fewer.

What `make check` types strictly (`files` of mypy in pyproject.toml) has no `Any` in a signature: a JSON
document is a `JsonObject` there, one value of it a `JsonValue`, what a library without types gives has a
`Protocol`. No name stands for `Any` there either. Other tests get there step by step.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from fakes.project import ROOT

WRITTEN = ROOT / "tests" / "typing_debt.toml"
FOLDERS = ("benchmarks", "demos", "docs", "pinot_assets", "resources", "sensors", "tests", "tools")
JSON = ROOT / "pinot_assets" / "core" / "json_object.py"
"""The one place where the values of a document may be anything; it is not counted."""

_SILENCES = re.compile(r"#\s*(type:\s*ignore|noqa|mypy:|ruff:|pyright:)")


def any_in_signatures(text: str) -> int:
    """How often `Any` is in parameters, results, fields of classes, constants and aliases of the module."""
    if "Any" not in text:
        return 0
    return sum(_is_any(node) for part in _signatures(ast.parse(text)) for node in ast.walk(part))


def _signatures(tree: ast.Module) -> Iterator[ast.AST]:
    yield from (one for one in tree.body if isinstance(one, ast.Assign | ast.AnnAssign))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.args
            if node.returns is not None:
                yield node.returns
        elif isinstance(node, ast.ClassDef):
            yield from (field.annotation for field in node.body if isinstance(field, ast.AnnAssign))


def _is_any(node: ast.AST) -> bool:
    named = isinstance(node, ast.Name) and node.id == "Any"
    return named or (isinstance(node, ast.Attribute) and node.attr == "Any")


def aliases_of_any(text: str) -> list[str]:
    """The names of the module that mean `Any` itself, which hide it from whoever reads a signature."""
    tree = ast.parse(text)
    known = {"Any"} | {
        one.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for one in node.names
        if one.name == "Any" and one.asname
    }
    found = sorted(known - {"Any"})
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            value = node.value
            if _is_any(value) or (isinstance(value, ast.Name) and value.id in known):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found += [ast.unparse(target) for target in targets]
                known |= {ast.unparse(target) for target in targets}
    return found


def ignores(text: str) -> int:
    """How many comments silence mypy or ruff."""
    if not _SILENCES.search(text):
        return 0
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT and bool(_SILENCES.search(token.string)) for token in tokens)


KINDS: dict[str, Callable[[str], int]] = {"any_in_signatures": any_in_signatures, "ignores": ignores}


@cache
def files() -> tuple[Path, ...]:
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return tuple(sorted(path for path in found if path != JSON))


def folder_of(path: Path) -> str:
    """`pinot_assets`, `tests/unit`; `tests` for what lies there itself."""
    top, *inner = path.relative_to(ROOT).parts[:-1]
    return "/".join((top, *inner[:1])) if top == "tests" else top


def counted(kind: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for path in files():
        found[folder_of(path)] += KINDS[kind](path.read_text())
    return +found


def settled() -> tuple[str, ...]:
    """Paths, of modules and folders, that mypy reads strictly."""
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    return ("resources", "sensors", *mypy["files"])  # which are in the package only where it is installed


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_only_fall(kind: str) -> None:
    written = Counter(tomllib.loads(WRITTEN.read_text())[kind])
    found = counted(kind)
    assert {folder: found[folder] for folder in found if found[folder] > written[folder]} == {}, (
        f"{kind} has grown from {dict(written)}: find a type, as tests/fakes do"
    )
    assert {folder: found[folder] for folder in written if found[folder] < written[folder]} == {}, (
        f"{kind} has fallen: write these lower numbers into {WRITTEN.relative_to(ROOT)} (no line for 0)"
    )


def test_what_is_typed_strictly_has_no_any_in_signatures() -> None:
    paths = [path for name in settled() for path in ROOT.glob(name)]
    modules = {module for path in paths for module in (path.rglob("*.py") if path.is_dir() else [path])} - {
        JSON
    }
    assert len(modules) > 100
    assert sorted(str(m.relative_to(ROOT)) for m in modules if any_in_signatures(m.read_text())) == []


def test_no_name_of_what_is_typed_strictly_means_any() -> None:
    paths = [path for name in settled() for path in ROOT.glob(name)]
    modules = {module for path in paths for module in (path.rglob("*.py") if path.is_dir() else [path])}
    assert JSON in modules
    found = {str(m.relative_to(ROOT)): names for m in modules if (names := aliases_of_any(m.read_text()))}
    assert found == {}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Value = Any", ["Value"]),
        ("Value: TypeAlias = typing.Any\nOther = Value", ["Value", "Other"]),
        ("from typing import Any as Anything", ["Anything"]),
        ("Document = dict[str, Any]\nValue = object\nx: Any\ndef f() -> None:\n    Value = Any", []),
    ],
)
def test_an_alias_of_any_is_found(text: str, names: list[str]) -> None:
    assert aliases_of_any(text) == names


def test_every_conftest_is_typed_strictly() -> None:
    paths = {path for name in settled() for path in ROOT.glob(name)}
    found = {path for path in (ROOT / "tests").rglob("conftest.py") if not {path, *path.parents} & paths}
    assert found == set()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(x: Any, y: dict[str, Any]) -> None: ...", 2),
        ("async def f(*a: int, **b: typing.Any) -> list[Any]: ...", 2),
        ("def f() -> None:\n    x: Any = 1\n    def g(y: Any) -> Any: ...", 2),
        ("@dataclass\nclass C:\n    x: Any\n    def m(self, x: Any) -> None: ...", 2),
        ("Job = Callable[[Driver], Any]\nTABLE: dict[str, Any] = {}", 2),
        ("from typing import Any\n# Any\nx = 'Any'", 0),
    ],
)
def test_any_is_counted_where_others_meet_it(text: str, count: int) -> None:
    assert any_in_signatures(text) == count


def test_silencing_comments_are_counted_and_texts_are_not() -> None:
    text = "x = f()  # type: ignore[misc]\ny = '# type: ignore'\nz = 1  # noqa: E501\n# a type: no ignore\n"
    assert ignores(text) == 2
