"""`make size`: compare the size of the wheel, and of what left it, with the wheel before its modules moved.

For each module it counts statements (nodes of the syntax tree without docstrings), lines that are not blank,
and lines of docstrings.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Final, NamedTuple, Self

WHEEL: Final = ("pinot_assets", "resources", "sensors")
LEFT: Final = ("demos", "tools", "tests/simulator")
"""Folders that were part of the wheel then and are not any more."""


class Size(NamedTuple):
    """The size of some modules.

    :ivar lines: lines that are not blank.
    :ivar docstrings: lines of docstrings, among `lines`.
    """

    modules: int
    statements: int
    lines: int
    docstrings: int

    @classmethod
    def of(cls, *folders: str) -> Self:
        """Return the size of all modules below these folders."""
        files = [file for folder in folders for file in Path(folder).rglob("*.py")]
        sizes = [cls.of_source(file.read_text(encoding="utf-8")) for file in files]
        return cls(*map(sum, zip(*sizes, strict=True)))

    @classmethod
    def of_source(cls, source: str) -> Self:
        """Return the size of one module."""
        statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
        documents = [node for node in statements if _is_docstring(node)]
        tall = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in documents)
        lines = sum(1 for line in source.splitlines() if line.strip())
        return cls(1, len(statements) - len(documents), lines, tall)


BEFORE: Final = Size(modules=611, statements=40_378, lines=65_192, docstrings=12_703)
"""The wheel at commit 2491da2, before its modules moved."""


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def main() -> None:
    """Print the table; the last line is the comparison."""
    wheel, left, both = Size.of(*WHEEL), Size.of(*LEFT), Size.of(*WHEEL, *LEFT)
    rows = {"wheel": wheel, "left the wheel": left, "together": both, "before": BEFORE}
    sys.stdout.write(f"{'':16}{'modules':>9}{'statements':>12}{'lines':>9}{'docstrings':>12}\n")
    for name, one in rows.items():
        numbers = f"{one.modules:>9,}{one.statements:>12,}{one.lines:>9,}{one.docstrings:>12,}"
        sys.stdout.write(f"{name:16}{numbers}\n")
    lines = 100 * wheel.lines / BEFORE.lines
    statements = 100 * both.statements / BEFORE.statements
    sys.stdout.write(
        f"wheel: {lines:.1f} % of the lines before (at most 86), with what left it {statements:.1f} % of the "
        "statements (at most 90)\n"
    )


if __name__ == "__main__":
    main()
