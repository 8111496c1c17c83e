"""Values that Pinot cannot hold as they are in the files: cut at a NUL, or at the column's `maxLength`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pinot_assets.audit.checks import Finding
from pinot_assets.core.check_result import Severity, base_name, some
from pinot_assets.core.text import plural
from pinot_assets.segment.values.normalize import Cut
from pinot_assets.table_spec.blocks.audit_checks import CutCheck

Lost = Mapping[str, Mapping[str, Cut]]
"""What columns lost, by the URI of the file, and by name."""

_FIX = "keep the gate open with `- check: {name}`, `severity: warn`, or mend {what}"


def cut_values(lost: Lost, bounds: Collection[CutCheck]) -> Iterator[Finding]:
    """One finding for each reason for which values were cut.

    A NUL keeps the gate shut: whoever wrote it did not expect the rest to vanish. A length is what the schema
    sets, so it is shown alone. The table spec may say otherwise of both.

    :param bounds: what it says.
    """
    said: dict[str, str] = {bound.check: bound.severity for bound in bounds}
    at_nul = {uri: {name: cut.at_nul for name, cut in columns.items()} for uri, columns in lost.items()}
    at_length = {uri: {name: cut.at_length for name, cut in columns.items()} for uri, columns in lost.items()}
    yield from _finding(
        "cut_at_nul",
        at_nul,
        "held a NUL and lost what follows it",
        "the files",
        said.get("cut_at_nul", "error"),
    )
    yield from _finding(
        "cut_at_max_length",
        at_length,
        "were longer than maxLength and were cut to it or replaced",
        "maxLength in the schema",
        said.get("cut_at_max_length", "warn"),
    )


def _finding(
    name: str, lost: Mapping[str, Mapping[str, int]], how: str, what: str, severity: str
) -> Iterator[Finding]:
    counts = [
        f"{base_name(uri)}: {column} {plural(count, 'value')}"
        for uri, columns in lost.items()
        for column, count in columns.items()
        if count
    ]
    if not counts:
        return
    total = sum(count for columns in lost.values() for count in columns.values())
    fix = "" if severity == "warn" else f"; {_FIX.format(name=name, what=what)}"
    message = f"{plural(total, 'value')} {how}: {some(counts, between='; ')}{fix}"
    yield Finding(name, False, 0, total, message, severity=Severity(severity.upper()), of_data=True)
