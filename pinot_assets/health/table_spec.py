"""Checks that what is published was built as the table spec says."""

from __future__ import annotations

from pinot_assets.core.check_result import CheckProblem, CheckResult, Severity, base_name, result_of, some
from pinot_assets.health.check import check
from pinot_assets.health.table_probe import TableProbe


@check("Every published file was built as the table spec says now.")
def built_as_specified(probe: TableProbe) -> CheckResult:
    """No published file needs a rebuild because its table spec was changed.

    It is an error if a file that needs one is not in the source any more: then no run can mend it. Files that
    a release built which did not store recipes count as well built.
    """
    table, need = probe.spec.name, probe.rebuild_need()
    waiting, gone = len(need.possible.files), len(need.gone.files)
    snapshot = probe.snapshot()
    published = len(snapshot.files) if snapshot is not None else 0
    problems = []
    if gone:
        names = some([base_name(file.uri) for file in need.gone.files])
        problems.append(
            CheckProblem(
                f"{need.gone}; the source does not have {names}",
                "put them back into the source and rebuild, or undo the change of the table spec",
                Severity.ERROR,
            )
        )
    if waiting:
        problems.append(CheckProblem(str(need.possible), f"`pinot-assets rebuild {table}`"))
    return result_of(
        problems,
        expected=published,
        found=published - waiting - gone,
        good=f"all {published:,} published files were built as the table spec says",
        numbers={"files_outdated": waiting, "files_outdated_gone": gone},
    )
