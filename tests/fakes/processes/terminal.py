"""A terminal of 80 columns and 24 lines, and what a person sees on it of a command."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest.mock import patch

import pytest

from pinot_assets.cli import main

COLUMNS, LINES = 80, 24
_TAKEN_AWAY = "\x1b[?25h\r\x1b[1A\x1b[2K"
_CONTROL = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


@dataclass(frozen=True)
class Seen:
    """What one command left on the terminal.

    :ivar raw: everything that it wrote, control sequences included.
    :ivar lines: the whole scroll-back as a person sees it; a line that is too wide goes on in the next one.
    """

    code: int
    raw: str
    lines: tuple[str, ...]

    @property
    def printed(self) -> list[str]:
        """The lines as the command wrote them: the terminal has not cut those that are too wide. Without the
        progress that it showed before: a live line, which it took away at its end."""
        _, _, kept = self.raw.rpartition(_TAKEN_AWAY)
        return _CONTROL.sub("", kept).replace("\r\n", "\n").splitlines()

    @property
    def text(self) -> str:
        """All of it, one line after the other."""
        return "\n".join(self.lines)

    @property
    def screen(self) -> tuple[str, ...]:
        """What is not scrolled away; the last line has the next prompt."""
        return self.lines[-(LINES - 1) :]


def on_terminal(
    words: Sequence[str], folder: str, environment: Mapping[str, str], encoding: str = "utf-8"
) -> Seen:
    """One command of `pinot-assets` in this process, whose standard output and error are a terminal.

    :param encoding: of the terminal, as Python takes it from PYTHONIOENCODING.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    written: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(ours, written))
    reader.start()
    # rich asks the process's own streams for their size, which are the tests'.
    size = {"COLUMNS": str(COLUMNS), "LINES": str(LINES), "TERM": "xterm-256color"}
    with ExitStack() as during:
        during.enter_context(pytest.MonkeyPatch.context()).chdir(folder)
        during.enter_context(patch.dict(os.environ, {**environment, **size}, clear=True))
        during.enter_context(patch.object(sys, "argv", ["pinot-assets", *words]))
        during.enter_context(patch.object(sys, "stdin", io.StringIO("y\n")))
        out = during.enter_context(open(theirs, "w", encoding=encoding))
        during.enter_context(redirect_stdout(out))
        during.enter_context(redirect_stderr(out))
        try:
            main.main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    reader.join()
    os.close(ours)
    raw = b"".join(written).decode(encoding)
    return Seen(code, raw, tuple(shown_lines(raw)))


def _read_all(ours: int, into: list[bytes]) -> None:
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            return
        if not data:
            return
        into.append(data)


def shown_lines(raw: str, columns: int = COLUMNS) -> list[str]:
    """The lines that a terminal shows of a text with control sequences, without blanks at their end."""
    lines, row, column, at = [""], 0, 0, 0
    while at < len(raw):
        if (control := _CONTROL.match(raw, at)) is not None:
            number = int(control[1]) if control[1].isdigit() else 0
            match control[2]:
                case "A":
                    row = max(0, row - (number or 1))
                case "K":
                    lines[row] = "" if number == 2 else lines[row][:column]
                case "J":
                    lines[row:] = [lines[row][:column]]
                case "G":
                    column = max(0, number - 1)
            at = control.end()
            continue
        character = raw[at]
        at += 1
        if character == "\r":
            column = 0
            continue
        if character == "\n" or column == columns:
            row, column = row + 1, 0 if character != "\n" else column
            lines += [""] * (row + 1 - len(lines))
        if character != "\n":
            lines[row] = f"{lines[row].ljust(column)[:column]}{character}{lines[row][column + 1 :]}"
            column += 1
    shown = [line.rstrip() for line in lines]
    while shown and not shown[-1]:
        shown.pop()
    return shown
