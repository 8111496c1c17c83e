"""How `--help` shows commands: `-h` works like `--help`, and a flag has no type of value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from typer.core import TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:  # typer keeps its Click private, so no code imports it when it runs
    from typer._click.core import Context, Parameter

HELP: Final = {"help_option_names": ["-h", "--help"]}
"""Settings of the program's context, which those of all commands inherit."""


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return options and arguments, with that of `--help`."""
        return _without_types_of_flags(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return options, with that of `--help`."""
        return _without_types_of_flags(super().get_params(ctx))


def _without_types_of_flags(parameters: list[Parameter]) -> list[Parameter]:
    for parameter in parameters:
        if isinstance(parameter, TyperOption) and parameter.is_flag:
            parameter.metavar = ""
    return parameters
