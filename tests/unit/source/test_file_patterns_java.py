"""The translated patterns against a real JVM's PathMatcher."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from fakes.processes.other_jvm import errors_of_py4j
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from pinot_assets.errors import SourceError
from pinot_assets.source.file_patterns import compile_pattern, normalise_path

# What is refused although Java takes it; the module docstrings say so.
STRICTER_GLOBS = ("no path holds '//'", "an empty class", "not a range")

# Pieces of patterns, each with a text that it may match: whole patterns then often match a path.
GLOB_PIECES = {"**": "a/b", "*": "ab", "?": "z", "[a-z]": "q", "[!a]": "b", "[.-0]": ".", "{a,b}": "b"}
GLOB_PIECES |= {r"\*": "*", r"\a": "a", "{": "", "}": "}", "[": "", "]": "]", "\\": "", "!": "!", "-": "-"}
GLOB_PIECES |= {text: text for text in ["/", "a", "b", "A", ".", "^", ",", "&", "$", "(", ")", "+", "|", "~"]}
GLOB_PIECES |= {text: text for text in ["é", "😀", "\n", " ", "#", ".csv"]}
REGEX_PIECES = {
    ".": "b",
    "*": "",
    "+": "",
    "?": "",
    "{0,}": "",
    "*+": "",
    "??": "",
    "++": "",
    "|": "",
    "(": "",
}
REGEX_PIECES |= {")": "", "(?:": "", "(?=": "", "(?!": "", "(?<=a)": "", "(?<!b)": "", "(?>": "", "(?<n>": ""}
REGEX_PIECES |= {"(a|b)": "b", "(?<n>[ab])": "a", r"\k<n>": "a", r"\1": "b", "a{2}": "aa", "b{1,3}+": "bb"}
REGEX_PIECES |= {
    "[ab]": "a",
    "[^a-c/]": "z",
    "[]a]": "]",
    r"[\w-]": "-",
    r"[a\-b]": "-",
    r"[\p{Punct}b]": "!",
}
REGEX_PIECES |= {"[": "", "]": "]", "-": "-", "&": "&", "&&": "&&", "[a": "", "[^": "", "[a-": "", "{": "{"}
REGEX_PIECES |= {r"\d": "0", r"\W": "/", r"\s": " ", r"\.": ".", r"\/": "/", r"\Qa.*\E": "a.*", r"\Q": ""}
REGEX_PIECES |= {r"\x61": "a", r"\x{1F600}": "😀", r"\u0062": "b", r"\n": "\n", r"\p{Alpha}": "z", "(?i)": ""}
REGEX_PIECES |= {
    r"\P{Lower}": "A",
    r"\p{L}": "é",
    r"\b": "",
    r"\A": "",
    r"\z": "",
    r"\Z": "",
    "^": "",
    "$": "",
}
REGEX_PIECES |= {text: text for text in ["a", "b", "A", "/", "é", "😀", "\n"]}
TEXTS = st.text(st.sampled_from("/abzA.-!^&$+|é😀\n #~[]{},\\()0"), max_size=7)


@st.composite
def patterns_and_paths(draw: st.DrawFn, pieces: dict[str, str], starts: list[str]) -> tuple[str, list[str]]:
    """A pattern of the pieces, a path made to fit it, and others."""
    chosen = draw(st.lists(st.sampled_from(sorted(pieces)), max_size=7))
    start = draw(st.sampled_from(starts))
    fitting = "/" + "".join(pieces[piece] for piece in chosen)
    paths = [fitting, fitting.swapcase(), *(f"/{text}" for text in draw(st.lists(TEXTS, max_size=4)))]
    return f"{start}{'' if start.endswith('/') else '/'}{''.join(chosen)}", paths


class Jvm:
    """`FileSystem.getPathMatcher` of the JVM on the path."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._file = gateway.jvm.java.io.File
        self._files = gateway.jvm.java.nio.file.FileSystems.getDefault()

    def matches(self, pattern: str, paths: list[str]) -> list[bool] | None:
        """Verdicts, or None where Java refuses the pattern."""
        try:
            with errors_of_py4j():
                matcher: Any = self._files.getPathMatcher(pattern)
        except Py4JJavaError:
            return None
        return [matcher.matches(self._file(path).toPath()) for path in paths]

    def text(self, path: str) -> str:
        text: str = self._file(path).toPath().toString()
        return text


