"""What users hold on to is what tests/public_surface.json promises; docs/upgrading.md says what has gone."""

from __future__ import annotations

from surface.compare import ADD, NOTE, complaints, together
from surface.listing import ROOT, promised, surface

PROMISED = {"commands": ["run TABLE", "run --plan"], "make": ["demo"]}


def test_the_surface_is_what_is_promised() -> None:
    page = ROOT / NOTE
    note = page.read_text(encoding="utf-8") if page.exists() else ""
    before = promised()
    found = [*complaints(before, surface(before), note)]
    assert not found, "\n".join(found)


def test_what_is_new_is_named_with_the_command_that_adds_it() -> None:
    found = {**PROMISED, "commands": [*PROMISED["commands"], "run --fast"], "metrics": ["up{}"]}
    assert list(complaints(PROMISED, found, "")) == [
        f"new: commands: run --fast; add it with {ADD}",
        f"new: metrics: up{{}}; add it with {ADD}",
    ]


def test_what_is_gone_needs_a_line_that_names_it() -> None:
    found = {"commands": ["run TABLE"]}
    assert list(complaints(PROMISED, found, "run --plan is no more, and neither is `demo of old`.")) == [
        f"removed: commands: run --plan; it needs a line in {NOTE}",
        f"removed: make: demo; it needs a line in {NOTE}",
    ]
    assert list(complaints(PROMISED, found, "`run --plan` is now `plan --run`; `demo` has gone.")) == []


def test_adding_takes_nothing_away() -> None:
    assert together(PROMISED, {"commands": ["run --fast"]}) == {
        "commands": ["run --fast", "run --plan", "run TABLE"],
        "make": ["demo"],
    }
