"""Translate Pinot's `transformConfigs` and `filterConfig` to Spark SQL, or say why that is not possible.

The rules are those of Pinot's `ExpressionTransformer`: a function fills its column where that is null; a
function that uses other columns with a function runs after them. Then `FilterTransformer` drops the rows for
which its function is true.

A function is translated only if Pinot and Spark certainly agree. It behaves as Pinot 1.5.1's
`InbuiltFunctionEvaluator`: arguments are cast to the function's parameters, a null argument makes the result
null, comparisons and arithmetic use DOUBLE. Where Pinot would continue with a value that was not meant (a
number that overflows, division by zero, a text that is nearly a date), Spark raises and the file fails.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.core.text import plural
from pinot_assets.expressions.spark import check_spark_expression
from pinot_assets.expressions.syntax import ExpressionRefused
from pinot_assets.segment.column.unsupported import Feature, Findings
from pinot_assets.segment.functions.pinot_functions import FUNCTIONS, Argument, LongSteps

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
"""The most characters of a translation."""
_NOT_SUPPORTED: Final = frozenset(("between", "case", "in", "like", "cast", "null"))


class NotTranslated(ValueError):
    """There is no Spark SQL that certainly means the same.

    :ivar feature: the kind of expression: a Groovy script, an environment variable, or another function.
    """

    def __init__(self, what: str, feature: Feature = Feature.TRANSFORM_OTHER) -> None:
        super().__init__(what)
        self.feature = feature


@dataclass(frozen=True, slots=True)
class Translation:
    """An expression in Spark SQL.

    :ivar columns: columns that it reads.
    :ivar texts: those of them that it uses as text.
    :ivar is_boolean: whether it is a condition.
    :ivar long_steps: the same as `sql`, if it is a column or LONG arithmetic on one.
    """

    sql: str
    columns: frozenset[str]
    texts: frozenset[str]
    is_boolean: bool
    long_steps: LongSteps | None = None


def translate(function: str) -> Translation:
    """Translate a `transformFunction` or `filterFunction`.

    :raises NotTranslated: there is no certain translation; its text says why.
    """
    if _GROOVY.match(function):
        raise NotTranslated("Groovy, a script,", Feature.GROOVY)
    if "${" in function:
        raise NotTranslated("${, a variable of the environment,", Feature.TRANSFORM_REFERENCE)
    parser = _Parser(function)
    try:
        argument = parser.whole()
    except RecursionError:
        raise NotTranslated("too many parentheses in each other") from None
    columns, texts = frozenset(parser.columns), frozenset(parser.texts)
    return Translation(argument.sql, columns, texts, argument.kind == "BOOLEAN", argument.long_steps)


def spark_name(column: str) -> str:
    """Return a column's name quoted for Spark SQL, whatever characters it has."""
    return f"`{column.replace('`', '``')}`"


class _Parser:
    """Parses by recursive descent the few forms known here of what Calcite would parse."""

    def __init__(self, text: str) -> None:
        self.columns: set[str] = set()
        self.texts: set[str] = set()
        self._tokens = _tokens(text)
        self._next = 0

    def whole(self) -> Argument:
        argument = self._or()
        if self._next < len(self._tokens):
            raise NotTranslated(f"{self._tokens[self._next][1]!r}")
        return argument

    def _or(self) -> Argument:
        return self._joined({"or": "or"}, self._and)

    def _and(self) -> Argument:
        return self._joined({"and": "and"}, self._not)

    def _not(self) -> Argument:
        return self._call("not", [self._not()]) if self._taken(("not",)) else self._comparison()

    def _comparison(self) -> Argument:
        left = self._joined(_SUMS, self._product)
        if self._taken(("is",)):
            name = "isnotnull" if self._taken(("not",)) else "isnull"
            if not self._taken(("null",)):
                raise NotTranslated("IS without NULL")
            return self._call(name, [left])
        sign = self._taken(_COMPARISONS)
        return self._call(_COMPARISONS[sign], [left, self._joined(_SUMS, self._product)]) if sign else left

    def _product(self) -> Argument:
        return self._joined(_PRODUCTS, self._atom)

    def _joined(self, names: Mapping[str, str], part: Callable[[], Argument]) -> Argument:
        """Parse parts with signs or words between them; each sign or word is a function."""
        joined = part()
        while sign := self._taken(names):
            joined = self._call(names[sign], [joined, part()])
        return joined

    def _atom(self) -> Argument:
        kind, text = self._take()
        if kind == "sign" and text == "(":
            inner = self._or()
            self._close()
            return inner
        if kind == "sign" and text == "-" and self._peek()[0] == "number":
            return _number("-" + self._take()[1])
        if kind == "number":
            return _number(text)
        if kind == "text":
            value = text[1:-1].replace("''", "'")
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return Argument(f"'{escaped}'", "STRING", value)
        if kind == "quoted":
            return self._column(text[1:-1].replace('""', '"'))
        if kind == "word":
            return self._word(text)
        raise NotTranslated(f"{text!r}" if text else "an end where a value was expected")

    def _word(self, text: str) -> Argument:
        name = text.lower()
        if self._taken(("(",)):
            arguments = [] if self._peek() == ("sign", ")") else self._arguments()
            self._close()
            return self._call(name.replace("_", ""), arguments)
        if name in ("true", "false"):
            return Argument(name, "BOOLEAN")
        if name in _NOT_SUPPORTED:
            raise NotTranslated(text)
        return self._column(text)

    def _arguments(self) -> list[Argument]:
        arguments = [self._or()]
        while self._taken((",",)):
            arguments.append(self._or())
        return arguments

    def _column(self, name: str) -> Argument:
        self.columns.add(name)
        return Argument(spark_name(name), "COLUMN", column=name, long_steps=LongSteps(name))

    def _call(self, name: str, arguments: list[Argument]) -> Argument:
        if name in _LOGICAL:
            return _logical(name, arguments)
        if (function := FUNCTIONS.get((name, len(arguments)))) is None:
            raise NotTranslated(
                f"the function {name} of {plural(len(arguments), 'value')}, which is not translated"
                f"{_meant(name)},"
            )
        for argument, kind in zip(arguments, function.parameters, strict=True):
            if argument.column is not None and kind == "STRING":
                self.texts.add(argument.column)
        try:
            call = function.sql(arguments)
        except ValueError as error:
            raise NotTranslated(f"{name}: {error}") from None
        # An argument may occur several times in the translation, so its length may double with each call.
        if len(call.sql) > _MOST_LENGTH:
            raise NotTranslated(f"too many functions in each other, the last of them {name},")
        return call

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("", "")

    def _take(self) -> tuple[str, str]:
        token = self._peek()
        self._next += 1
        return token

    def _taken(self, names: Collection[str]) -> str:
        """Take the next sign or word if it is one of `names`; otherwise return "" and leave it."""
        kind, text = self._peek()
        if kind not in ("sign", "word") or text.lower() not in names:
            return ""
        self._next += 1
        return text.lower()

    def _close(self) -> None:
        if not self._taken((")",)):
            raise NotTranslated("no ) where one was expected")


