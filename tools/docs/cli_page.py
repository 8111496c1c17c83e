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
    ExitCode.ERROR: "An error: standard error shows what happened, why, and what to do. Running the command "
    "again is safe. Also: the answer is no (`doctor` or `tables validate` found problems, you answered a "
    "question with no), or one of several tables was left out; the others are done.",
    ExitCode.REFUSED: "Not done, or not completely, for a reason that the command shows: files failed, the "
    "gate stayed shut, a check failed, a guard refused, an answer is partial. Also: the command was typed "
    "wrong.",
    ExitCode.INTERRUPTED: "Ctrl-C. What was done so far is stored; run it again to continue.",
    ExitCode.TERMINATED: "The same as 130, by SIGTERM.",
}


WITHOUT_JSON = {
    "dev": "starts a UI for a person",
    "down": "ends what `dev` started",
    "metrics": "writes Prometheus' own format",
    "tables json-schema": "prints JSON as it is",
}
"""Commands that have no --json, and why."""

_INTRODUCTION = """\
# The command line

`python -m tools.docs.cli_page > docs/cli.md` makes this page from the program's commands. `--help` shows the
same for each command. No command needs a running Dagster; `partitions` reads Dagster's storage.

## For other programs

With `--json`, a command writes one JSON value to standard output (`watch` writes one object a line) and
nothing else. Progress and warnings are on standard error. An error is JSON, too: `error` (what happened),
`why`, `hint` (what to do), `exit` (the exit code). No command with `--json` asks a question. `gc` and
`status` of all tables and `tables list` show an error in this form beside the table's name, `query` beside
the rows of a partial answer.

All commands have `--json` except these:

{without_json}

After `--install-completion`, the shell completes commands, options, tables and kept snapshots.

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
