"""Pinot's ingestion functions as Spark SQL: the ones of which both say exactly the same.

A function is evaluated as Pinot 1.5.1's `InbuiltFunctionEvaluator` does: arguments are cast to the function's
parameters, a null argument makes the result null, comparisons and arithmetic are done in DOUBLE. Where Pinot
would go on with a value that nobody meant (a number that overflows, division by zero, a text that is nearly a
date), Spark raises and the file fails.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pinot_assets.segment.functions.pinot_functions import FUNCTIONS, Argument

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")+"|`[^`]+`)
      | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*)
      | (?P<sign><>|!=|<=|>=|[-+*/(),=<>])
    )""",
    re.VERBOSE,
)
_GROOVY: Final = re.compile(r"\s*groovy\s*\(", re.IGNORECASE)
_COMPARISONS: Final = {
    "=": "equals",
    "<>": "notequals",
    "!=": "notequals",
    "<": "lessthan",
    "<=": "lessthanorequal",
    ">": "greaterthan",
    ">=": "greaterthanorequal",
}
_SUMS: Final = {"+": "plus", "-": "minus"}
_PRODUCTS: Final = {"*": "times", "/": "divide"}
_MOST_LENGTH: Final = 100_000
"""Characters of a translation."""
_NOT_SUPPORTED: Final = frozenset(("between", "case", "in", "like", "cast"))


class NotTranslated(ValueError):
    """There is no Spark SQL that certainly says the same.

    :ivar is_groovy: because it is a Groovy script.
    :ivar is_reference: because Pinot or Spark would put a variable of the environment into it.
    """

    def __init__(self, what: str, *, is_groovy: bool = False, is_reference: bool = False) -> None:
        super().__init__(what)
        self.is_groovy = is_groovy
        self.is_reference = is_reference


@dataclass(frozen=True, slots=True)
class Translation:
    """An expression in Spark SQL.

    :ivar columns: columns that it reads.
    :ivar texts: those of them that it uses as text.
    :ivar is_boolean: whether it is a condition.
    """

    sql: str
    columns: frozenset[str]
    texts: frozenset[str]
    is_boolean: bool


def translate(function: str) -> Translation:
    """Translate a `transformFunction` or `filterFunction`.

    :raises NotTranslated: there is no certain translation; says why.
    """
    if _GROOVY.match(function):
        raise NotTranslated("Groovy, a script,", is_groovy=True)
    if "${" in function:
        raise NotTranslated("${, a variable of the environment,", is_reference=True)
    parser = _Parser(function)
    try:
        found = parser.whole()
    except RecursionError:
        raise NotTranslated("too many parentheses in each other") from None
    columns, texts = frozenset(parser.columns), frozenset(parser.texts)
    return Translation(found.sql, columns, texts, found.kind == "BOOLEAN")


