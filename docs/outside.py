"""Pages of docs/ link to other files of the repository; the site brings those files along.

A link is written as it works on GitHub (`../dagster.yaml`). In the site each file outside docs/ that some
page links to stands below `repository/`, Markdown as a page and the rest as it is; links are bent to that.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = "docs"
BROUGHT = "repository"
"""The folder of the site in which files from outside docs/ stand."""

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)")
"""Target of a Markdown link or picture within the repository, without its anchor."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Bring along what pages link to, and what those pages link to in turn."""
    root = Path(config.config_file_path).parent
    waiting = [f"{DOCS}/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in sorted(linked(page, (root / page).read_text(encoding="utf-8"))):
            if target in seen or target.startswith(f"{DOCS}/") or not (root / target).is_file():
                continue
            seen.add(target)
            brought = File.generated(config, f"{BROUGHT}/{target}", abs_src_path=str(root / target))
            files.append(brought)
            if target.endswith(".md"):
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Bend the links of a page to where the site has their targets."""
    here = page.file.src_uri
    return LINK.sub(lambda link: _bent(here, link[1]), markdown)


def linked(page: str, markdown: str) -> set[str]:
    """What a page of the repository links to, as paths from the repository's root."""
    return {
        posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for link in LINK.findall(markdown)
    }


def in_repository(site_path: str) -> str:
    """`repository/SECURITY.md` → `SECURITY.md`, `guides/push.md` → `docs/guides/push.md`."""
    outside = site_path.removeprefix(f"{BROUGHT}/")
    return outside if outside != site_path else f"{DOCS}/{site_path}"


def in_site(path: str) -> str:
    """The way back from `in_repository`."""
    inside = path.removeprefix(f"{DOCS}/")
    return inside if inside != path else f"{BROUGHT}/{path}"


def _bent(here: str, link: str) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository(here)), link))
    return posixpath.relpath(in_site(target), posixpath.dirname(here) or ".")
