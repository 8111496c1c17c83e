"""`includeFileNamePattern` and `excludeFileNamePattern`: Java's `FileSystem.getPathMatcher`, in Python.

What a pattern is matched against is what Pinot's own ingestion jobs match (they pass the listing's text
through `java.nio.file.Paths`, `SegmentGenerationAndPushTaskGenerator`), so a pasted pattern means the same
here: the whole absolute path of a local file (`/data/in/a.csv`), and for a bucket `s3:/bucket/in/a.csv`,
with the one slash that Java leaves of `s3://`. Patterns therefore start with `**/` as a rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import SettingError
from pinot_assets.source.java_glob import ANY, glob_error, glob_to_regex
from pinot_assets.source.java_regex import regex_to_python
from pinot_assets.source.uris import unquote_key

# Most patterns: told by the end of a name alone, since it holds a slash.
_SUFFIX = re.compile(r"(?i:glob):\*\*/\*([A-Za-z0-9._=-]*)")


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A compiled pattern.

    :ivar text: as written, syntax included.
    """

    text: str
    _regex: re.Pattern[str]

    def matches(self, path: str) -> bool:
        """Whether the whole path matches (`PathMatcher.matches(Paths.get(path))`)."""
        return self._regex.fullmatch(normalise_path(path)) is not None

    def matching(self, root: str, names: pa.Array) -> pa.Array:
        """`matches` of a root with each of these names behind it: normalised paths of plain ASCII characters
        (`uris.is_plain`), each name with a slash in it.
        """
        if suffix := _SUFFIX.fullmatch(self.text):
            return pc.ends_with(names, suffix[1])
        paths = pc.binary_join_element_wise(root, names, "")
        # To such texts Arrow's regular expressions and Python's mean the same, but for what globs are made
        # of: a class behind a lookahead, and everything else that a `regex:` may hold.
        regex = self._regex.pattern.replace(ANY, ".")
        if self.text[:5].lower() == "glob:" and "(?" not in regex.replace("(?:", "") and regex.isascii():
            return pc.match_substring_regex(paths, f"^(?:{regex})$")
        return pa.array([self._regex.fullmatch(path) is not None for path in paths.to_pylist()], pa.bool_())

    def names(self, word: str) -> bool:
        """Whether the pattern's text spells a word literally (`.tmp`, `_SUCCESS`)."""
        _, _, text = self.text.partition(":")
        if self.text[:5].lower() == "regex":
            text = text.replace("\\.", "\0").replace(".", "*").replace("\0", ".")
        return word in text.replace("\\", "")


def compile_pattern(text: str) -> PathPattern:
    """Compile `glob:…` or `regex:…` (the syntax name in any case).

    :raises SettingError: no or another syntax name, a malformed pattern, a regular expression outside the
        common part of Java and Python, a glob that can match nothing because of `//`.
    """
    syntax, colon, body = text.partition(":")
    match syntax.lower() if colon else "":
        case "glob":
            if "//" in body:
                raise glob_error(body, body.index("//"), "no path holds '//': Java writes s3:/bucket/key")
            return PathPattern(text, re.compile(glob_to_regex(body)))
        case "regex":
            return PathPattern(text, regex_to_python(body))
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
