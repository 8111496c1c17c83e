"""Names of this project in docstrings and comments are there: what was renamed is renamed in them, too.

Looked at are names in backticks that are spelled as Python spells them, such as `module.name` or
`a_function`. Java's names, keys of configs and words without an underscore cannot be told from a stranger's.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fakes.project import ROOT

OURS: Final = ("pinot_assets", "resources", "sensors", "demos", "tools", "benchmarks")
NAME: Final = re.compile(r"`([a-z_][\w.]*)(?:\(\))?`")
SPELLED: Final = re.compile(r"(?=.*_)[a-z][a-z0-9]*(?:_[a-z0-9]+)*|[A-Z][A-Z0-9_]*")
"""A function, module or constant of Python's kind."""

STRANGERS: Final = frozenset(
    {"floor_temporal", "gcs_base_url", "murmur3_128", "pkg_resources", "pinot_assets_up"}
)
"""Of pyarrow, of a key file of Google's, a hash, of setuptools; a metric, which is put together."""


def names_told(tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, str]]:
    """Parts of the names that stand in backticks, each with its line."""
    for token in tokens:
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and _is_docstring(token)):
            for found in NAME.finditer(token.string):
                line = token.start[0] + token.string.count("\n", 0, found.start())
                yield from ((line, part) for part in found[1].split(".") if SPELLED.fullmatch(part))


def words_of(tokens: list[tokenize.TokenInfo]) -> Iterator[str]:
    """All that is a name in the code, or part of a text that is no docstring."""
    for token in tokens:
        if token.type == tokenize.NAME:
            yield token.string
        elif token.type == tokenize.STRING and not _is_docstring(token):
            yield from re.findall(r"\w+", token.string)


def _is_docstring(token: tokenize.TokenInfo) -> bool:
    return token.line.lstrip().startswith(('"""', 'r"""'))


def _tokens(path: Path) -> list[tokenize.TokenInfo]:
    return [*tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)]


def test_names_in_docstrings_and_comments_are_there() -> None:
    paths = [path for folder in OURS for path in sorted((ROOT / folder).rglob("*.py"))]
    read = {path: _tokens(path) for path in paths}
    there = set(STRANGERS) | {part for path in paths for part in path.with_suffix("").parts}
    there.update(word for tokens in read.values() for word in words_of(tokens))
    for path in (ROOT / "tests").rglob("*.py"):
        there.update(path.with_suffix("").parts)
    gone = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path, tokens in read.items()
        for line, name in names_told(tokens)
        if name not in there
    ]
    assert gone == []


def test_a_name_that_is_gone_is_found() -> None:
    code = 'def f(x):\n    """As `old_name`, `module.f` and `x`."""\n    return x  # `module.OLD_ONE`\n'
    tokens = [*tokenize.generate_tokens(io.StringIO(code).readline)]
    assert [*names_told(tokens)] == [(2, "old_name"), (3, "OLD_ONE")]
    assert {"f", "x", "return"} <= set(words_of(tokens))
