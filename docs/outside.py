"""Pages of docs/ link to other files of the repository; the site brings those files along.

A link is written as it works on GitHub (`../dagster.yaml`). The site has each file outside docs/ that a page
links to below `repository/`: Markdown as a page, the rest as it is. The links of the pages lead there.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = "docs"
OUTSIDE = "repository"
"""The folder of the site that has the files from outside docs/."""

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)")
"""Target of a Markdown link or picture within the repository, without its anchor."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that pages link to, and those that these files link to in turn."""
    root = Path(config.config_file_path).parent
    waiting = [f"{DOCS}/{file.src_uri}" for file in files.documentation_pages()]
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in sorted(linked(page, (root / page).read_text(encoding="utf-8"))):
            if target in seen or target.startswith(f"{DOCS}/") or not (root / target).is_file():
                continue
            seen.add(target)
            added = File.generated(config, f"{OUTSIDE}/{target}", abs_src_path=str(root / target))
            files.append(added)
            if target.endswith(".md"):
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Return a page with links to where the site has their targets."""
    here = page.file.src_uri
    return LINK.sub(lambda link: _relinked(here, link[1]), markdown)


def linked(page: str, markdown: str) -> set[str]:
    """Return what a page of the repository links to, as paths from the repository's root."""
    return {
        posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for link in LINK.findall(markdown)
    }


def in_repository(site_path: str) -> str:
    """Return a path of the site as one of the repository: `guides/push.md` → `docs/guides/push.md`."""
    outside = site_path.removeprefix(f"{OUTSIDE}/")
    return outside if outside != site_path else f"{DOCS}/{site_path}"


def in_site(path: str) -> str:
    """Return a path of the repository as one of the site: `SECURITY.md` → `repository/SECURITY.md`."""
    inside = path.removeprefix(f"{DOCS}/")
    return inside if inside != path else f"{OUTSIDE}/{path}"


def _relinked(here: str, link: str) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(in_repository(here)), link))
    return posixpath.relpath(in_site(target), posixpath.dirname(here) or ".")
