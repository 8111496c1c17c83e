"""What `make size` counts."""

from __future__ import annotations

import pytest

from tools import size
from tools.size import Size

SOURCE = '''"""A module,

of three lines."""

X = 1
"""Of X."""


def f() -> int:
    """Of f."""
    if X:
        return 2
    return 3
'''


def test_docstrings_are_no_statements_and_blank_lines_no_lines() -> None:
    assert Size.of_source(SOURCE) == Size(modules=1, statements=5, lines=9, docstrings=5)


def test_the_last_line_compares(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "BEFORE", Size(1, 200_000, 200_000, 1))
    size.main()
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("wheel: ")
    assert "(at most 86)" in last