def quoted(column: str) -> str:
    """A column's name as Spark SQL takes it, whatever it is."""
    return f"`{column.replace('`', '``')}`"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class _Parser:
    """Recursive descent over what Calcite would parse, for the few forms that are known here."""

    def __init__(self, text: str) -> None:
        self.columns: set[str] = set()
        self.texts: set[str] = set()
        self._tokens = _tokens(text)
        self._next = 0

    def whole(self) -> Argument:
        found = self._or()
        if self._next < len(self._tokens):
            raise NotTranslated(f"{self._tokens[self._next][1]!r}")
        return found

    def _or(self) -> Argument:
        return self._chain("or", self._and)

    def _and(self) -> Argument:
        return self._chain("and", self._not)

    def _chain(self, word: str, part: Callable[[], Argument]) -> Argument:
        found = part()
        while self._take_word(word):
            found = _logical(word, [found, part()])
        return found

    def _not(self) -> Argument:
        return _logical("not", [self._not()]) if self._take_word("not") else self._comparison()

    def _comparison(self) -> Argument:
        left = self._sum()
        if self._take_word("is"):
            name = "isnotnull" if self._take_word("not") else "isnull"
            if not self._take_word("null"):
                raise NotTranslated("IS without NULL")
            return self._call(name, [left])
        sign = self._take_sign(_COMPARISONS)
        return self._call(_COMPARISONS[sign], [left, self._sum()]) if sign else left

    def _sum(self) -> Argument:
        return self._operators(_SUMS, self._product)

    def _product(self) -> Argument:
        return self._operators(_PRODUCTS, self._atom)

    def _operators(self, names: dict[str, str], part: Callable[[], Argument]) -> Argument:
        found = part()
        while sign := self._take_sign(names):
            found = self._call(names[sign], [found, part()])
        return found

    def _atom(self) -> Argument:
        kind, text = self._take()
        if kind == "sign" and text == "(":
            found = self._or()
            self._expect(")")
            return found
        if kind == "sign" and text == "-" and self._peek()[0] == "number":
            return _number("-" + self._take()[1])
        if kind == "number":
            return _number(text)
        if kind == "text":
            value = text[1:-1].replace("''", "'")
            return Argument(_literal(value), "STRING", value)
        if kind == "quoted":
            return self._column(text[1:-1].replace('""', '"'))
        if kind == "word":
            return self._word(text)
        raise NotTranslated(f"{text!r}" if text else "an end where a value was expected")

    def _word(self, text: str) -> Argument:
        name = text.lower()
        if self._peek() == ("sign", "("):
            self._next += 1
            arguments = [] if self._peek() == ("sign", ")") else self._arguments()
            self._expect(")")
            canonical = name.replace("_", "")
            return (
                _logical(canonical, arguments) if canonical in _LOGICAL else self._call(canonical, arguments)
            )
        if name in ("true", "false"):
            return Argument(name, "BOOLEAN")
        if name in _NOT_SUPPORTED or name == "null":
            raise NotTranslated(text)
        return self._column(text)

    def _arguments(self) -> list[Argument]:
        found = [self._or()]
        while self._take_sign({",": ""}):
            found.append(self._or())
        return found

    def _column(self, name: str) -> Argument:
        self.columns.add(name)
        return Argument(quoted(name), "COLUMN", column=name)

    def _call(self, name: str, arguments: list[Argument]) -> Argument:
        function = FUNCTIONS.get((name, len(arguments)))
        if function is None:
            raise NotTranslated(
                f"the function {name} of {len(arguments)} values, which is not translated{_meant(name)},"
            )
        for argument, kind in zip(arguments, function.parameters, strict=True):
            if argument.column is not None and kind == "STRING":
                self.texts.add(argument.column)
        try:
            found = function.sql(arguments)
        except ValueError as error:
            raise NotTranslated(f"{name}: {error}") from None
        # An argument can stand in the translation more than once, and so the text doubles with each call.
        if len(found.sql) > _MOST_LENGTH:
            raise NotTranslated(f"too many functions in each other, the last of them {name},")
        return found

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("", "")

    def _take(self) -> tuple[str, str]:
        token = self._peek()
        self._next += 1
        return token

    def _take_word(self, word: str) -> bool:
        kind, text = self._peek()
        if kind != "word" or text.lower() != word:
            return False
        self._next += 1
        return True

    def _take_sign(self, signs: dict[str, str]) -> str:
        kind, text = self._peek()
        if kind != "sign" or text not in signs:
            return ""
        self._next += 1
        return text

    def _expect(self, sign: str) -> None:
        if self._take() != ("sign", sign):
            raise NotTranslated(f"no {sign} where one was expected")


def _meant(name: str) -> str:
    """The function that may have been meant, for the error; "" where none is near."""
    names = {known for known, _ in FUNCTIONS} - {name}
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.75)
    return f" (did you mean {near[0]}?)" if near else ""


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    place, text = 0, text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise NotTranslated(f"{text[place:].strip()[:20]!r}")
        found.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return found


def _number(text: str) -> Argument:
    if re.fullmatch(r"-?[0-9]+", text):
        if not -(2**63) < int(text) < 2**63:
            raise NotTranslated(f"{text}, which is no LONG")
        return Argument(f"{text}L", "LONG")
    return Argument(f"{text}D", "DOUBLE")


_LOGICAL: Final = frozenset(("and", "or", "not"))


def _logical(name: str, arguments: list[Argument]) -> Argument:
    if not arguments or (name == "not" and len(arguments) != 1):
        raise NotTranslated(f"{name} of {len(arguments)} values")
    if any(argument.kind != "BOOLEAN" for argument in arguments):
        raise NotTranslated(f"{name} of what is neither true nor false")
    parts = [argument.sql for argument in arguments]  # conditions stand in parentheses or are calls
    if name == "not":
        return Argument(f"(NOT {parts[0]})", "BOOLEAN")
    return Argument(f"({f' {name.upper()} '.join(parts)})", "BOOLEAN")
