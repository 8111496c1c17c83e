"""How `--help` looks: commands in groups, as somebody meets them, and texts that flow."""

from __future__ import annotations

import inspect

import typer

PANELS = {
    "Set up": ("doctor", "local", "init", "tables"),
    "Publish files": ("plan", "run", "watch", "status", "session"),
    "Ask what was published": ("snapshots", "history", "diff", "why", "where"),
    "Go back, clear up": ("rollback", "resume", "gc", "state"),
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


def reflow(app: typer.Typer) -> None:
    """Let the terminal wrap what `--help` tells: the line breaks of a docstring are those of its editor."""
    for command in app.registered_commands:
        text = command.help or inspect.getdoc(command.callback) or ""
        command.help = "\n\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            reflow(group.typer_instance)


def _name(command: typer.models.CommandInfo) -> str:
    return command.name or (command.callback.__name__ if command.callback else "")
