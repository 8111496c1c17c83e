"""docs/ as a site: built strictly, its links and anchors lead somewhere, nothing comes from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from fakes.links import LINK, anchors
from fakes.project import ROOT
from markdown_it import MarkdownIt

PAGES = sorted((ROOT / "docs").rglob("*.md"))
OUTSIDE = sorted(ROOT.glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_no_code_of_the_build_is_in_the_site(site: Path) -> None:
    assert [path for path in site.rglob("*") if path.suffix in (".py", ".pyc")] == []


def html_of(site: Path, page: Path) -> str:
    place = page.relative_to(ROOT / "docs").with_suffix(".html")
    html = (site / (place.with_name("index.html") if page.name == "README.md" else place)).read_text()
    return html[html.index("<article") : html.index("</article>")]


def test_every_check_of_links_is_on() -> None:
    text = re.sub(r"!!python/\S+ ", "", (ROOT / "mkdocs.yml").read_text())
    checks = yaml.safe_load(text)["validation"]
    assert {name: set(checks[name].values()) for name in checks} == {"nav": {"warn"}, "links": {"warn"}}


def test_the_site_shows_what_github_shows(site: Path) -> None:
    """Two readers of Markdown: one of them takes a list for a list only after a blank line."""
    github = MarkdownIt("commonmark").enable("table")
    for page in PAGES:
        both = [html_of(site, page), github.render(page.read_text())]
        here, there = ({tag: len(re.findall(f"<{tag}[ >]", h)) for tag in ("li", "tr", "pre")} for h in both)
        assert here == there, page


def test_no_page_is_twice_in_the_index_or_the_menu() -> None:
    rows = re.findall(r"^\| .* \|$", (ROOT / "docs" / "README.md").read_text(), re.MULTILINE)
    links = [link for row in rows for link in re.findall(r"\]\(([^)]+)\)", row)]
    menu = re.findall(r"^      - (?:.*: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    for pages in (links, menu):
        assert len(pages) > 30
        assert [page for page in pages if pages.count(page) > 1] == []


def test_the_page_about_security_names_each_test_by_its_file() -> None:
    named = re.findall(r"`(tests/[^`]*)`", (ROOT / "docs" / "security.md").read_text())
    assert len(named) > 30
    assert [name for name in named if not (name.endswith(".py") and (ROOT / name).is_file())] == []


def test_each_line_about_who_can_write_what_names_a_test() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    _, _, after = text.partition("## Who can write what")
    rows = re.findall(r"^\| \*\*(.+?)\*\*.*\|([^|]+)\|$", after.partition("\n## ")[0], re.MULTILINE)
    assert len(rows) == 6, "bucket, staging area, ZooKeeper, table spec, UI, controller"
    _, _, after = text.partition("## What is read from others")
    rows += re.findall(r"^\*\*(.+?)\*\* \((.+?)\)\. ", after.partition("\n## ")[0], re.MULTILINE)
    assert len(rows) == 12
    assert [name for name, said in rows if "`tests/" not in said] == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    guides = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]
    told_elsewhere = {"README.md"} | {name for name in guides if name.startswith("adr/0")}
    assert [name for name in guides if f"]({name})" not in index and name not in told_elsewhere] == []


def test_every_picture_is_shown_by_a_page() -> None:
    pages = "".join(page.read_text() for page in (*PAGES, *OUTSIDE))
    pictures = [path for kind in ("png", "svg") for path in (ROOT / "docs").rglob(f"*.{kind}")]
    assert len(pictures) > 10
    assert [path.name for path in pictures if f"{path.parent.name}/{path.name}" not in pages] == []


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    loading = re.compile(
        r"""<(?:script|img|link|iframe|source)\b[^>]*?(?:src|href)=["'](?:https?:)?//[^"']*"""
    )
    styles = re.compile(r"""(?:@import|url\()\s*["']?(?:https?:)?//[^"')]*""")
    for path in site.rglob("*.html"):
        assert loading.findall(path.read_text()) == [], path
    for path in site.rglob("*.css"):
        assert styles.findall(path.read_text()) == [], path


@pytest.mark.parametrize("page", OUTSIDE, ids=lambda page: page.name)
def test_links_of_a_page_outside_docs_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if urlsplit(link).scheme:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", [*PAGES, *OUTSIDE], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_addresses_elsewhere_are_whole(page: Path) -> None:
    """Their form alone: whether they answer is no matter for a test without a network."""
    for link in LINK.findall(page.read_text()):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https", link
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), link


SESSION = re.compile(r"\b(cp\d+-[0-9a-f]{6})\b.*?\b(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d)\b")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_session_of_an_example_has_one_moment(page: Path) -> None:
    moments: dict[str, set[str]] = {}
    for session, moment in SESSION.findall(page.read_text()):
        moments.setdefault(session, set()).add(moment)
    assert {session: told for session, told in moments.items() if len(told) > 1} == {}
