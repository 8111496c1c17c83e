"""Generate docs/cli.md: `python -m tools.docs.cli_page > docs/cli.md`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from pinot_assets.core.exit_codes import ExitCode

MEANINGS = {
    ExitCode.DONE: "Done, or there was nothing to do.",
    ExitCode.ERROR: "An error: what, why and a hint stand on standard error. Running it again is safe. "
    "Also: the answer is no (`doctor` or `tables validate` found problems, a question was answered so), or "
    "one of several tables was left out; the others are done.",
    ExitCode.REFUSED: "Not done, or not all of it, for a reason that the command tells: files failed, the "
    "gate stayed shut, a check failed, a guard refused, an answer is partial. Also: the command was typed "
    "wrong.",
    ExitCode.INTERRUPTED: "Ctrl-C. What was done so far is stored; run it again to go on.",
    ExitCode.TERMINATED: "As 130, by SIGTERM.",
}


WITHOUT_JSON = {
    "dev": "starts a UI for whoever sits there",
    "down": "ends what `dev` started",
    "metrics": "speaks Prometheus' own format",
    "tables json-schema": "prints JSON as it is",
}
"""Commands that have no --json, and why."""

_INTRODUCTION = """\
# The command line

This page is made from the program's own tree of commands: `python -m tools.docs.cli_page > docs/cli.md`.
Each command says the same with `--help`. None needs Dagster to run; `partitions` asks Dagster's storage.

## For other programs

`--json` writes one JSON value to standard output (`watch` one object a line) and nothing else there;
progress and warnings go to standard error. An error is JSON then, too: `error` (what), `why`, `hint`, `exit`
(the exit code). No command with `--json` asks a question. `gc` and `status` of all tables and `tables list`
show an error in this shape beside the table's name, `query` beside the rows of a partial answer.

Every command has it but these:

{without_json}

The option `--install-completion` lets the shell complete commands, options, tables and kept snapshots.

## Exit codes
"""


def page(app: typer.Typer) -> str:
    """Return the page as Markdown.

    :param app: the program.
    """
    codes = ["| code | meaning |", "|---|---|", *(f"| {code} | {text} |" for code, text in MEANINGS.items())]
    without = "\n".join(f"- `{name}` {why}" for name, why in WITHOUT_JSON.items())
    parts = [_INTRODUCTION.format(without_json=without), *codes, "", "## Commands", ""]
    program = get_command(app)
    assert isinstance(program, TyperGroup)
    for path, command in commands(program):
        parts += _section(path, command)
    return "\n".join(parts).rstrip() + "\n"


def commands(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    """Yield the words and the command of every command of a tree, without groups, in alphabetical order."""
    context = typer.Context(group)
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        if isinstance(command, TyperGroup):
            yield from commands(command, (*path, name))
        else:
            assert isinstance(command, TyperCommand)
            yield (*path, name), command


def _section(path: tuple[str, ...], command: TyperCommand) -> Iterator[str]:
    yield f"### {' '.join(path)}"
    yield ""
    yield inspect.cleandoc(command.help or "")
    yield ""
    parameters = [each for each in command.params if isinstance(each, TyperArgument | TyperOption)]
    options = [parameter for parameter in parameters if not parameter.hidden]
    if options:
        yield "| argument or option | |"
        yield "|---|---|"
        for parameter in options:
            yield f"| {_named(parameter)} | {_cell(parameter.help or '')} |"
        yield ""


def _named(parameter: TyperArgument | TyperOption) -> str:
    if isinstance(parameter, TyperArgument):
        return f"`{parameter.metavar or str(parameter.name).upper()}`"
    return ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


if __name__ == "__main__":
    from pinot_assets.cli.main import app

    sys.stdout.write(page(app))
