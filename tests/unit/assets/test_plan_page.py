"""The plan report as a page in Dagster."""

from __future__ import annotations

import dagster as dg
from model.world.lives import lived, planned

from pinot_assets.assets.plan_page import plan_metadata


def test_the_page_is_markdown_with_every_section() -> None:
    plan = planned(lived("sync", "a new, a rewritten, a deleted"))
    metadata = plan_metadata(plan)
    page = metadata["plan"]
    assert isinstance(page, dg.MarkdownMetadataValue)
    assert page.value is not None
    for text in (
        "**a new session builds 2 files of 4 B, removes 1 file**",
        "| files |  |\n|---|---|\n| listed | 2 files in mem://",
        "| segments | 2 → about 2: 2 replaced, about 2 new |",
        "| sync | 2 files, 4 B | 2 segments | this table's mode |",
        f"--plan {plan.planned.plan_basis.hash}`",
    ):
        assert text in page.value
    assert (metadata["files_new"], metadata["files_deleted"], metadata["segments_replaced"]) == (1, 1, 2)
