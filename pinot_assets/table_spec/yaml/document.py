"""Read a YAML or JSON file into plain JSON values that remember their lines, and collect problems and notes.

PyYAML's own constructors are not used: they follow YAML 1.1, where `NO` is false, `0.10` is `0.1` and
`2013-01-01` is a date. Pinot's JSON means none of that. Scalars are read by the YAML 1.2 core schema
instead. Any text gives a document or problems, never another exception.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import yaml

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.core.untrusted import SPEC_BYTES
from pinot_assets.errors import SpecError
from pinot_assets.pinot.table_config import setting

KeyPath = tuple[str | int, ...]
"""The path of a value in its file: mapping keys and list positions, outermost first."""


def show_path(path: KeyPath) -> str:
    """`("table", "tableIndexConfig", "sortedColumn", 0)` → `table.tableIndexConfig.sortedColumn[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One reason why a table spec cannot be used.

    :ivar file: the file to open.
    :ivar line: the line to go to, counted from 1.
    :ivar key: dotted path of the key, empty for the file as a whole.
    :ivar reason: what is wrong, without a final full stop; never shows a refused secret.
    :ivar fix: what to write instead.
    """

    file: Path
    line: int
    key: str
    reason: str
    fix: str | None = None

    def __str__(self) -> str:
        key = f"{self.key}: " if self.key else ""
        return f"{self.file}:{self.line}: {key}{self.reason}." + (f" → {self.fix}" if self.fix else "")


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """Something accepted that the author should know about; fields as in `Problem`."""

    file: Path
    line: int
    key: str
    text: str

    def __str__(self) -> str:
        return str(Problem(self.file, self.line, self.key, self.text))


def nearest(word: str, known: Iterable[str], similar: float = 0.7) -> str | None:
    """The known word that `word` was most likely meant to be, ignoring case; None if none is near.

    :param similar: the least similarity, from 0 to 1 (`difflib.SequenceMatcher.ratio`).
    """
    by_lower = {k.lower(): k for k in known}
    matches = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=similar)
    return by_lower[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A fix to show: the nearest known word, None if none is near."""
    near = nearest(word, known)
    return None if near is None else f"did you mean {near}?"


MAX_VALUES: Final = 20_000
"""Far above any real spec; the limit stops aliases of aliases ("billion laughs")."""
MAX_CHARACTERS: Final = 2 * SPEC_BYTES
"""Limit of all texts together, keys included: an alias of a few bytes repeats a text of a megabyte."""

TABLE_SPEC: Final = "write schema:, table: and fileIngestion:"
"""What to write into an empty file that should be a table spec."""

_TAG: Final = "tag:yaml.org,2002:"
_CORE: Final = {
    "null": (re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    "bool": (re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")),
    "int": (re.compile(r"[-+]?[0-9]+$"), list("-+0123456789")),
    "float": (
        re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$"),
        list("-+.0123456789"),
    ),
}
_QUOTED_IN_MESSAGE: Final = re.compile(r"(?<![a-z])(['\"])(.+?)\1")
"""What PyYAML quotes in its messages: pieces of the file's text, single characters, and names of tokens."""


class _CoreLoader(yaml.SafeLoader):
    """PyYAML's reader, scanner and parser, with the plain scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


CORE_RESOLVERS: Final = tuple((_TAG + name, regexp, first) for name, (regexp, first) in _CORE.items())
"""Tag, expression and first characters of values that are no text when they are written without quotes."""

for _resolver in CORE_RESOLVERS:
    _CoreLoader.add_implicit_resolver(*_resolver)


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file.

    :ivar file: where it came from.
    :ivar value: JSON values; mappings keep their order.
    :ivar lines: path → line, counted from 1; the line of the key for a mapping's value.
    :ivar texts: path → the text of a scalar as written (`0.10` stays `0.10`), None for null.
    """

    file: Path
    value: JsonValue
    lines: dict[KeyPath, int] = field(repr=False)
    texts: dict[KeyPath, str | None] = field(repr=False)

    def line(self, path: KeyPath) -> int:
        """The line of this path, or of the nearest place around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """A place in a document: the schema, the table config or the ingestion block, in any of its places."""

    document: Document
    path: KeyPath

    @property
    def value(self) -> JsonValue:
        """The JSON value at this place."""
        value = self.document.value
        for step in self.path:
            value = cast("Mapping[str | int, JsonValue]", value)[step]  # a mapping, or a list
        return value

    @property
    def mapping(self) -> JsonObject:
        """The mapping at this place; empty if there is another value."""
        return self.value if isinstance(self.value, dict) else {}

    def at(self, *steps: str | int) -> DocumentNode:
        """A place further in, which may be missing."""
        return DocumentNode(self.document, self.path + steps)

    def items(self, *steps: str) -> list[DocumentNode]:
        """The places of the items of a list, here or further in; empty if there is no list."""
        inner = setting(self.value, *steps)
        return [self.at(*steps, number) for number in range(len(inner))] if isinstance(inner, list) else []

    def text(self) -> str | None:
        """The scalar as written, None for null and for anything that is no scalar."""
        return self.document.texts.get(self.path)

    def problem(self, reason: str, fix: str | None = None) -> Problem:
        """A problem at this place."""
        return Problem(*self._where(), reason, fix)

    def unknown_key(self, what: str, known: Collection[str]) -> Problem:
        """The problem of a key that is not one of the known keys of `what`."""
        fix = did_you_mean(str(self.path[-1]), known) or f"the keys are {', '.join(known)}"
        return self.problem(f"is not a key of {what}", fix)

    def no_single_value(self) -> Problem | None:
        """A problem if this place does not hold a single value; None if it does."""
        if isinstance(self.value, dict | list):
            return self.problem("contains more than a single value")
        return self.problem("has no value", "write a value or remove it") if self.text() is None else None

    def note(self, text: str) -> Note:
        """A note at this place."""
        return Note(*self._where(), text)

    def _where(self) -> tuple[Path, int, str]:
        return self.document.file, self.document.line(self.path), show_path(self.path)


def read_document(file: Path, content: str = TABLE_SPEC) -> tuple[Document | None, list[Problem]]:
    """Read one YAML or JSON file.

    :param content: what to write into a file that is empty.
    :returns: the document, None where the text is not YAML at all, and the problems found on the way.
    """
    try:
        mode = file.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a directory raises an error of its own
            # Reading a pipe would block, and no other table would be read.
            return None, [Problem(file, 1, "", "is a pipe or a device, not a file")]
        text = read_spec_bytes(file).decode("utf-8-sig")
    except SpecError as error:
        return None, [Problem(file, 1, "", error.why or error.what)]
    except OSError as error:
        return None, [Problem(file, 1, "", f"cannot be read: {error.strerror or type(error).__name__}")]
    except UnicodeDecodeError as error:
        return None, [Problem(file, 1, "", f"is not UTF-8 text (byte {error.start})", "save it as UTF-8")]
    if file.suffix == ".json":
        # JSON allows tabs between its tokens, YAML does not; inside strings JSON forbids raw tabs.
        text = text.replace("\t", " ")
    return parse_document(text, file, content)


def read_spec_bytes(file: Path) -> bytes:
    """Return the content of a file that people write.

    :raises SpecError: it is larger than a table spec or config needs.
    :raises OSError: it cannot be read.
    """
    with file.open("rb") as opened:
        data = opened.read(SPEC_BYTES + 1)
    if len(data) > SPEC_BYTES:
        raise SpecError(
            f"{file} cannot be read",
            why=f"is larger than {SPEC_BYTES // 1024:,} KiB, which is more than a table spec or config needs",
        )
    return data


def parse_document(text: str, file: Path, content: str = TABLE_SPEC) -> tuple[Document | None, list[Problem]]:
    """Read a text as `read_document` reads a file; `file` is only used in messages."""
    try:
        node = yaml.compose(text, Loader=_CoreLoader)
    except yaml.MarkedYAMLError as error:
        return None, [_open_bracket(text, file, error) or _syntax_problem(file, error)]
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        return None, [Problem(file, line, "", "has a character that YAML does not allow", "remove it")]
    except RecursionError:
        return None, [Problem(file, 1, "", "is nested too deeply")]
    except (yaml.YAMLError, ValueError, OverflowError, IndexError, TypeError, AttributeError):
        # Some errors of PyYAML's own code get through, e.g. for "\UFFFFFFFF" or a malformed directive.
        return None, [Problem(file, 1, "", "is not valid YAML")]
    if node is None:
        return None, [Problem(file, 1, "", "is empty", content)]
    reading = _YamlReading(file)
    try:
        value = reading.value(node, (), node.start_mark.line + 1)
    except RecursionError:
        return None, [*reading.problems, Problem(file, 1, "", "is nested too deeply")]
    except _DocumentTooLarge as error:
        return None, [*reading.problems, Problem(file, 1, "", str(error))]
    return Document(file, value, reading.lines, reading.texts), reading.problems


class _DocumentTooLarge(Exception):
    """A file has more values or more text than we read."""


class _YamlReading:
    """Turns the node tree of one file into values; collects lines and problems."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: dict[KeyPath, int] = {}
        self.texts: dict[KeyPath, str | None] = {}
        self.problems: list[Problem] = []
        self._open: set[int] = set()
        self._characters = 0

    def value(self, node: yaml.Node, path: KeyPath, line: int) -> JsonValue:
        self.lines[path] = line
        if len(self.lines) > MAX_VALUES:
            raise _DocumentTooLarge(f"has more than {MAX_VALUES:,} values")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            return self._refuse(path, line, "has a YAML tag, which has no meaning here", "remove the tag")
        if id(node) in self._open:
            return self._refuse(path, line, "contains itself through an alias", "write it out")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(n, (*path, i), n.start_mark.line + 1) for i, n in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.Node, path: KeyPath) -> JsonObject:
        result: JsonObject = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(path, line, "has a key that is not a plain text", "use a text as the key")
                continue
            key = self._text(key_node)
            here = (*path, key if key is not None else "?")
            if key is None:
                self._refuse(here, line, "has a character that is not valid Unicode", "remove it")
            elif key == "<<" and key_node.style is None:
                self._refuse(here, line, "YAML merge keys are not supported", "write the keys out")
            elif key in result:
                first = self.lines[here]
                self._refuse(here, line, f"is written twice, first in line {first}", "keep one of the two")
            else:
                result[key] = self.value(value_node, here, line)
        return result

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> JsonValue:
        line = self.lines[path]
        kind = node.tag.removeprefix(_TAG)
        if (text := self._text(node)) is None:
            return self._refuse(path, line, "has a character that is not valid Unicode", "remove it")
        self.texts[path] = None if kind == "null" else text
        if kind == "str":
            return text
        if kind not in _CORE:
            return self._refuse(path, line, "has a YAML tag, which has no meaning here", "remove the tag")
        if not _CORE[kind][0].match(text):
            return self._refuse(path, line, f"is tagged as {kind} but is none", "remove the tag")
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if len(text) <= 400:  # Python refuses to read integers of more than 4300 digits
            number = int(text) if kind == "int" else float(text)
            if kind == "int" or math.isfinite(number):
                return number
        return self._refuse(path, line, "is too large a number", "quote it if it is a text")

    def _text(self, node: yaml.ScalarNode) -> str | None:
        """The text of a scalar; None if it has half a pair of surrogates."""
        self._characters += len(node.value)
        if self._characters > MAX_CHARACTERS:
            raise _DocumentTooLarge("contains more text than a file may, by repeating it through aliases")
        try:  # a surrogate pair, as JSON escapes write it, is one character
            return str(node.value.encode("utf-16", "surrogatepass").decode("utf-16"))
        except UnicodeDecodeError:
            return None

    def _refuse(self, path: KeyPath, line: int, reason: str, fix: str) -> JsonValue:
        self.problems.append(Problem(self.file, line, show_path(path), reason, fix))
        return None  # the refused value reads as null


def _open_bracket(text: str, file: Path, error: yaml.MarkedYAMLError) -> Problem | None:
    """Return what is said of a bracket that is never closed; None if each one is, or if it is not known."""
    if "parsing a flow" not in (error.context or ""):
        return None
    opened: list[yaml.Token] = []
    try:
        for token in yaml.scan(text, Loader=_CoreLoader):
            if isinstance(token, yaml.FlowSequenceStartToken | yaml.FlowMappingStartToken):
                opened.append(token)
            elif isinstance(token, yaml.FlowSequenceEndToken | yaml.FlowMappingEndToken):
                opener = opened.pop() if opened else None
                if isinstance(opener, yaml.FlowSequenceStartToken) != isinstance(
                    token, yaml.FlowSequenceEndToken
                ):
                    return None  # another bracket was to end here: PyYAML says it better
    except (yaml.YAMLError, ValueError, OverflowError, IndexError, TypeError, AttributeError):
        return None  # what follows the error cannot be read either, so the end of the bracket is unknown
    if not opened or (error.context_mark and error.context_mark.line < opened[-1].start_mark.line):
        return None  # there is none, or PyYAML's error comes before it
    bracket, end = ("[", "]") if isinstance(opened[-1], yaml.FlowSequenceStartToken) else ("{", "}")
    reason = f"not valid YAML: {bracket} is opened here and never closed"
    line = opened[-1].start_mark.line + 1
    return Problem(file, line, "", reason, f"close it with {end}, or put the text in quotes")


def _syntax_problem(file: Path, error: yaml.MarkedYAMLError) -> Problem:
    # Not str(error): that quotes the line, which may hold a password.
    mark = error.problem_mark or error.context_mark
    reason = _without_literals(error.problem or "is malformed")
    fix = None
    if "'\\t'" in (error.problem or ""):
        fix = "use spaces instead of tabs"
    elif "quoted scalar" in (error.context or "") and "end of stream" in (error.problem or ""):
        # The file's last line says nothing: the quote that is open begins further up.
        mark = error.context_mark or mark
        reason, fix = "a quote is opened here and never closed", "close the quote, or remove it"
    elif "expected a single document" in (error.context or ""):
        reason, fix = "has more than one YAML document", "write one table per file"
    elif error.context is not None:
        reason = f"{_without_literals(error.context)}, {reason}"
    return Problem(file, mark.line + 1 if mark else 1, "", f"not valid YAML: {reason}", fix)


def _without_literals(message: str) -> str:
    """Hide pieces of the file's text; single characters and names of tokens, such as `'<scalar>'`, stay."""
    return _QUOTED_IN_MESSAGE.sub(
        lambda match: match[0] if len(match[2]) == 1 or match[2].startswith("<") else "…", message
    )


def walk(value: JsonValue, path: KeyPath = ()) -> Iterator[tuple[KeyPath, JsonValue]]:
    """Yield every value at or below a place with its path, outer values first."""
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield from walk(one, (*path, step))


def nearest_key(path: KeyPath) -> str:
    """The last mapping key of a path: for an item of a list, the key of the list."""
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def canonical_json(value: object) -> str:
    """JSON text that is the same for equal values: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
