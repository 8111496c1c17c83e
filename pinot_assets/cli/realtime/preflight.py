"""`pinot-assets realtime preflight`, and the gate before `tables apply`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pinot_assets.cli.options import AsJson, TablesOption, new_console, show_json
from pinot_assets.cli.realtime.preflight_answers import show, values
from pinot_assets.cli.realtime.table import TableName, find_table
from pinot_assets.cli.table_selection import realtime_table
from pinot_assets.core.exit_codes import ExitCode
from pinot_assets.core.json_object import JsonMapping
from pinot_assets.errors import SpecError
from pinot_assets.pinot.realtime import RealtimePinot
from pinot_assets.realtime.preflight.facts import Aim
from pinot_assets.realtime.preflight.gather import gather
from pinot_assets.realtime.preflight.judge import judge, judge_change, refuse_unless_safe
from pinot_assets.settings.environment import load_settings, tables_directory
from pinot_assets.table_spec.tables.apply import ApplyPlan

For = Annotated[
    Aim | None, typer.Option("--for", help="What is to be switched on; without it, what the config has on.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def preflight(
        table: TableName, aim: For = None, tables: TablesOption = None, as_json: AsJson = False
    ) -> None:
        """Look whether bypass or pauseless consumption of TABLE would hold; changes nothing.

        Judges the table spec if there is one, else the config that Pinot holds, against the cluster's
        settings, what earlier commits took and what the stream keeps. Exits 2 where a rule refuses. The same
        rules stand before `tables apply` and `realtime pauseless enable`.
        """
        with RealtimePinot(load_settings().pinot) as pinot:
            config = _config(pinot, table, tables)
            facts = gather(pinot, table, config, aim)
        answers = judge(facts)
        if as_json:
            show_json(values(facts, answers))
        else:
            show(new_console(), facts, answers)
        if any(answer.blocks for answer in answers):
            raise typer.Exit(ExitCode.REFUSED)


def gate(plan: ApplyPlan) -> None:
    """What stands before `tables apply` on a REALTIME table: shows the answers.

    :raises PreflightRefused: a rule refuses.
    """
    spec = plan.spec
    with RealtimePinot(load_settings().pinot) as pinot:
        facts = gather(pinot, spec.name, spec.table_json)
    answers = judge_change(facts)
    show(new_console(), facts, answers)
    refuse_unless_safe(facts.table, answers)


def _config(pinot: RealtimePinot, table: str, directory: Path | None) -> JsonMapping:
    """The spec's, Pinot's where there is no spec.

    :raises PinotNotFound: there is neither.
    :raises SpecError: the table's own spec is wrong.
    """
    folder = directory or tables_directory()
    raw = table.removesuffix("_REALTIME")
    spec = realtime_table(raw, folder) if directory or folder.is_dir() else None
    if spec is not None:
        return spec.table_json
    held = pinot.table_config(find_table(pinot, table))
    if held is None:
        raise SpecError(f"{table} went away")
    return held
