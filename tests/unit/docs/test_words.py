"""Pages, texts, docstrings and comments say things in words that a person says: none of `REFUSED`.

Each of these words once stood for several plainer ones, so that a reader had to guess which. Code between
backticks is exempt, and so are blocks of code of a page.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from fakes.project import ROOT
from typer.core import TyperGroup
from typer.main import get_command

from pinot_assets.cli.main import app
from tools.docs.cli_page import commands

REFUSED: Final = {
    "is told": r"(?:is|are|was|were|be|been|being)\s+told",
    "stand": r"st(?:ands?|ood)(?!-)",
    "come to": r"c(?:omes?|oming|ame)\s+to",
    "held against": r"h(?:eld|olds?|olding)\s+against",
    "go on": r"(?:go|goes|going|gone|went)\s+on",
    "let in": r"let(?:s|ting)?\s+in",
    "take along": r"t(?:akes?|aking|aken|ook)\s+along",
    "nobody": r"nobody",
}
"""A word as we call it → its forms. Write: shows, reports, is in, amounts to, reaches, is compared with,
continues, accepts, includes, no one (better: who does not). A stand-in is a word of the language."""

ANY: Final = re.compile(r"\b(?:" + "|".join(REFUSED.values()) + r")\b", re.IGNORECASE)
CODE_SPAN: Final = re.compile(r"(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.DOTALL)
FENCE: Final = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.DOTALL | re.MULTILINE)
LINK_TARGET: Final = re.compile(r"(?<=\])\([^)\s]*\)")
PAGES: Final = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FILES: Final = [
    *(ROOT / name for name in ("Makefile", "dagster.yaml", "workspace.yaml")),
    *(path for path in sorted((ROOT / "tables").rglob("*")) if path.is_file()),
    *(path for path in sorted((ROOT / "deploy").rglob("*")) if path.is_file()),
]
"""Files of others' formats, whose comments and texts people read."""

MODULES: Final = [
    path
    for folder in ("pinot_assets", "resources", "sensors", "tools", "demos", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def refused(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line (from 1) and the word of each refused word of a text, code spans left out."""
    plain = CODE_SPAN.sub(_blank, text)
    for found in ANY.finditer(plain):
        yield plain.count("\n", 0, found.start()) + 1, " ".join(found[0].split())


def refused_in_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each refused word of a page, without its code and its links' targets."""
    for exempt in (FENCE, LINK_TARGET):
        text = exempt.sub(_blank, text)
    yield from refused(text)


def refused_in_module(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the word of each refused word of a module's strings, docstrings and comments."""
    for line, text in (*_strings(ast.parse(code)), *_comments(code)):
        yield from ((line + below - 1, word) for below, word in refused(text))


def unreleased(changelog: str) -> str:
    """Return the lines of a changelog up to its second version."""
    first, *_ = re.findall(r"\A.*?^## \[.*?(?=^## \[|\Z)", changelog, re.MULTILINE | re.DOTALL)
    return first


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "_", found[0])


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Texts with the line on which each begins. Of an f-string, an expression counts as one sign."""
    inner = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            yield node.lineno, node.value


def _comments(code: str) -> Iterator[tuple[int, str]]:
    """Comments with the line on which each begins; lines of comment below each other are one."""
    first, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT:
            continue
        if lines and token.start[0] != first + len(lines):
            yield first, "\n".join(lines)
            lines = []
        first = first if lines else token.start[0]
        lines.append(token.string.removeprefix("#"))
    yield first, "\n".join(lines)


def _shown(path: Path, found: Iterator[tuple[int, str]]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}: {word}" for line, word in found]


def test_no_page_has_a_refused_word() -> None:
    changelog = ROOT / "CHANGELOG.md"
    assert [
        *(word for page in PAGES for word in _shown(page, refused_in_page(page.read_text()))),
        *_shown(changelog, refused_in_page(unreleased(changelog.read_text()))),
    ] == []


def test_no_file_of_an_installation_has_a_refused_word() -> None:
    assert [word for path in FILES for word in _shown(path, refused(path.read_text()))] == []


def test_no_module_has_a_refused_word() -> None:
    assert [word for path in MODULES for word in _shown(path, refused_in_module(path.read_text()))] == []


def test_no_help_has_a_refused_word() -> None:
    """Help may be put together from parts that have no refused word alone."""
    program = get_command(app)
    assert isinstance(program, TyperGroup)
    wrong = {
        (*path, word)
        for path, command in commands(program)
        for text in (command.help, *(getattr(each, "help", None) for each in command.params))
        for _, word in refused(text or "")
    }
    assert wrong == set()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It is told\nto go on.", [(1, "is told"), (2, "go on")]),
        ("What was\ntold came  to 3; nobody LETS IN what went on.", [
            *((1, "was told"), (2, "came to"), (2, "nobody"), (2, "LETS IN"), (2, "went on")),
        ]),
        ("It stood, held against all, taken along.", [(1, "stood"), (1, "held against"), (1, "taken along")]),
        ("A stand-in understands `what stands`, goes online, is toldable, became to.", []),
    ],
)  # fmt: skip
def test_forms_of_refused_words(text: str, words: list[tuple[int, str]]) -> None:
    assert [*refused(text)] == words


def test_code_of_a_page_is_exempt() -> None:
    page = (
        "```sh\nnobody\n```\n[a link](stand.md) and ``a `nobody` ``\n    ~~~\n    go on\n    ~~~\nit stands\n"
    )
    assert [*refused_in_page(page)] == [(8, "stands")]


def test_only_the_unreleased_part_of_the_changelog_counts() -> None:
    assert unreleased("a\n## [0.2.0] - unreleased\nb\n## [0.1.0]\nc\n") == ("a\n## [0.2.0] - unreleased\nb\n")


def test_strings_docstrings_and_comments_of_a_module_count() -> None:
    code = '"""A\nnobody."""\nx = f"it {x} goes " "on"  # It\n# stands.\nstand = go_on = "stand_in"\n'
    assert sorted(refused_in_module(code)) == [(2, "nobody"), (3, "goes on"), (4, "stands")]