def _meant(name: str) -> str:
    """Return a hint with the function that was probably meant; "" if none has a similar name."""
    names = {known for known, _ in FUNCTIONS} - {name}
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.75)
    return f" (did you mean {near[0]}?)" if near else ""


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    place, text = 0, text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise NotTranslated(f"{text[place:].strip()[:20]!r}")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return tokens


def _number(text: str) -> Argument:
    if re.fullmatch(r"-?[0-9]+", text):
        if not -(2**63) < int(text) < 2**63:
            raise NotTranslated(f"{text}, which is no LONG")
        return Argument(f"{text}L", "LONG", number=int(text))
    return Argument(f"{text}D", "DOUBLE")


_LOGICAL: Final = frozenset(("and", "or", "not"))


def _logical(name: str, arguments: list[Argument]) -> Argument:
    if not arguments or (name == "not" and len(arguments) != 1):
        raise NotTranslated(f"{name} of {plural(len(arguments), 'value')}")
    if any(argument.kind != "BOOLEAN" for argument in arguments):
        raise NotTranslated(f"{name} of what is neither true nor false")
    parts = [argument.sql for argument in arguments]  # conditions are calls or already have parentheses
    if name == "not":
        return Argument(f"(NOT {parts[0]})", "BOOLEAN")
    return Argument(f"({f' {name.upper()} '.join(parts)})", "BOOLEAN")


@dataclass(frozen=True, slots=True)
class Transforms:
    """What a table config does to rows.

    :ivar derived: columns with the expression that fills them where they are null, in order of execution.
    :ivar dropped: condition; rows for which it is true are dropped.
    :ivar problems: what cannot be translated.
    """

    derived: tuple[tuple[str, Translation], ...] = ()
    dropped: Translation | None = None
    problems: tuple[str, ...] = ()


def read_transforms(config: JsonMapping) -> Transforms:
    """Translate the `transformConfigs` and `filterConfig` of a table config.

    :param config: Pinot table config, as JSON values.
    """
    ingestion = config.get("ingestionConfig") or {}
    findings = Findings()
    translations: dict[str, Translation] = {}
    for entry in ingestion.get("transformConfigs") or ():
        column, function = entry.get("columnName"), entry.get("transformFunction")
        where = f"ingestionConfig.transformConfigs: column {column}"
        if not column or not function:
            findings.refuse(where, Feature.TRANSFORM_INVALID, "no columnName, or no function")
            continue
        translated = _translate(where, function, findings)
        if column in translations:
            findings.refuse(where, Feature.TRANSFORM_INVALID, "two functions")
        if translated is not None:
            translations[column] = translated
    dropped, where = None, "ingestionConfig.filterConfig"
    if (condition := (ingestion.get("filterConfig") or {}).get("filterFunction")) is not None:
        dropped = _translate(where, str(condition), findings)
        if dropped is not None and not dropped.is_boolean:
            findings.refuse(where, Feature.TRANSFORM_INVALID, f"{condition} is neither true nor false")
    order: list[str] = []
    try:
        needs = {column: sorted(one.columns & translations.keys()) for column, one in translations.items()}
        order += TopologicalSorter(needs).static_order()
    except CycleError as error:
        what = f"a cycle, {' → '.join(error.args[1])}"
        findings.refuse("ingestionConfig.transformConfigs", Feature.TRANSFORM_INVALID, what)
    derived = tuple((column, translations[column]) for column in order)
    return Transforms(derived, dropped, tuple(findings.problems))


def _translate(where: str, function: str, findings: Findings) -> Translation | None:
    shown = function.replace("; ", ";")  # "; " separates problems
    try:
        translated = translate(function)
        check_spark_expression(translated.sql)  # the run checks it, too: it may cost or nest too much
        return translated
    except ExpressionRefused as refused:
        reason = refused.reason.replace("; ", ", ")
        findings.refuse(where, Feature.TRANSFORM_OTHER, f"in Spark SQL it {reason}, in {shown}")
    except NotTranslated as error:
        findings.refuse(where, error.feature, f"{error} in {shown}")
    return None
