"""Keys of what commands print with `--json`, of the notices to a webhook, and of Dagster's metadata."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

from typer.main import get_command

import pinot_assets.assets
import pinot_assets.sensors
from pinot_assets.cli import program
from pinot_assets.cli.commands import status, watch
from pinot_assets.cli.doctor import environment as pinot
from pinot_assets.cli.main import app
from pinot_assets.core.check_result import CheckResult
from pinot_assets.core.json_object import JsonObject
from pinot_assets.local.stack import PartStatus
from pinot_assets.pinot import LineageEntry
from pinot_assets.realtime.health import metrics
from pinot_assets.realtime.operations import rebalance
from pinot_assets.realtime.repair import model as repair
from pinot_assets.sensors import notice
from pinot_assets.session import driver
from pinot_assets.session.checks.server_checks import RowCount
from pinot_assets.session.detect.observe import FileState
from pinot_assets.settings.local_stack import StackState
from pinot_assets.snapshot.receipt import Fingerprint
from pinot_assets.table_spec.changes.spec_changes import SpecChange
from pinot_assets.table_spec.yaml.document import Note, Problem
from surface.json_keys import Reader, Scope
from tools.docs.cli_page import commands

MEANINGS: JsonObject = {
    "cli.commands.run:outcome.values": driver.RunOutcome.values.fget,
    "cli.doctor.doctor:entry": LineageEntry,
    "cli.doctor.doctor:looked": pinot.PinotLook,
    "cli.commands.local:part": PartStatus,
    "cli.commands.local:state": StackState,
    "cli.realtime.health:answer": CheckResult,
    "cli.realtime.health:metric": metrics.Metric,
    "cli.realtime.operations:report": rebalance.RebalanceReport,
    "cli.realtime.repair:manual(step)": repair.Manual,
    "cli.realtime.repair:refusal": repair.Unrepairable,
    "cli.realtime.repair:step": repair.Step,
    "cli.realtime.repair:waiting": repair.Waiting,
    "cli.realtime.health:row": metrics.SegmentRow,
    "cli.commands.snapshots:answer": RowCount,
    "session.plan_report.plan_report:fingerprint.to_json()": Fingerprint,
    "cli.commands.session:state": FileState,
    "cli.commands.tables:change": SpecChange,
    "cli.commands.tables:note": Note,
    "cli.commands.tables:problem": Problem,
}
"""What the source does not say by itself: which class is written, or which method is asked."""
READER = Reader(MEANINGS)


def json_output() -> Iterator[str]:
    """`<command>: <key>` for each command that has `--json`; `error` is how all of them print an error."""
    for path, command in commands(get_command(app)):
        if any("--json" in parameter.opts for parameter in command.params):
            printed = READER.printed(command.callback)
            printed |= READER.printed(watch._LineTeller.changed) if path == ("watch",) else set()
            for of_all in (status._stream_values, status._broken_values) if path == ("status",) else ():
                printed |= READER.returned(of_all)
            assert printed, f"{path} has --json, and no key of it was found"
            yield from (f"{' '.join(path)}: {key}" for key in printed)
    yield from (f"error: {key}" for key in READER.returned(program.error_values))


def notices() -> Iterator[str]:
    """Keys of what the webhook gets."""
    yield from READER.returned(notice.of_run) | READER.returned(notice.minimal)
    yield from (f"session.{key.partition('.')[2]}" for key in _of_table("session"))
    yield from (f"still_served.{key.partition('.')[2]}" for key in _of_table("snapshot"))


def _of_table(part: str) -> list[str]:
    return [key for key in READER.returned(notice.of_table) if key.startswith(f"{part}.")]


def dagster_metadata() -> Iterator[str]:
    """Keys of all metadata that assets, checks and sensors give to Dagster."""
    for package in (pinot_assets.assets, pinot_assets.sensors):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(info.name)
            tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
            name = info.name.removeprefix("pinot_assets.")
            for function in ast.walk(tree):
                if isinstance(function, ast.FunctionDef):
                    metadata = _metadata_of(Scope(function, name, vars(module)))
                    yield from (key for key in metadata if key[0] != "*")


def _metadata_of(scope: Scope) -> Iterator[str]:
    assert isinstance(scope.node, ast.FunctionDef)
    returns_it = scope.node.returns is not None and "Metadata" in ast.unparse(scope.node.returns)
    for one in ast.walk(scope.node):
        is_it = isinstance(one, ast.keyword) and one.arg == "metadata"
        is_it |= isinstance(one, ast.Return) and one.value is not None and returns_it
        if is_it:
            yield from READER.keys(one.value, scope)
        elif isinstance(one, ast.Dict) and "**metadata" in ast.unparse(one):
            yield from READER.keys(one, scope)
