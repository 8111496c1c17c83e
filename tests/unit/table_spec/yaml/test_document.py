from __future__ import annotations

import os
from pathlib import Path

import pytest

from pinot_assets.core.untrusted import SPEC_BYTES
from pinot_assets.table_spec.yaml.document import MAX_VALUES, DocumentNode, parse_document, read_document

FILE = Path("x.yaml")


def value_of(text: str) -> object:
    document, problems = parse_document(text, FILE)
    assert problems == []
    assert document is not None
    return document.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NO", "NO"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("2013-01-01", "2013-01-01"),
        ("12:30:00", "12:30:00"),
        ("0o10", "0o10"),
        ("010", 10),
        ("-3", -3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ('"1"', "1"),
        ("~", None),
        ("null", None),
        ("!!str 5", "5"),
        ('"\\ud83d\\ude00"', "😀"),
        ('{"a": "x\\/y"}', {"a": "x/y"}),
    ],
)
def test_scalars_mean_what_json_and_yaml_12_say(text, value):
    found = value_of(f"[{text}]")
    assert found == [value]
    assert type(found[0]) is type(value)  # type: ignore[index]


def test_places_know_their_lines_and_texts():
    document, _ = parse_document("a:\n  b: 0.10\n  c:\n    - 1\n    - x: 2\n", FILE)
    assert document is not None
    root = DocumentNode(document, ())
    assert document.line(("a", "b")) == 2
    assert document.line(("a", "c", 1, "x")) == 5
    assert document.line(("a", "nothing", "there")) == 1
    assert root.at("a", "b").text() == "0.10"
    assert root.at("a", "c").text() is None
    assert root.at("a", "c", 1, "x").problem("is odd").key == "a.c[1].x"


def test_a_place_without_a_mapping_has_an_empty_one():
    document, _ = parse_document("a: {b: 1}\nc: [1]\nd:", Path("x.yaml"))
    root = DocumentNode(document, ())
    assert root.at("a").mapping == {"b": 1}
    assert [root.at(key).mapping for key in ("c", "d")] == [{}, {}]


def test_every_duplicate_is_found():
    _, problems = parse_document("a: 1\nb: {x: 1, x: 2}\na: 2\n", FILE)
    assert [(p.line, p.key) for p in problems] == [(2, "b.x"), (3, "a")]


def test_a_syntax_error_has_its_line():
    document, (problem,) = parse_document("a: 1\nb: 2\n c: 3\n", FILE)
    assert document is None
    assert problem.line == 3


def test_a_syntax_error_says_what_was_expected_and_quotes_nothing_of_the_file():
    _, (problem,) = parse_document("a: {b: 1\nc: 2}\n", FILE)
    assert problem.reason.endswith("expected ',' or '}', but got ':'")
    _, (problem,) = parse_document("a: *hunter2\n", FILE)
    assert "hunter2" not in problem.reason


def test_tabs_get_a_way_out():
    _, (problem,) = parse_document("a:\n\tb: 1\n", FILE)
    assert "spaces" in (problem.fix or "")


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_quote_that_is_not_closed_is_named_where_it_opens(quote: str):
    _, (problem,) = parse_document(f"a: 1\nb: {quote}x\nc: 2\n", FILE)
    assert (problem.line, problem.fix) == (2, "close the quote, or remove it")


@pytest.mark.parametrize(
    ("text", "line", "end"),
    [
        ("a: 1\nb: [x, y\n", 2, "]"),
        ("a: 1\nb: [x,\n", 2, "]"),
        ("a: 1\nb: {\n", 2, "}"),
        ("a: 1\nb: {x: 1\nc: 2\n", 2, "}"),
        ("a: {x: 1,\n b: [y\n", 2, "]"),
        ("a: {x: [1],\n b: [y]\n", 1, "}"),
        ('{"a": [1,\n2\n', 1, "]"),
    ],
)
def test_a_bracket_that_is_not_closed_is_named_where_it_opens(text: str, line: int, end: str):
    _, (problem,) = parse_document(text, FILE)
    assert (problem.line, problem.fix) == (line, f"close it with {end}, or put the text in quotes")


@pytest.mark.parametrize(("text", "line"), [('a: ["x" "y"]\nb: [1\n', 1), ("a: {x: [1, 2}\nb: 1\n", 1)])
def test_an_error_before_the_open_bracket_is_the_one_that_is_named(text: str, line: int):
    _, (problem,) = parse_document(text, FILE)
    assert (problem.line, "never closed" in problem.reason) == (line, False)


def test_a_comma_that_is_missing_in_a_line_is_named_as_before():
    _, (problem,) = parse_document('a: ["x" "y"]\nb: 1\n', FILE)
    assert (problem.line, "expected ',' or ']'" in problem.reason) == (1, True)


def test_two_documents_are_one_too_many():
    _, (problem,) = parse_document("a: 1\n---\nb: 2\n", FILE)
    assert problem.fix == "write one table per file"


def test_there_is_a_limit():
    _, problems = parse_document("[" + "1," * (MAX_VALUES + 1) + "]", FILE)
    assert "values" in problems[0].reason


def test_a_file_too_large_for_a_spec_is_not_parsed(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("a: '" + "x" * SPEC_BYTES + "'")
    document, (problem,) = read_document(file)
    assert document is None
    assert "t.yaml" in str(problem)
    assert "larger than 1,024 KiB" in str(problem)


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x]\n" + "\n".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]" for n in range(1, 12)),
        "[" * 5000,
        "a: " + "[" * 5000 + "]" * 5000,
        "".join(" " * n + "a:\n" for n in range(1200)),
        "&a [*a]",
    ],
    ids=["aliases of aliases", "open", "flow", "blocks", "itself"],
)
def test_what_would_never_end_is_a_problem(text: str) -> None:
    _, problems = parse_document(text, FILE)
    assert problems


@pytest.mark.parametrize("repeated", ["- *a\n", "- {*a : 1}\n"])
def test_an_alias_repeats_no_long_text_without_end(repeated: str) -> None:
    long = "x" * (SPEC_BYTES // 2) if "{" not in repeated else "x" * 1000
    _, problems = parse_document(f"- &a {long}\n" + repeated * 5000, FILE)
    assert "repeating it through aliases" in str(problems[0])


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    device = tmp_path / "device.yaml"
    device.symlink_to("/dev/zero")
    for file in (pipe, device):
        document, (problem,) = read_document(file)
        assert document is None
        assert problem.reason == "is a pipe or a device, not a file"