def verdicts(pattern: str, paths: list[str]) -> list[bool] | SourceError:
    try:
        compiled = compile_pattern(pattern)
    except SourceError as error:
        return error
    return compiled.those_of(paths)


@pytest.fixture(scope="module")
def jvm() -> Iterator[Jvm]:
    (jar,) = Path(pyspark.__path__[0], "jars").glob("py4j-*.jar")
    small = ["-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LC_ALL", "C.UTF-8")  # or Java cannot make paths of é
        port, process = launch_gateway(
            jarpath=str(jar),
            javaopts=[*small, "--add-opens=java.base/sun.nio.fs=ALL-UNNAMED"],
            return_proc=True,
        )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    yield Jvm(gateway)
    gateway.shutdown()
    process.stdin.close()
    process.wait(30)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(patterns_and_paths(GLOB_PIECES, ["", "", "**/"]))
@example(("**/*.json.gz", ["/a/b.json.gz", "/b.json.gz", "/a.json.gz/x", "/a/.json.gz", "b.json.gz"]))
@example(("/a/[!a-c].{csv,json}", ["/a/d.csv", "/a/b.csv", "/a/-.json", "/a//.csv"]))
@example(("[+--]", ["+", ",", "-", "."]))
@example(("[.-0]", [".", "/", "0"]))
@example(("[-a]", ["-", "a", "b"]))
@example(("[^a]", ["^", "a", "b"]))
@example(("[!^a]", ["^", "a", "b"]))
@example(("[a&&b]", ["a", "&", "b"]))
@example(("{a\\,b,c\\}}", ["a,b", "c}", "a"]))
@example(("a**b", ["a\nb", "axb"]))
@example(("[😀-a]", ["😀", "a"]))
@example(("[a-😀]", ["😀", "b"]))
@example(("[\\-a]", ["\\", "a", "_"]))
def test_globs_mean_what_java_says(jvm: Jvm, case: tuple[str, list[str]]) -> None:
    glob, paths = case
    java = jvm.matches(f"glob:{glob}", paths)
    ours = verdicts(f"glob:{glob}", paths)
    if isinstance(ours, SourceError):
        assert java is None or any(reason in str(ours) for reason in STRICTER_GLOBS)
    else:
        assert ours == java


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(patterns_and_paths(REGEX_PIECES, ["", "", "(?i)", "(?s)", "(?is)"]))
def test_a_regex_that_is_taken_means_what_java_says(jvm: Jvm, case: tuple[str, list[str]]) -> None:
    regex, paths = case
    ours = verdicts(f"regex:{regex}", paths)
    # That enough is taken: test_regexes_taken.
    assert isinstance(ours, SourceError) or ours == jvm.matches(f"regex:{regex}", paths)


@pytest.mark.parametrize(
    "regex",
    [
        r".*\.json\.gz",
        r"/data/(?<year>\d{4})/(?:0[1-9]|1[0-2])/[^/]+\.csv",
        r"(?i).*\.(csv|json)(\.gz)?",
        r"s3:/bucket/in/part-\d+\.parquet",
        r"/\Qa.b+c\E/.*",
        r"(?:/[\p{Alnum}._-]+)+",
        r"^/in/[^\s/]*?x$",
        r"/[]a]/[\x61-\u0063]",
    ],
)
def test_regexes_taken(jvm: Jvm, regex: str) -> None:
    paths = [
        "/a/b.json.gz",
        "/data/2024/07/a.csv",
        "/A.CSV.GZ",
        "s3:/bucket/in/part-0001.parquet",
        "/x/yy/yy.csv",
        "/x/yy/y.csv",
        "/a.b+c/d",
        "/in/abcx",
        "/]/b",
        "/_x/a",
    ]
    ours = compile_pattern(f"regex:{regex}")
    java = jvm.matches(f"regex:{regex}", paths)
    assert java is not None
    assert True in java
    assert ours.those_of(paths) == java


@given(st.text(st.sampled_from("/a. é"), min_size=1).map(lambda text: "/" + text))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_paths_are_normalised_as_java_does(jvm: Jvm, path: str) -> None:
    assert normalise_path(path) == jvm.text(path)
