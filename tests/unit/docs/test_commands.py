"""Every command that a page shows is one: program, command, options, and a reason where no test runs it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import typer
from fakes.pages import PAGES, PROGRAMS, ROOT, STORIES, Block, blocks, shell_blocks, simple_commands, spans
from typer._click.exceptions import UsageError as BadTyping
from typer.main import get_command

from pinot_assets.cli.main import app

TARGETS = frozenset(re.findall(r"^([a-z0-9.-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
BLOCKS = [block for page in PAGES for block in shell_blocks(page)]


class WrongCommand(AssertionError):
    """A page shows what does not exist."""


def program(name: str) -> Any:
    """The tree of a program's commands: Click's own, or the one that Typer brings along."""
    if name == "dagster":
        from dagster._cli import create_dagster_cli

        return create_dagster_cli()
    return get_command(app)


def parse(words: list[str]) -> None:
    """Take the words as the program would, up to the point where it would begin to work."""
    command, context, rest = program(words[0]), None, words[1:]
    try:
        while hasattr(command, "resolve_command"):
            context = command.make_context(command.name, rest, parent=context)
            _, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        command.make_context(command.name, rest, parent=context)
    except (typer.Exit, click.exceptions.Exit):  # --help, --version
        return
    except (BadTyping, click.UsageError) as error:
        raise WrongCommand(f"{' '.join(words)}: {error}") from error


def check(words: list[str]) -> None:
    if words[0] != "make":
        parse(words)
    elif strange := {word for word in words[1:] if "=" not in word} - TARGETS:
        raise WrongCommand(f"make has no target {strange}")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_every_command_is_one(block: Block) -> None:
    for command in block.commands():
        for words in simple_commands(command):
            if words[0] in PROGRAMS:
                check(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_command_stands_in_another_kind_of_block(page: Path) -> None:
    typed = re.compile(rf"\s*(\$ |[A-Z_]+=\S+ )?({'|'.join(PROGRAMS)}) \S")
    for block in blocks(page):
        if block.language != "bash":
            assert [line for line in block.lines if typed.match(line)] == [], block.place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_command_in_the_text_has_its_options(page: Path) -> None:
    """These may leave arguments out, and say `a|b` or `[--option]`."""
    for span in spans(page):
        first, *words = re.sub(r"[\[\]…]", " ", span).split()
        if first == "make":
            assert not words or {*words[0].split("|")} <= TARGETS, span
            continue
        commands = [program(first)]
        for word in words:
            if not all(hasattr(command, "get_command") for command in commands):
                break
            commands = [command.get_command(None, w) for command in commands for w in word.split("|")]
            assert None not in commands, span
        known = {option for c in commands for parameter in c.params for option in parameter.opts}
        told = {option for word in words for option in re.findall(r"--[a-z][a-z-]*", word)}
        assert told <= known | {"--help"}, span


def test_every_command_is_run_or_says_why_not() -> None:
    run = {page for pages in STORIES.values() for page in pages}
    assert run == {b.page.relative_to(ROOT).as_posix() for b in BLOCKS if not b.not_run}
    for block in BLOCKS:
        page = block.page.relative_to(ROOT).as_posix()
        assert block.not_run or page in run, (
            f"{block.place}: name the page in STORIES, or say why it is not run"
        )


def test_what_is_not_run_is_listed() -> None:
    """Seen with `pytest -rP`, so that nobody takes it for run."""
    left_out = [block for block in BLOCKS if block.not_run]
    for block in left_out:
        print(f"{block.place}: {' && '.join(block.commands())} is not run: {block.not_run}")  # noqa: T201
    assert all(len(block.not_run.split()) > 2 for block in left_out), "a reason takes more than two words"


@pytest.mark.parametrize("wrong", ["pinot-assets rnu flights", "pinot-assets run flights --fast", "make tea"])
def test_one_that_is_none_is_noticed(wrong: str) -> None:
    with pytest.raises(WrongCommand):
        check(wrong.split())
