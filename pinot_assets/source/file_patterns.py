"""`includeFileNamePattern` and `excludeFileNamePattern`: Java's `FileSystem.getPathMatcher`, in Python.

What a pattern is matched against is what Pinot's own ingestion jobs match (they pass the listing's text
through `java.nio.file.Paths`, `SegmentGenerationAndPushTaskGenerator`), so a pasted pattern means the same
here: the whole absolute path of a local file (`/data/in/a.csv`), and for a bucket `s3:/bucket/in/a.csv`,
with the one slash that Java leaves of `s3://`. Patterns therefore start with `**/` as a rule.

A glob becomes a regular expression of RE2 (what `sun.nio.fs.Globs` does on Unix). It differs from shell globs
and `fnmatch`: `*` and `?` stop at a slash but match a leading dot, `**` crosses slashes, `{a,b}` is a choice
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

# Most patterns: told by the end of a name alone, since it holds a slash.
_SUFFIX = re.compile(r"(?i:glob):\*\*/\*([A-Za-z0-9._=-]*)")


MOST_LENGTH = 10_000
"""Characters of a pattern."""


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A compiled pattern.

    :ivar text: as written, syntax included.
    """

    text: str
    _regex: str

    def those_of(self, paths: Sequence[str]) -> list[bool]:
        """Of each path whether the whole of it matches (`PathMatcher.matches(Paths.get(path))`)."""
        return matching(self._regex, [normalise_path(path) for path in paths])

    def matching(self, root: str, names: pa.Array) -> pa.Array:
        """`those_of` a root with each of these names behind it: normalised paths of plain ASCII characters
        (`uris.is_plain`), each name with a slash in it.
        """
        if suffix := _SUFFIX.fullmatch(self.text):
            return pc.ends_with(names, suffix[1])
        return pc.match_substring_regex(pc.binary_join_element_wise(root, names, ""), self._regex)

    def names(self, word: str) -> bool:
        """Whether the pattern's text spells a word literally (`.tmp`, `_SUCCESS`)."""
        _, _, text = self.text.partition(":")
        if self.text[:5].lower() == "regex":
            text = text.replace("\\.", "\0").replace(".", "*").replace("\0", ".")
        return word in text.replace("\\", "")


def compile_pattern(text: str) -> PathPattern:
    """Compile `glob:…` or `regex:…` (the syntax name in any case).

    :raises SettingError: it is too long, has no or another syntax name, or is malformed; or it is a regular
        expression outside the common part of Java and RE2, or a glob that matches nothing because of `//`.
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
            except ValueError as error:  # it is too long for RE2
                raise glob_error(body, 0, str(error)) from error
        case "regex":
            return PathPattern(text, regex_to_re2(body))
        case _:
            raise SettingError(
                f"The pattern {text} does not say its syntax", hint=f"write glob:{text} (or regex:…)"
            )


def path_of_uri(uri: str) -> str:
    """The text that patterns are matched against: see the module."""
    scheme, _, rest = uri.partition("://")
    path = unquote_key(rest)
    return normalise_path(path if scheme == "file" else f"{scheme}:/{path}")


def normalise_path(path: str) -> str:
    """What `Paths.get(path).toString()` gives on Unix: each slash once, none at the end."""
    if "//" in path:
        path = re.sub("/+", "/", path)
    return path if path == "/" else path.removesuffix("/")


def glob_to_regex(glob: str) -> str:
    """Translate a glob; the result is for `compiled`.

    :raises SettingError: where Java refuses the glob, with the position (0-based).
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
    """Translate from behind `[`; returns the text and the position behind `]`."""
    negated = glob[i : i + 1] == "!"
    i += negated
    members: list[Range] = []
    # A caret (only without `!`) or hyphen that comes first is itself, and starts no range.
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
    # A class never matches a slash, whatever a range in it spans.
    slash = _only("/")
    return any_of(but([*members, slash]) if negated else but([*but(members), slash])), i


def _only(char: str) -> Range:
    return ord(char), ord(char)


def _is_range(start: str, end: str) -> bool:
    """Whether Java takes the range: it compares UTF-16 units, and reads `[` and `\\` as syntax there."""
    first_of_end = end.encode("utf-16-be", "surrogatepass")[:2]
    last_of_start = start.encode("utf-16-be", "surrogatepass")[-2:]
    return end not in "[\\/" and first_of_end >= last_of_start and start <= end


def glob_error(glob: str, position: int, why: str) -> SettingError:
    """A `SettingError` that points into the pattern."""
    return SettingError(
        f"The pattern glob:{glob} is malformed at position {max(position, 0)}",
        why=why,
        hint="the syntax is that of java.nio.file.FileSystem.getPathMatcher",
    )
