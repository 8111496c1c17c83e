"""The asset `pinot_assets/tables`: one page in Dagster with a line for each table that is not up to date.

Dagster's catalog and asset graph show red checks and missing assets, and no other state of a table. This
asset has the state of every table in words. The sensor `pinot_tables` records it whenever a line changes.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations themselves.

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from pinot_assets.assets.health import AssetEvent
from pinot_assets.assets.history import newest_evaluation
from pinot_assets.assets.keys import table_key
from pinot_assets.assets.metadata import Metadata
from pinot_assets.assets.partitions import digest
from pinot_assets.core.check_result import Severity, some
from pinot_assets.core.text import plural
from pinot_assets.printable import visible
from pinot_assets.realtime.health.all_checks import CHECKS as REALTIME_CHECKS
from pinot_assets.session.detect.table_status import NAME, TableCondition
from pinot_assets.table_spec import AnyTableSpec, LeftOut, TableSpec, label_of

KEY: Final = dg.AssetKey(["pinot_assets", "tables"])
CHECK: Final = "all_tables"
ALL: Final = "all tables"
"""Metadata entry that counts the states; no table has a blank in its name."""
MOST_LINES: Final = 200
"""The most tables that are listed, because Dagster's page shows all entries at once."""

Evaluations = Mapping[dg.AssetCheckKey, dg.AssetCheckEvaluation]


@dataclass(frozen=True, slots=True)
class TableLine:
    """The state of one table.

    :ivar state: in a word, as `pinot-assets status` shows it for an OFFLINE table.
    :ivar severity: None if the table is well.
    """

    table: str
    state: str
    text: str
    severity: Severity | None

    @property
    def rank(self) -> tuple[int, str]:
        """Where the line belongs: tables that need a person first, then by name."""
        return ([Severity.ERROR, Severity.WARN, None].index(self.severity), self.table)


