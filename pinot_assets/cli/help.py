"""How `--help` shows commands: `-h` works like `--help`, and a flag stands without the type of its value."""

from __future__ import annotations

from typing import Final, TypeVar

from typer.core import TyperCommand, TyperGroup, TyperOption

from pinot_assets.core.json_object import Foreign

HELP: Final = {"help_option_names": ["-h", "--help"]}
"""Settings of the program's context, which those of all commands inherit."""

T = TypeVar("T")


class Command(TyperCommand):
    """A command.

    Arguments are `Foreign`, because typer's own types are private and differ between its releases.
    """

    def get_params(self, ctx: Foreign) -> Foreign:
        """Return options and arguments, with that of `--help`."""
        return _without_types_of_flags(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Foreign) -> Foreign:
        """Return options, with that of `--help`."""
        return _without_types_of_flags(super().get_params(ctx))


def _without_types_of_flags(parameters: list[T]) -> list[T]:
    for parameter in parameters:
        if isinstance(parameter, TyperOption) and parameter.is_flag:
            parameter.metavar = ""
    return parameters
