"""`includeFileNamePattern` and `excludeFileNamePattern`: Java's `FileSystem.getPathMatcher`, in Python.

What a pattern is matched against is what Pinot's own ingestion jobs match (they pass the listing's text
through `java.nio.file.Paths`, `SegmentGenerationAndPushTaskGenerator`), so a pasted pattern means the same
here: the whole absolute path of a local file (`/data/in/a.csv`), and for a bucket `s3:/bucket/in/a.csv`,
with the one slash that Java leaves of `s3://`. Patterns therefore start with `**/` as a rule.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pinot_assets.errors import SettingError
from pinot_assets.source.patterns import re2
from pinot_assets.source.patterns.java_glob import glob_error, glob_to_regex
from pinot_assets.source.patterns.java_regex import regex_to_re2
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

    def matches(self, path: str) -> bool:
        """Whether the whole path matches (`PathMatcher.matches(Paths.get(path))`)."""
        return self.those_of([path])[0]

    def those_of(self, paths: Sequence[str]) -> list[bool]:
        """`matches` of each path."""
        return re2.matching(self._regex, [normalise_path(path) for path in paths])

    def matching(self, root: str, names: pa.Array) -> pa.Array:
        """`matches` of a root with each of these names behind it: normalised paths of plain ASCII characters
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
            return PathPattern(text, _compiled_glob(body))
        case "regex":
            return PathPattern(text, regex_to_re2(body))
        case _:
            raise SettingError(
                f"The pattern {text} does not say its syntax", hint=f"write glob:{text} (or regex:…)"
            )


def _compiled_glob(glob: str) -> str:
    try:
        return re2.compiled(glob_to_regex(glob))
    except ValueError as error:  # it is too long for RE2
        raise glob_error(glob, 0, str(error)) from error


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
