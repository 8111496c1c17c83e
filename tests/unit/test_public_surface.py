"""What users hold on to is listed, and what a release had is there or named as gone in docs/upgrading.md."""

from __future__ import annotations

import hashlib
import re

import pytest
from surface.compare import ADD, GONE, NOTE, Surface, broken, complaints, together
from surface.listing import RELEASED, ROOT, now, released, written

LISTED = {"commands": ["run TABLE", "run --plan"], "make": ["demo"]}
DIGESTS = {"0.1.0": "b9f6f1f15f3c6e86bdb1ef6b5d93a019c7a5b8496831795717a3ffaeac755a27"}
"""The list of a release is what that release had: nobody edits it."""


@pytest.fixture(scope="module")
def found() -> Surface:
    return now()


def test_the_surface_is_what_is_written(found: Surface) -> None:
    differing = [*complaints(written(), found)]
    assert not differing, "\n".join(differing)


def test_what_a_release_had_is_there_or_named_as_gone(found: Surface) -> None:
    missing = [*broken(released(), found, (ROOT / NOTE).read_text(encoding="utf-8"))]
    assert not missing, "\n".join(missing)


def test_each_release_has_its_list_and_nobody_edits_it() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    lists = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in RELEASED.glob("*.json")}
    assert lists == DIGESTS
    assert lists.keys() == {*re.findall(r"^## \[([0-9.]+)\](?! - unreleased)", changelog, re.MULTILINE)}
    for names in released().values():
        assert len(names["commands"]) > 100
        assert len(names["variables"]) > 20


def test_what_is_new_or_gone_is_named_with_the_command_that_writes_it() -> None:
    other = {"commands": ["run TABLE", "run --fast"], "make": ["demo"], "metrics": ["up{}"]}
    assert list(complaints(LISTED, other)) == [
        f"new: commands: run --fast; write the list anew with {ADD}",
        f"gone: commands: run --plan; write the list anew with {ADD}",
        f"new: metrics: up{{}}; write the list anew with {ADD}",
    ]


def test_what_a_release_had_needs_a_line_in_the_section_on_what_is_gone() -> None:
    releases, other = {"0.1.0": LISTED, "0.2.0": {"make": ["demo"]}}, {"commands": ["run TABLE"]}
    elsewhere = f"`run --plan` and `demo` are nice.\n## {GONE}\nrun --plan, `demo of old`\n## Else\n`demo`\n"
    assert list(broken(releases, other, elsewhere)) == [
        f"0.1.0 had commands: run --plan; it needs a line under {GONE} in {NOTE}",
        f"0.1.0 had make: demo; it needs a line under {GONE} in {NOTE}",
        f"0.2.0 had make: demo; it needs a line under {GONE} in {NOTE}",
    ]
    named = f"#### {GONE}\n- `run --plan`: now `plan --run`\n## 0.3\n### {GONE}\n\n`demo` has gone"
    assert list(broken(releases, other, named)) == []


def test_lists_are_put_together() -> None:
    assert together(LISTED, {"commands": ["run --fast"]}, {"make": ["demo"]}) == {
        "commands": ["run --fast", "run --plan", "run TABLE"],
        "make": ["demo"],
    }