def overview_definitions(specs: Sequence[AnyTableSpec], left_out: Sequence[LeftOut] = ()) -> dg.Definitions:
    """Return the asset of the overview, and its check, which a person can run as well.

    :param left_out: tables whose spec cannot be used.
    """
    asset = dg.AssetSpec(
        KEY,
        group_name="pinot_assets",
        kinds={"pinot"},
        description="The state of all tables of this code location. Tables that need a person come first. "
        "The sensor `pinot_tables` keeps it up to date.",
    )

    @dg.asset_check(
        asset=KEY,
        name=CHECK,
        blocking=False,
        description="No table has failed or is held by a rollback (error), and every table is up to date "
        "(warning). Compares what was recorded of each table.",
    )
    def all_tables(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        found = _evaluation(overview_lines(specs, recorded_evaluations(context.instance, specs), left_out))
        return dg.AssetCheckResult(
            passed=found.passed, severity=found.severity, description=found.description
        )

    return dg.Definitions(assets=[asset], asset_checks=[all_tables])


def overview_events(
    instance: dg.DagsterInstance,
    specs: Sequence[AnyTableSpec],
    newer: Iterable[AssetEvent],
    left_out: Sequence[LeftOut] = (),
) -> tuple[AssetEvent, ...]:
    """Return the overview as a materialization and an evaluation, or nothing if Dagster has it already.

    :param newer: events that Dagster has not stored yet.
    :param left_out: tables whose spec cannot be used.
    """
    evaluations = {
        **recorded_evaluations(instance, specs),
        **{e.asset_check_key: e for e in newer if isinstance(e, dg.AssetCheckEvaluation)},
    }
    lines = overview_lines(specs, evaluations, left_out)
    # The sentence of a table that is well names its newest session, which is no news here.
    version = digest(f"{line.table} {line.state} {line.severity and line.text}" for line in lines)
    last = instance.get_latest_materialization_event(KEY)
    stored = last.asset_materialization if last is not None else None
    if stored is not None and (stored.tags or {}).get(DATA_VERSION_TAG) == version:
        return ()
    return (
        dg.AssetMaterialization(KEY, metadata=_metadata(lines), tags={DATA_VERSION_TAG: version}),
        _evaluation(lines),
    )


def recorded_evaluations(instance: dg.DagsterInstance, specs: Iterable[AnyTableSpec]) -> Evaluations:
    """Return what Dagster stores as the newest evaluation of each check that a line is made of."""
    keys = [key for spec in specs for key in _check_keys(spec)]
    records = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    ended = dict[dg.AssetCheckKey, dg.AssetCheckEvaluation]()
    for key, record in records.items():
        if isinstance(record.evaluation, dg.AssetCheckEvaluation):
            ended[key] = record.evaluation
        elif (before := newest_evaluation(instance, key)) is not None:  # a run evaluates the check now
            ended[key] = before.evaluation
    return ended


def overview_lines(
    specs: Iterable[AnyTableSpec], evaluations: Evaluations, left_out: Iterable[LeftOut] = ()
) -> list[TableLine]:
    """Return one line for each table, tables that need a person first."""
    lines = (
        _offline_line(spec, evaluations) if isinstance(spec, TableSpec) else _realtime_line(spec, evaluations)
        for spec in specs
    )
    broken = (TableLine(one.name, "broken", visible(one.in_one_line), Severity.ERROR) for one in left_out)
    return sorted((*lines, *broken), key=lambda line: line.rank)


def _check_keys(spec: AnyTableSpec) -> Iterator[dg.AssetCheckKey]:
    names = (NAME,) if isinstance(spec, TableSpec) else (check.name for check in REALTIME_CHECKS)
    return (dg.AssetCheckKey(table_key(spec), name) for name in names)


def _offline_line(spec: TableSpec, evaluations: Evaluations) -> TableLine:
    (key,) = _check_keys(spec)
    status = evaluations.get(key)
    if status is None:
        return _not_looked_at(spec)
    state = status.metadata.get("state")
    word = state.value if isinstance(state, dg.TextMetadataValue) else TableCondition.NOT_KNOWN.value
    sentence = (status.description or "").partition("\n")[0].partition("; queries see ")[0]
    command = status.metadata.get("command")
    then = f" → {command.value}" if isinstance(command, dg.TextMetadataValue) else ""
    severity = None if status.passed else Severity(status.severity.value)
    return TableLine(label_of(spec), str(word), f"{sentence}{then}", severity)


def _realtime_line(spec: AnyTableSpec, evaluations: Evaluations) -> TableLine:
    found = [evaluations[key] for key in _check_keys(spec) if key in evaluations]
    failed = [evaluation for evaluation in found if not evaluation.passed]
    if not found:
        return _not_looked_at(spec)
    if not failed:
        return TableLine(label_of(spec), "healthy", f"{plural(len(found), 'check')} passed", None)
    is_error = any(evaluation.severity is dg.AssetCheckSeverity.ERROR for evaluation in failed)
    severity = Severity.ERROR if is_error else Severity.WARN
    names = some([str(evaluation.check_name) for evaluation in failed])
    state = "unhealthy" if is_error else "warning"
    return TableLine(label_of(spec), state, f"{state}: {names} failed; see its checks", severity)


def _not_looked_at(spec: AnyTableSpec) -> TableLine:
    state, text = TableCondition.NOT_KNOWN.value, f"{label_of(spec)} was not looked at yet"
    return TableLine(label_of(spec), state, text, Severity.WARN)


def _counted(lines: Sequence[TableLine]) -> str:
    counts = Counter(line.state for line in lines)
    return f"{plural(len(lines), 'table')}: " + ", ".join(f"{n:,} {state}" for state, n in counts.items())


def _metadata(lines: Sequence[TableLine]) -> Metadata:
    unwell = [line for line in lines if line.severity is not None]
    values: dict[str, dg.MetadataValue | str | int | float] = {ALL: _counted(lines)}
    values |= {line.table: line.text for line in unwell[:MOST_LINES]}
    if len(unwell) > MOST_LINES:
        values["not listed"] = f"{plural(len(unwell) - MOST_LINES, 'table')}; `pinot-assets status` lists all"
    return values


def _evaluation(lines: Sequence[TableLine]) -> dg.AssetCheckEvaluation:
    needs_person = any(line.severity is Severity.ERROR for line in lines)
    return dg.AssetCheckEvaluation(
        asset_key=KEY,
        check_name=CHECK,
        passed=all(line.severity is None for line in lines),
        severity=dg.AssetCheckSeverity.ERROR if needs_person else dg.AssetCheckSeverity.WARN,
        description=_counted(lines),
        metadata={},
        blocking=False,
    )
