"""How `pinot-assets --help` groups and orders commands: as somebody meets them, not as they are defined."""

from __future__ import annotations

import typer

PANELS = {
    "Set up": ("doctor", "local", "init", "tables"),
    "Publish files": ("plan", "run", "watch", "status", "session"),
    "Ask what was published": ("snapshots", "history", "diff", "why", "where"),
    "Go back, clear up": ("rollback", "resume", "gc"),
    "REALTIME tables": ("realtime", "simulate"),
    "Dagster and monitoring": ("dev", "down", "partitions", "metrics"),
}
"""Every command and group of the program."""


def arrange(app: typer.Typer) -> None:
    """Put the commands of a program into `PANELS`, and in their order.

    :raises KeyError: a command has no place there.
    """
    places = {name: panel for panel, names in PANELS.items() for name in names}
    order = [*places]
    for command in app.registered_commands:
        command.rich_help_panel = places[_name(command)]
    for group in app.registered_groups:
        group.rich_help_panel = places[str(group.name)]
    app.registered_commands.sort(key=lambda command: order.index(_name(command)))


def _name(command: typer.models.CommandInfo) -> str:
    return command.name or (command.callback.__name__ if command.callback else "")
