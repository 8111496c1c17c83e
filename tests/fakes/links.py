"""Links between the project's Markdown pages, and what they can name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from pymdownx.slugs import slugify

LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_FENCED: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """A page without its blocks of code, in which `#` begins no heading."""
    return _FENCED.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """What a link to a page can name: its `<a id>`, and its headings as GitHub makes anchors of them."""
    to_anchor, text = slugify(case="lower"), prose(page)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        *re.findall(r'<a id="([^"]+)"></a>', text),
        *(to_anchor(re.sub(r"[`*]", "", heading), "-") for heading in headings),
    }
