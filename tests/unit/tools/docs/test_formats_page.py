from __future__ import annotations

from fakes.project import ROOT

from tools.docs.formats_page import FormatLine, support_tables

PAGE = ROOT / "docs" / "guides" / "formats.md"


def test_the_page_shows_the_list() -> None:
    page = PAGE.read_text(encoding="utf-8")
    _, _, rest = page.partition("<!-- python -m tools.docs.formats_page -->\n\n")
    shown, end, _ = rest.partition("\n<!-- end -->")
    assert end
    assert shown == support_tables()


def test_every_feature_stands_in_one_line() -> None:
    lines = support_tables().splitlines()
    assert [
        sum(line.startswith(f"| {feature.title} | {feature.answer} |") for line in lines)
        for feature in FormatLine
    ] == [1] * len(FormatLine)
