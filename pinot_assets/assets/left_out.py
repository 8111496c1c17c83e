"""What Dagster shows in place of a table whose spec is wrong: its asset, and a check that fails."""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections.abc import Sequence

import dagster as dg

from pinot_assets.assets.metadata import plain
from pinot_assets.printable import visible
from pinot_assets.table_spec import LeftOut

CHECK = "table_spec"
"""The check that fails as long as the spec is wrong."""


def left_out_asset(name: str, files: Sequence[LeftOut]) -> dg.AssetSpec:
    """The table's asset, whose description says what is wrong.

    :param name: of the asset.
    :param files: what is wrong, file by file: two where both are about the table.
    """
    return dg.AssetSpec(
        dg.AssetKey([name]),
        group_name=name.removesuffix("_realtime"),
        kinds={"pinot", "table"},
        description="**This table is left out, because its table spec is wrong.** What queries see stays as "
        f"it is. The other tables of this code location go on.\n\n{problems_of(files)}\n\nCorrect the file, "
        "look with `pinot-assets tables validate`, then reload the code location.",
    )


def left_out_check(name: str, files: Sequence[LeftOut]) -> dg.AssetChecksDefinition:
    """Fails at each run, and says what is wrong."""
    key, told = dg.AssetKey([name]), problems_of(files)

    @dg.asset_check(
        asset=key, name=CHECK, blocking=False, description="The table spec can be used. Reads nothing."
    )
    def check() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.ERROR, description=told)

    return check


def problems_of(files: Sequence[LeftOut]) -> str:
    """Every problem of them, once each, as a list in Markdown."""
    found = dict.fromkeys(str(problem) for one in files for problem in one.problems)
    return "\n".join(f"- {plain(visible(text))}" for text in found)
