"""Which regular expressions are matched in bounded time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.expressions.regex_cost import MOST_LOOSE, check_pattern, check_wildcards
from pinot_assets.expressions.syntax import ExpressionRefused

HARMLESS = [
    "",
    "^A",
    "^[A-Z/]{2}$",
    r"^(\d+)\.(\d+)\.(\d+)\.(\d+)$",
    r'^(\S+) (\S+) (\S+) \[([^\]]+)\] "(.*?)" (\d+) (\d+)$',
    r"[\w.-]+@[\w-]+\.[a-z]{2,}",
    r"\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?",
    r"(?i)(?:csv|json)(?:\.gz)?$",
    r"\b(?<year>\d{4})/(?P<month>\d\d)\b",
    r"(?:\Qab\E)+[a\-b\]]*x\x41é\p{Alpha}",
    r"(?:ab)+(?:\.\d+){2}",
    r"\w{1,200}@\w{1,200}\.com",
    ".*a.*b.*c.*",
]
COSTLY = [
    "(a+)+b",
    "(a*)*",
    "(a|a)*b",
    "(?:a|ab|b)+",
    r"(\w+\s?)+$",
    "(?:a{1,2})*",
    "(?:a+){1,3}",
    "a?" * 30 + "a{30}",
    "(?:a?){30}a{30}",
    "(a|a)" * 30,
    "(.*a){20}",
    ".*.*.*.*.*x",
    "(?:a{1,100}){1,100}",
    "(?:a{0,1000}){2}",
    "a{1000000}",
    "(a{3,2})(a|a)(a|a)",
    r"(a)\1",
    r"(?<n>a)\k<n>",
    "(?=a)b",
    "(?!a)b",
    "(?<=a)b",
    "(?<!a)b",
    "(?>a+)b",
    "(?x) a",
    "(?#a)",
    "a**",
    "a{2}{3}",
    "(",
    ")",
    "[a",
    "[[a]b]*",
    "[]a]*",
    "a\\",
    "a" * 2000,
    "(" * 50 + ")" * 50,
]


@pytest.mark.parametrize("pattern", HARMLESS)
def test_taken(pattern: str) -> None:
    check_pattern(pattern)


@pytest.mark.parametrize("pattern", COSTLY)
def test_refused(pattern: str) -> None:
    with pytest.raises(ExpressionRefused):
        check_pattern(pattern)


def test_a_stricter_limit_counts_what_may_end_at_several_places() -> None:
    check_pattern(r"/([^/]+)/year=\d+/.*x.*", 2)
    with pytest.raises(ExpressionRefused, match="more than 2 repetitions"):
        check_pattern(".*a.*b.*c", 2)


def test_wildcards() -> None:
    check_wildcards("%a%%%b%")
    with pytest.raises(ExpressionRefused, match="%"):
        check_wildcards("%a" * (MOST_LOOSE + 2))


PIECES = st.lists(
    st.sampled_from([*"ab|()*+?", "{2}", "{1,3}", "(?:", "[ab]", "[^a]", ".", r"\w", "a*b"]), max_size=9
)


@settings(deadline=None)
@given(PIECES.map("".join))
def test_of_what_is_taken_each_text_is_matched_in_few_ways(pattern: str) -> None:
    """Counted by following every way of a pattern through a text, as an engine that tries them all does."""
    try:
        check_pattern(pattern)
        re.compile(pattern)
    except (ExpressionRefused, re.error):
        return
    loose = len(re.findall(r"[*+]", pattern))
    assert _ways(pattern, "a" * 12) <= 500 * 13**loose


def _ways(pattern: str, text: str) -> int:
    """Ways through a text from its start, of a pattern made of the pieces above."""
    import re._parser as parser  # type: ignore[import-not-found]  # the tree that Python itself makes of it

    def follow(nodes: list, place: int, after) -> int:
        if not nodes:
            return after(place)
        (kind, argument), *rest = nodes
        name = str(kind)
        if name == "BRANCH":
            return sum(follow([*branch, *rest], place, after) for branch in argument[1])
        if name == "SUBPATTERN":
            return follow([*argument[3], *rest], place, after)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = argument
            return _repeat(list(inner), int(least), min(int(most), len(text) + 1), rest, place, after)
        if place == len(text) or not re.fullmatch(_single(kind, argument), text[place]):
            return 0
        return follow(rest, place + 1, after)

    def _repeat(inner: list, least: int, most: int, rest: list, place: int, after) -> int:
        total = follow(rest, place, after) if least == 0 else 0

        def again(at: int) -> int:
            return 0 if at == place else _repeat(inner, max(least - 1, 0), most - 1, rest, at, after)

        return total + (follow(inner, place, again) if most else 0)

    return follow(list(parser.parse(pattern)), 0, lambda place: 1)


def _single(kind: object, argument: object) -> str:
    if str(kind) == "LITERAL":
        return re.escape(chr(argument))  # type: ignore[call-overload]
    return "." if str(kind) == "ANY" else "[^a]" if "NEGATE" in str(argument) else r"\w"
