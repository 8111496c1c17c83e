from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinot_assets.errors import SourceError
from pinot_assets.source.file_patterns import compile_pattern, normalise_path, path_of_uri


@pytest.mark.parametrize("text", ["**/*.csv", "", ":x", "shell:*.csv"])
def test_the_syntax_must_be_named_and_the_error_says_what_to_write(text: str) -> None:
    with pytest.raises(SourceError, match="does not say its syntax") as caught:
        compile_pattern(text)
    assert f"write glob:{text}" in str(caught.value)


def test_the_syntax_name_is_read_in_any_case() -> None:
    assert compile_pattern("GLOB:**/*.csv").those_of(["/in/a.csv"]) == [True]
    assert compile_pattern("Regex:.*csv").those_of(["/in/a.csv"]) == [True]


@pytest.mark.parametrize(
    ("glob", "position", "why"),
    [
        ("a\\", 1, "no character to escape"),
        ("ab[c", 3, "missing ']'"),
        ("[a/b]", 2, "cannot hold '/'"),
        ("{a,{b}}", 3, "cannot be nested"),
        ("{a,b", 3, "missing '}'"),
        ("x[--a]", 3, "without a start"),
        ("x[]", 2, "empty class"),
        ("s3://bucket/*", 3, "s3:/bucket/key"),
    ],
)
def test_a_malformed_glob_is_refused_with_its_position(glob: str, position: int, why: str) -> None:
    with pytest.raises(SourceError, match=f"at position {position}") as caught:
        compile_pattern(f"glob:{glob}")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("regex", "named"),
    [
        (r"\bx", r"\b"),
        (r"\p{L}+", "property"),
        ("[a&&[b]]", "&&"),
        ("[a[b]]", "nested"),
        ("a(?i)b", "flags"),
        (r"a\R", r"\R"),
        ("a{", "repetition"),
        (r"(a)\1", "back reference"),
        (r"(?<n>a)\k<n>", "back reference"),
        ("(a", "missing )"),
        (")(", "unexpected )"),
        ("a)(b", "unexpected )"),
        ("(?<=a+)b", "look-around"),
        ("(?!a)b", "look-around"),
        ("(?>a)b", "atomic"),
        ("a*+", "possessive"),
        ("a**", "repetition of a repetition"),
        ("a$b", "before the end"),
        ("(a{1000}){1000}", "repetition size"),
    ],
)
def test_a_regex_that_cannot_be_translated_is_refused_by_name(regex: str, named: str) -> None:
    with pytest.raises(SourceError) as caught:
        compile_pattern(f"regex:{regex}")
    assert caught.value.why is not None
    assert named in caught.value.why


@pytest.mark.parametrize(
    "text",
    [
        "regex:(a+)+b",
        "regex:(?:a|a)*(?:a*)*b",
        f"regex:{'(a?)' * 40}{'a' * 40}b",
        f"regex:{'.*a' * 20}b",
        f"glob:{'**a' * 30}b",
        f"glob:{'*a' * 30}b",
        f"glob:{'[a-z]*' * 30}b",
    ],
)
def test_no_pattern_takes_for_ever(text: str) -> None:
    """An engine that tries one way after the other would still be at it."""
    pattern = compile_pattern(text)
    assert pattern.those_of(["a" * 2000]) == [False]
    assert pattern.matching("", pa.array(["/" + "a" * 2000])).to_pylist() == [False]


def test_a_pattern_has_an_end() -> None:
    for text in ("glob:" + "a" * 100_000 + "]", "regex:" + "a" * 100_000):
        with pytest.raises(SourceError):
            compile_pattern(text)


def test_a_name_that_is_no_utf_8_is_matched_like_any_other() -> None:
    assert compile_pattern("glob:**/*.csv").those_of(["/in/\udcff.csv", "/in/\udcff.json"]) == [True, False]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///data/a%20b.csv", "/data/a b.csv"),
        ("file:///data/x%231", "/data/x#1"),
        ("s3://bucket/in/a,b.csv", "s3:/bucket/in/a,b.csv"),
        ("s3://bucket/%2541", "s3:/bucket/%41"),
    ],
)
def test_patterns_see_the_decoded_path_as_pinot_does(uri: str, path: str) -> None:
    assert path_of_uri(uri) == path


def test_a_pattern_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(compile_pattern("glob:**/*.csv"))).those_of(["/a/b.csv"]) == [True]


@settings(deadline=None)
@given(
    st.one_of(
        st.text("a.*?[]!{},/-b", max_size=8).map("glob:{}".format),
        st.sampled_from(
            ["regex:.*a", "regex:(?i).*A", "Glob:**/a", "glob:/[!a]*", "glob:/{a,b*}", "glob:**/ü"]
        ),
    ),
    st.lists(st.text("a.b/-=Z", max_size=6).map("/{}".format)),
)
def test_many_paths_match_as_each_does(text: str, paths: list[str]) -> None:
    try:
        pattern = compile_pattern(text)
    except SourceError:
        return
    plain = [normalise_path(path) for path in paths]
    found = pattern.matching("", pa.array(plain, pa.string())).to_pylist()
    assert found == pattern.those_of(plain)
