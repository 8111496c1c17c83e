"""`pinot-assets scaffold`: write the files of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from pinot_assets.authoring.scaffold import Scaffolded, write_project
from pinot_assets.cli.options import AsJson
from pinot_assets.cli.terminal import show_answer

_SAID: Final = {
    Scaffolded.WRITTEN: "[green]wrote[/]",
    Scaffolded.SAME: "[dim]there already[/]",
    Scaffolded.KEPT: "[yellow]kept yours, which differs from this release's[/]",
}


def scaffold(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The project's folder; made if it is missing.")
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Write the files of a project: workspace.yaml, dagster.yaml, a sample table, the schema for editors.

    Also writes a policy to start from, alert rules for Prometheus and a dashboard for Grafana, below
    deploy/. A file that exists is not changed. Nothing is changed in Pinot.

    Exits 0.
    """
    fates = write_project(folder)
    lines = [f"{_SAID[fate]} {escape(str(folder / name))}" for name, fate in fates.items()]
    show_answer(as_json, [{"file": name, "is": fate} for name, fate in fates.items()], lines)
