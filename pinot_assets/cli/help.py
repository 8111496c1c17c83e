"""How commands show `--help` and wrong values: `-h` is `--help`, and a value has a name in capitals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:  # typer keeps its Click private, so no code imports it when it runs
    from typer._click.core import Context, Parameter

HELP: Final = {"help_option_names": ["-h", "--help"]}
"""Settings of the program's context, which those of all commands inherit."""


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return options and arguments, with that of `--help`."""
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words that were typed."""
        with _in_plain_words():
            return super().parse_args(ctx, args)


class Group(TyperGroup):
    """A group of commands."""

    def get_params(self, ctx: Context) -> list[Parameter]:
        """Return options, with that of `--help`."""
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the words that were typed."""
        with _in_plain_words():
            return super().parse_args(ctx, args)


def _without_types(parameters: list[Parameter]) -> list[Parameter]:
    for parameter in parameters:
        if isinstance(parameter, TyperArgument):
            vars(parameter)["display_type_rich"] = _no_type
        elif isinstance(parameter, TyperOption) and parameter.is_flag:
            parameter.metavar = ""
    return parameters


def _no_type(ctx: Context) -> None:
    """Return no type of an argument: typer calls this by that name, and would show `<list[str]>`."""


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """Remove what Pydantic, which Typer asks about values, puts before the reason that a value is wrong."""
    try:
        yield
    except typer.BadParameter as error:
        reason = error.message.removeprefix("Value error, ").removeprefix("Input ")
        error.message = reason.partition(", unable to parse")[0]
        raise
