"""A shell in which `pinot-assets` is this very process: the program is loaded once, and Spark with it.

A page's commands are a bash script, run as a person would type them. `pinot-assets` on its path is a small
script that hands words, folder and environment over a socket and prints what comes back. A person who is
asked says yes.
"""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from pinot_assets.cli import main
from pinot_assets.core.json_object import JsonObject

_CLIENT = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as door:
    door.connect({address!r})
    asked = {{"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
    door.sendall(json.dumps(asked).encode() + b"\\n")
    said = json.loads(door.makefile().read())
sys.stdout.write(said["out"])
sys.stdout.flush()
sys.stderr.write(said["err"])
sys.exit(said["code"])
"""
_YES = "y\n" * 10


@dataclass(frozen=True)
class Line:
    """One command to type, and the exit code that it has to end with."""

    text: str
    code: int = 0


@dataclass(frozen=True)
class Typed:
    """What came of one command; `code` is None where the shell did not get to it."""

    line: Line
    code: int | None
    output: str


class Shell:
    """One session of bash at a time, in a folder.

    :ivar resolve: what a word of a page stands for.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], resolve: Callable[[str], str]) -> None:
        self._folder = folder
        self._environment = dict(environment)
        self._resolve = resolve

    def type(self, lines: Sequence[Line]) -> list[Typed]:
        """Type them one after the other, until one ends otherwise than it should."""
        tools = self._folder / ".tools"
        tools.mkdir(exist_ok=True)
        address = str(tools / "door")
        client = tools / "pinot-assets"
        client.write_text(_CLIENT.format(python=sys.executable, address=address))
        client.chmod(0o755)
        path = os.pathsep.join((str(tools), str(Path(sys.executable).parent), os.environ["PATH"]))
        script = "\n".join(_script(number, line) for number, line in enumerate(lines))
        output = tools / "output"
        with socket.socket(socket.AF_UNIX) as door, output.open("wb") as into:
            door.bind(address)
            door.listen()
            door.settimeout(0.1)
            bash = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self._folder,
                env=self._environment | {"PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=into,
                stderr=subprocess.STDOUT,
            )
            try:
                self._serve(door, bash)
            finally:
                bash.kill()
                bash.wait()
                Path(address).unlink()
        return list(_results(lines, output.read_text()))

    def _serve(self, door: socket.socket, bash: subprocess.Popen[bytes]) -> None:
        while bash.poll() is None:
            try:
                caller, _ = door.accept()
            except TimeoutError:
                continue
            with caller, caller.makefile("rw") as talk:
                talk.write(json.dumps(self._call(**json.loads(talk.readline()))))

    def _call(self, words: list[str], folder: str, environment: dict[str, str]) -> JsonObject:
        code, out, err = call([*map(self._resolve, words)], folder, environment)
        return {"out": out, "err": err, "code": code}


def call(words: Sequence[str], folder: str, environment: Mapping[str, str]) -> tuple[int, str, str]:
    """One command of `pinot-assets` in this process: exit code, standard output and error."""
    out, err = io.StringIO(), io.StringIO()
    with ExitStack() as during:
        during.enter_context(pytest.MonkeyPatch.context()).chdir(folder)
        during.enter_context(patch.dict(os.environ, environment, clear=True))
        during.enter_context(patch.object(sys, "argv", ["pinot-assets", *words]))
        during.enter_context(patch.object(sys, "stdin", io.StringIO(_YES)))
        during.enter_context(redirect_stdout(out))
        during.enter_context(redirect_stderr(err))
        try:
            main.main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return code, out.getvalue(), err.getvalue()


def _script(number: int, line: Line) -> str:
    """The command, a mark with its exit code, and the end of all where that is another one."""
    return f"{line.text}\ncode=$?\nprintf '\\n@@ {number} %s\\n' $code\n[ $code = {line.code} ] || exit"


def _results(lines: Sequence[Line], output: str) -> Iterator[Typed]:
    for number, line in enumerate(lines):
        said, mark, rest = output.partition(f"\n@@ {number} ")
        code, _, output = rest.partition("\n")
        yield Typed(line, int(code) if mark else None, said)
        if not mark:
            output = ""
