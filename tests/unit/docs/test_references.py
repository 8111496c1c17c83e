"""What comments, tests and pages cite can be opened: pages, their anchors, and the codes of rules.

docs/design/README.md says how comments cite. That each number has a test is the subject of
`test_numbered_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fakes.links import LINK, anchors, prose
from fakes.project import ROOT

FOLDERS: Final = (
    *("pinot_assets", "resources", "sensors", "tests", "docs"),
    *("benchmarks", "demos", "deploy", "tables", "tools"),
)
ENDINGS: Final = (".py", ".md", ".toml", ".java")
LEFT_OUT: Final = (
    *("CHANGELOG.md", "tools/house.md", "tests/mutants/before/", "tests/golden/"),  # of former times
    "tests/unit/docs/test_references.py",  # its samples lead nowhere
)

AT_LEAST: Final = 1111
"""As many as there were when they were last counted: a comment may be shortened, its source stays."""

PAGE: Final = re.compile(r"\bdocs/[\w/-]+\.md(?:#[\w-]+(?:[,;]?(?: and| to)?\s+#[\w-]+)*)?")
"""`docs/design/lineage.md#races`, or several anchors of one page: `docs/design/realtime.md#s4 and #v2`."""

MODULE: Final = re.compile(r"`([\w/-]*\w\.py)(?::[\w.]+)?`")
"""`session/close.py`, with or without the name of something in it."""

CODE: Final = re.compile(r'(?<![\w.#/-])(?!(?<=")E\d+")(?:[RWIE][1-9]\d?|[Tt]raps? \d+)(?!\w|[.-]\w)')
"""`R2`, `W5`, `I12`, `E16`, `trap 27`. `"E1"` alone between quotes is the name of a file in tests."""

ELSEWHERE: Final = re.compile(r"\bspec/[\w-]+\.md|\bspec\s+sections?\b|\bseed 0\d\d", re.IGNORECASE)
"""Documents that are not in the repository."""

SECTION: Final = re.compile(r"\bsections? \d", re.IGNORECASE)
"""Says nothing of what is there, nor in which page."""

WHERE: Final = {
    "R": "docs/design/session.md",
    "W": "docs/design/session.md",
    "I": "docs/design/session.md",
    "E": "docs/edge-cases.md",
    "T": "docs/design/segment-format.md",
}


def texts() -> Iterator[tuple[str, str]]:
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    for path in (*ROOT.glob("*"), *found):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in ENDINGS and path.is_file() and not name.startswith(LEFT_OUT):
            yield name, path.read_text()


TEXTS: Final = dict(texts())


@cache
def anchors_of(page: Path) -> set[str]:
    return anchors(page)


def leads_nowhere(page: Path, anchor: str) -> bool:
    return not page.exists() or (anchor != "" and anchor not in anchors_of(page))


def cited(text: str) -> Iterator[tuple[str, str]]:
    """Page and anchor of each citation; the anchor is empty where the whole page is meant."""
    for found in PAGE.findall(text):
        page, *names = re.split(r"[,;]?(?: and| to)?\s*#", found)
        yield from ((page, name) for name in names or [""])


def place(code: str) -> tuple[str, str]:
    """Page and anchor of a code: `R2` → `docs/design/session.md`, `r2`."""
    return WHERE[code[0].upper()], re.sub(r"^traps? ", "trap-", code.lower())


def test_the_patterns_find_what_is_cited_and_nothing_else() -> None:
    assert [*cited("see docs/a/b.md#x-1, #y and\n#z; docs/c.md, #no")] == [
        *(("docs/a/b.md", "x-1"), ("docs/a/b.md", "y"), ("docs/a/b.md", "z")),
        ("docs/c.md", ""),
    ]
    assert CODE.findall('R2, (W5) I12: "E9 has", Trap 3; traps 33 and 34') == [
        *("R2", "W5", "I12", "E9", "Trap 3", "traps 33"),
    ]
    assert CODE.findall('R0 r2 "E1" E1.csv W3C sha-E9 R2D2 I5-x trap3 /E4 ISO8601 R100') == []
    assert place("Trap 3") == ("docs/design/segment-format.md", "trap-3")
    assert place("E16") == ("docs/edge-cases.md", "e16")
    assert leads_nowhere(ROOT / "docs" / "none.md", "")
    assert leads_nowhere(ROOT / "docs" / "edge-cases.md", "e34")


def test_every_page_and_anchor_that_is_cited_exists() -> None:
    wrong = {
        name: f"{page}#{anchor}"
        for name, text in TEXTS.items()
        for page, anchor in cited(text)
        if leads_nowhere(ROOT / page, anchor)
    }
    assert wrong == {}


def test_every_module_that_is_cited_exists() -> None:
    """`session/close.py` is cited from the package's top, or from any folder that the reader is in."""
    modules = {f"/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    wrong = {
        (name, cited)
        for name, text in TEXTS.items()
        if not name.startswith("docs/adr/")  # they tell of what was
        for cited in MODULE.findall(text)
        if not any(module.endswith(f"/{cited}") for module in modules)
    }
    assert wrong == set()


def test_every_code_has_its_paragraph() -> None:
    wrong = {}
    for name, text in TEXTS.items():
        for code in CODE.findall(text):
            page, anchor = place(code)
            if leads_nowhere(ROOT / page, anchor):
                wrong[name] = code
    assert wrong == {}


def test_every_link_of_a_page_leads_somewhere() -> None:
    wrong = {}
    for name in (name for name in TEXTS if name.endswith(".md")):
        here = ROOT / name
        for link in (link for link in LINK.findall(prose(here)) if not urlsplit(link).scheme):
            page, _, anchor = link.partition("#")
            if leads_nowhere(here.parent / page if page else here, anchor):
                wrong[name] = link
    assert wrong == {}


def test_nothing_cites_a_document_that_is_not_here() -> None:
    assert {name: found for name, text in TEXTS.items() if (found := ELSEWHERE.findall(text))} == {}


def test_no_code_cites_a_section_by_its_number() -> None:
    code = {name: text for name, text in TEXTS.items() if not name.endswith(".md")}
    assert {name: found for name, text in code.items() if (found := SECTION.findall(text))} == {}


def test_comments_go_on_citing() -> None:
    anchored = sum(1 for text in TEXTS.values() for _, anchor in cited(text) if anchor)
    found = anchored + sum(len(CODE.findall(text)) for text in TEXTS.values())
    assert found >= AT_LEAST, f"{found} references"
