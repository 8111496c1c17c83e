"""Check expressions that Pinot evaluates, in REALTIME tables and in queries: code, variables and costs.

pinot-assets applies such a table config with its own rights, which the author of the spec may not have. Pinot
runs Groovy if its installation allows that, and replaces `${NAME}` in a table config by a variable of its
servers; the results become data of the table. Variables are always refused, Groovy unless the policy of the
installation allows code. An expression that a server cannot finish blocks all of its tables, so
patterns and sizes are bounded as in assertions (`pinot_assets.expressions.costs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pinot_assets.core.installation_policy import Policy
from pinot_assets.expressions import syntax
from pinot_assets.expressions.completeness import check_whole
from pinot_assets.expressions.costs import check_costs
from pinot_assets.expressions.pinot import COSTS_OF_PINOT, canonical
from pinot_assets.table_spec.blocks.pinot_json import field_specs
from pinot_assets.table_spec.yaml.document import DocumentNode, KeyPath, Problem, walk

_GROOVY: Final = re.compile(
    r"groovy(?:[\s\"]|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/|--[^\n]*+\n)*+\(|u&\"", re.IGNORECASE
)
"""A call of Groovy as Pinot finds it, with anything between name and parenthesis; or a name in escapes. A
comment is never matched a second time in another way: that would double the time with each comment."""
_FUNCTIONS: Final = ("transformFunction", "filterFunction")
"""Keys whose value is always one expression."""
_FEEDS: Final = ("batchIngestionConfig", "streamIngestionConfig")
"""These have no expressions, and the settings of a stream may refer to the environment."""


def code_problems(schema: DocumentNode, table: DocumentNode, policy: Policy) -> list[Problem]:
    """Return the problems of a REALTIME table's expressions: code, references, cost, incomplete SQL.

    :param schema: a schema, a mapping.
    :param table: a table config, a mapping.
    """
    ingestion = table.mapping.get("ingestionConfig")
    made = [
        spec.at("transformFunction") for _, spec in field_specs(schema) if "transformFunction" in spec.mapping
    ]
    keys = [key for key in (ingestion if isinstance(ingestion, dict) else ()) if key not in _FEEDS]
    parts = [*made, *(table.at("ingestionConfig", key) for key in keys)]
    return [*_in_all(parts, policy), *query_code_problems(table, policy)]


def query_code_problems(table: DocumentNode, policy: Policy) -> list[Problem]:
    """Return the problems of what brokers put into queries of any table (`query.expressionOverrideMap`)."""
    return list(_in_all([table.at("query")] if "query" in table.mapping else [], policy))


def _in_all(parts: Iterable[DocumentNode], policy: Policy) -> Iterator[Problem]:
    """Yield the problems of all texts at or below these: values, and keys, which may be expressions."""
    for part in parts:
        for path, value in walk(part.value, part.path):
            key = path[-1] if path != part.path else None
            for text in (key, value):
                problem = _problem(part, path, text, policy) if isinstance(text, str) else None
                if problem is not None:
                    yield problem


def _problem(part: DocumentNode, path: KeyPath, text: str, policy: Policy) -> Problem | None:
    place = DocumentNode(part.document, path)
    try:
        syntax.refuse_reference(text)
        syntax.refuse_length(text)
        tokens = _tokens(text)
        check_costs([syntax.END, *tokens, syntax.END], COSTS_OF_PINOT)
        if tokens and place.path[-1] in _FUNCTIONS and not _GROOVY.search(canonical(text)):
            check_whole(tokens)
    except syntax.ExpressionRefused as refused:
        return place.problem(refused.reason, refused.fix or "write the value")
    refusal = policy.refuses_code()
    if refusal is not None and _GROOVY.search(canonical(text)):
        fix = f"write it with Pinot's own functions, or {refusal.fix}"
        return place.problem("calls Groovy(), which runs code on Pinot's servers", fix)
    return None


def _tokens(text: str) -> list[syntax.Token]:
    """Return the tokens of an expression; none if it cannot be read, as a name or a delimiter may be.

    :raises ExpressionRefused: it cannot be read, and names a function that can take Pinot a long time.
    """
    try:
        return syntax.read_tokens(text, syntax.PINOT)
    except syntax.ExpressionRefused:
        if not COSTS_OF_PINOT.judged.isdisjoint(map(canonical, re.findall(r"\w+", text))):
            raise
    return []
