"""`includeFileNamePattern` and `excludeFileNamePattern`: Java's `FileSystem.getPathMatcher`, in Python.

A pattern is matched against the same text as in Pinot's own ingestion jobs, so a pasted pattern means the
same here. They pass the listed URI through `java.nio.file.Paths` (`SegmentGenerationAndPushTaskGenerator`).
For a local file that is the whole absolute path (`/data/in/a.csv`); for a bucket it is `s3:/bucket/in/a.csv`,
because Java keeps one slash of `s3://`. Therefore patterns usually start with `**/`.

A glob becomes an RE2 expression (as `sun.nio.fs.Globs` does it on Unix). It differs from shell globs and
`fnmatch`: `*` and `?` stop at a slash but match a leading dot, `**` crosses slashes, `{a,b}` is a choice
(not nested), and `**/x` needs a slash before x.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import SettingError
from pinot_assets.source.java_regex import ANY, Range, any_of, but, compiled, matching, one, regex_to_re2
from pinot_assets.source.uris import unquote_key

# Fits most patterns. The end of a name alone decides them, since every matched text holds a slash.
_SUFFIX = re.compile(r"(?i:glob):\*\*/\*([A-Za-z0-9._=-]*)")


MOST_LENGTH = 10_000
"""The most characters that a pattern may have."""


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A compiled pattern.

    :ivar text: as written, syntax included.
    """

    text: str
    _regex: str

    def those_of(self, paths: Sequence[str]) -> list[bool]:
        """Return for each path whether all of it matches (`PathMatcher.matches(Paths.get(path))`)."""
        return matching(self._regex, [normalise_path(path) for path in paths])

    def matching(self, root: str, names: pa.Array) -> pa.Array:
        """Return `those_of` for root + name of each name: normalised paths of plain ASCII characters
        (`uris.is_plain`), each name with a slash in it.
        """
        if suffix := _SUFFIX.fullmatch(self.text):
            return pc.ends_with(names, suffix[1])
        return pc.match_substring_regex(pc.binary_join_element_wise(root, names, ""), self._regex)

    def names(self, word: str) -> bool:
        """Whether the pattern's text contains a word literally (`.tmp`, `_SUCCESS`)."""
        _, _, text = self.text.partition(":")
        if self.text[:5].lower() == "regex":
            text = text.replace("\\.", "\0").replace(".", "*").replace("\0", ".")
        return word in text.replace("\\", "")


def compile_pattern(text: str) -> PathPattern:
    """Compile `glob:…` or `regex:…` (case of the syntax name does not matter).

    :raises SettingError: the pattern is too long, names no known syntax, or is malformed; a regular
        expression is outside the common part of Java and RE2; or a glob matches nothing because of `//`.
    """
    if len(text) > MOST_LENGTH:
        raise SettingError(f"A pattern has more than {MOST_LENGTH:,} characters", hint="write a shorter one")
    syntax, colon, body = text.partition(":")
    match syntax.lower() if colon else "":
        case "glob":
            if "//" in body:
                raise glob_error(body, body.index("//"), "no path holds '//': Java writes s3:/bucket/key")
            try:
                return PathPattern(text, compiled(glob_to_regex(body)))
            except ValueError as error:  # too long for RE2
                raise glob_error(body, 0, str(error)) from error
        case "regex":
            return PathPattern(text, regex_to_re2(body))
        case _:
            raise SettingError(
                f"The pattern {text} does not say its syntax", hint=f"write glob:{text} (or regex:…)"
            )


def path_of_uri(uri: str) -> str:
    """Return the text that patterns are matched against, see the module docstring."""
    scheme, _, rest = uri.partition("://")
    path = unquote_key(rest)
    return normalise_path(path if scheme == "file" else f"{scheme}:/{path}")


def normalise_path(path: str) -> str:
    """Return what `Paths.get(path).toString()` gives on Unix: single slashes, none at the end."""
    if "//" in path:
        path = re.sub("/+", "/", path)
    return path if path == "/" else path.removesuffix("/")


def glob_to_regex(glob: str) -> str:
    """Translate a glob to a regular expression for `compiled`.

    :raises SettingError: Java refuses the glob; the error names the position (0-based).
    """
    regex: list[str] = []
    in_group = False
    i = 0
    while i < len(glob):
        char = glob[i]
        i += 1
        if char == "\\":
            if i == len(glob):
                raise glob_error(glob, i - 1, "no character to escape")
            regex.append(one(glob[i]))
            i += 1
        elif char == "[":
            text, i = _char_class(glob, i)
            regex.append(text)
        elif char == "{":
            if in_group:
                raise glob_error(glob, i - 1, "groups cannot be nested")
            regex.append("(?:(?:")
            in_group = True
        elif char == "}" and in_group:
            regex.append("))")
            in_group = False
        elif char == "," and in_group:
            regex.append(")|(?:")
        elif char == "*" and glob[i : i + 1] == "*":
            regex.append(f"{ANY}*")
            i += 1
        elif char == "*":
            regex.append("[^/]*")
        elif char == "?":
            regex.append("[^/]")
        else:
            regex.append(one(char))
    if in_group:
        raise glob_error(glob, len(glob) - 1, "missing '}'")
    return "".join(regex)


def _char_class(glob: str, i: int) -> tuple[str, int]:
    """Translate the class that begins after `[`; return the text and the position after `]`."""
    negated = glob[i : i + 1] == "!"
    i += negated
    members: list[Range] = []
    # A leading hyphen, or caret (only without `!`), matches itself and starts no range.
    if glob[i : i + 1] == "-" or (not negated and glob[i : i + 1] == "^"):
        members.append(_only(glob[i]))
        i += 1
    start: str | None = None
    while True:
        if i == len(glob):
            raise glob_error(glob, i - 1, "missing ']'")
        char = glob[i]
        i += 1
        if char == "]":
            break
        if char == "/":
            raise glob_error(glob, i - 1, "a class cannot hold '/'")
        if char != "-":
            members.append(_only(char))
            start = char
            continue
        if start is None:
            raise glob_error(glob, i - 1, "a range without a start")
        if i == len(glob):
            raise glob_error(glob, i - 1, "missing ']'")
        end = glob[i]
        i += 1
        if end == "]":
            members.append(_only("-"))
            break
        if not _is_range(start, end):
            raise glob_error(glob, i - 3, "not a range")
        members[-1] = (ord(start), ord(end))
        start = None
    if not members:
        raise glob_error(glob, i - 1, "an empty class")
    # A class never matches a slash, even if one of its ranges contains the slash.
    slash = _only("/")
    return any_of(but([*members, slash]) if negated else but([*but(members), slash])), i


def _only(char: str) -> Range:
    return ord(char), ord(char)


def _is_range(start: str, end: str) -> bool:
    """Whether Java accepts the range: it compares UTF-16 units, and reads `[` and `\\` as syntax there."""
    first_of_end = end.encode("utf-16-be", "surrogatepass")[:2]
    last_of_start = start.encode("utf-16-be", "surrogatepass")[-2:]
    return end not in "[\\/" and first_of_end >= last_of_start and start <= end


def glob_error(glob: str, position: int, why: str) -> SettingError:
    """Return a `SettingError` that names a position in the pattern."""
    return SettingError(
        f"The pattern glob:{glob} is malformed at position {max(position, 0)}",
        why=why,
        hint="the syntax is that of java.nio.file.FileSystem.getPathMatcher",
    )
