"""The tables of docs/guides/formats.md: `python -m tools.docs.formats_page` prints them."""

from __future__ import annotations

import sys

from pinot_assets.segment.column.support import Feature, Section


def support_tables() -> str:
    """The list of features as Markdown, one table for each section."""
    return "\n".join(map(_table, Section))


def _table(section: Section) -> str:
    lines = [f"### {section}", "", "| feature | answer | |", "|---|---|---|"]
    for feature in Feature:
        if feature.section is section:
            told = f"{feature.reason} (`{feature.code}`)" if feature.code else feature.reason
            lines.append(f"| {feature.title} | {feature.answer} | {told} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(support_tables())
