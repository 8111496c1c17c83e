"""The site of docs/, opened from a folder: its search answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Page, expect

ROOT = Path(__file__).parents[2]


def test_the_search_answers_in_a_page_from_a_folder(page: Page, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    page.goto((tmp_path / "guides" / "gc.html").as_uri())
    page.get_by_placeholder("Search").click()
    page.keyboard.type("lineage")
    first = page.locator(".md-search-result__item a").first
    expect(first).to_have_attribute("href", (tmp_path / "design" / "lineage.html").as_uri() + "?h=lineage")
