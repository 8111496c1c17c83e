"""Java's glob syntax as a regular expression of RE2 (what `sun.nio.fs.Globs` does on Unix).

Differs from shell globs and `fnmatch`: `*` and `?` stop at a slash but match a leading dot, `**` crosses
slashes, `{a,b}` is a choice (not nested), and `**/x` needs a slash before x.
"""

from __future__ import annotations

from pinot_assets.errors import SettingError
from pinot_assets.source.patterns.re2 import ANY, Range, any_of, but, one


def glob_to_regex(glob: str) -> str:
    """Translate a glob; the result is for `re2.compiled`.

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
