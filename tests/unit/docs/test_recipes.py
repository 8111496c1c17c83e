"""docs/recipes and docs/glossary.md name places of the code: each of them is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from fakes.project import ROOT
from surface.listing import gate_checks

PAGES = (*sorted((ROOT / "docs" / "recipes").glob("*.md")), ROOT / "docs" / "glossary.md")
PLACE = re.compile(
    r"`((?:pinot_assets|resources|sensors|tests|tools|demos|docs|tables)/[\w./-]*[\w-])(?::([A-Za-z_][\w.]*))?`"
)
WORD = re.compile(r"^\| \*\*(.+?)\*\* \|", re.MULTILINE)


def places() -> Iterator[tuple[str, str, str]]:
    """Page, path and name of each place, the name empty where a file or a folder is meant."""
    for page in PAGES:
        for path, name in PLACE.findall(page.read_text(encoding="utf-8")):
            yield page.name, path, name


@pytest.mark.parametrize(("page", "path", "name"), sorted(set(places())))
def test_every_place_is_there(page: str, path: str, name: str) -> None:
    assert (ROOT / path).exists(), f"{page}: {path}"
    if name:
        inside: list[ast.stmt] = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        for part in name.split("."):
            found = [node for node in inside if part in _named(node)]
            assert found, f"{page}: {path} has no {name}"
            inside = getattr(found[0], "body", [])


def _named(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def test_every_recipe_is_in_their_index() -> None:
    index = (ROOT / "docs" / "recipes" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[([\w-]+\.md)\]\(\1\) \|", index, re.MULTILINE)
    there = {path.name for path in (ROOT / "docs" / "recipes").glob("*.md")} - {"README.md"}
    assert sorted(listed) == sorted(there)


def test_every_recipe_says_what_complains_and_has_an_example() -> None:
    for page in (ROOT / "docs" / "recipes").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        assert "```bash\n" in text, page.name
        if page.name not in ("README.md", "stuck-session.md"):
            assert re.search(r"^\| test \| until \|$", text, re.MULTILINE), page.name
            assert re.search(r"^#{2,3} Example$", text, re.MULTILINE), page.name


@pytest.mark.parametrize("name", sorted({*gate_checks()} - {"audited"}))
def test_every_check_of_the_gate_has_its_row(name: str) -> None:
    """`audited` is what a run shows in place of checks whose switch may be over by now."""
    page = (ROOT / "docs" / "guides" / "audit.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("\n## All checks\n")
    rows = re.findall(r"^\| `([^`]+)` \|", rest.partition("\n## ")[0], re.MULTILINE)
    plain = name.partition(" ")[0].removesuffix(":")
    assert plain == "*" or plain in rows


def test_a_word_has_one_meaning() -> None:
    words = WORD.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
    assert len(words) > 60
    assert [word for word in words if words.count(word) > 1] == []
