"""Every error that can be met is in the registry, and docs/reference/errors.md is made of it."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pinot_assets
from pinot_assets import errors
from pinot_assets.core.file_errors import FileRejected
from pinot_assets.snapshot import receipt
from pinot_assets.snapshot.receipt import Failure
from tools.docs import error_codes
from tools.docs.errors_page import class_of, errors_page
from tools.docs.formats_page import FormatLine

PACKAGE = Path(pinot_assets.__file__).parent
PAGE = PACKAGE.parent / "docs" / "reference" / "errors.md"
CODE = [*Failure.__match_args__].index("code")


def test_the_page_is_fresh() -> None:
    # Write it with: python -m tools.docs.errors_page > docs/reference/errors.md
    assert PAGE.read_text(encoding="utf-8") == errors_page()


def test_every_class_of_errors_is_registered_and_no_other() -> None:
    found = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.PinotAssetsError)
    }
    assert found == set(error_codes.CLASSES)


def test_every_class_that_is_a_kind_of_them_is_registered_and_no_other() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "__main__.py":
            importlib.import_module(f"pinot_assets.{_module_of(path)}".removesuffix(".__init__"))
    found = {kind for kind in _kinds_of(errors.PinotAssetsError) if kind.__module__ != errors.__name__}
    ours = {kind for kind in found if kind.__module__.startswith("pinot_assets.")}
    assert {f"{kind.__module__}.{kind.__name__}".partition(".")[2] for kind in ours} == set(error_codes.KINDS)
    for name in error_codes.KINDS:
        kind = class_of(name)
        if issubclass(kind, FileRejected) and kind is not FileRejected:
            assert error_codes.KINDS[name].means == f"`{kind.code}`"


def test_every_code_of_a_refused_feature_is_on_the_page() -> None:
    _, _, page = errors_page().partition("## Codes of features")
    assert {feature.code for feature in FormatLine if feature.code} == set(
        re.findall(r"^\| `([A-Z0-9_]+)` \|", page, re.MULTILINE)
    )


def _kinds_of(kind: type[errors.PinotAssetsError]) -> Iterator[type[errors.PinotAssetsError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _kinds_of(one)


def _module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def test_every_code_of_a_failed_file_is_registered_and_no_other() -> None:
    assert set(used()) == set(error_codes.CODES)


def used() -> Iterator[str]:
    """Codes in the source: of a kind of error, of the list that maps kinds to codes, of a `Failure` made."""
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if not any(word in source for word in ("FileRejected", "Failure(", "receipt import")):
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                yield from _of_class(node)
            elif isinstance(node, ast.ImportFrom) and node.module == receipt.__name__:
                yield from (value for name in node.names if isinstance(value := _constant(name.name), str))
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Failure":
                yield from _of_failure(node, path)
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_CODES":
                yield from (code for _, code in _value_of("_CODES", path))
            elif (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "next"
                and "_CODES" in ast.unparse(node)
            ):
                yield ast.literal_eval(node.args[1])


def _of_class(node: ast.ClassDef) -> Iterator[str]:
    for line in node.body:
        match line:
            case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))):
                yield code
            case ast.AnnAssign(target=ast.Name(id="code"), value=ast.Constant(value=str(code))):
                yield code


def _constant(name: str) -> object:
    return getattr(receipt, name)


def _of_failure(call: ast.Call, path: Path) -> Iterator[str]:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    if len(call.args) <= CODE and not named:
        return  # read from where it was stored
    code = named[0] if named else call.args[CODE]
    if isinstance(code, ast.Constant):
        yield str(code.value)
    elif ast.unparse(code) != "code":  # `failure_of`: what a kind of error, or the list of them, says
        yield str(_value_of(ast.unparse(code), path))


def _value_of(name: str, path: Path) -> object:
    return getattr(importlib.import_module(f"pinot_assets.{_module_of(path)}"), name)
