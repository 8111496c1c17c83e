"""The planted defects as values, and what a source looks like with one of them."""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

AREAS = ("session", "pinot", "segment", "build", "source", "realtime", "sensors")
RISKS = ("fence", "order", "lost-reply")
"""Kinds that cost data where nobody sees it; any other one is `logic`."""


class Unplantable(Exception):
    """The defect does not fit the source."""


@dataclass(frozen=True)
class Defect:
    """One that is planted.

    :ivar kind: one of `RISKS`, or `logic`.
    :ivar anchor: text that is in the file once; `replacement` takes its place.
    :ivar chosen: `code` where it was chosen before the tests were looked at, else `tests`.
    """

    id: str
    area: str
    kind: str
    what: str
    chosen: str
    file: Path
    anchor: str
    replacement: str

    def planted(self, source: str) -> str:
        """The source with the defect.

        :raises Unplantable: the anchor is not there exactly once, or Python cannot read the result.
        """
        if source.count(self.anchor) != 1:
            raise Unplantable(f"{self.id}: the anchor is {source.count(self.anchor)} times in {self.file}")
        planted = source.replace(self.anchor, self.replacement)
        try:
            ast.parse(planted)
        except SyntaxError as error:
            raise Unplantable(f"{self.id}: not Python any more: {error}") from None
        return planted

    def lines(self, source: str) -> tuple[int, int]:
        """First and last line of the anchor."""
        first = source[: source.index(self.anchor)].count("\n") + 1
        return first, first + self.anchor.rstrip("\n").count("\n")


def defects(commit: str) -> list[Defect]:
    """All of them; where a defect's code was another on that commit, `was` has its file and anchor."""
    made = []
    for entry in tomllib.loads((Path(__file__).parent / "defects.toml").read_text())["defect"]:
        was = entry.pop("was", None)
        if was is not None and commit.startswith(was.pop("commit")):
            entry |= was
        made.append(Defect(**entry | {"file": Path(entry["file"])}))
    return made
