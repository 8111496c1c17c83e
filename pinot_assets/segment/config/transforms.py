"""Pinot's `transformConfigs` and `filterConfig` as Spark SQL, or what is in the way.

As Pinot's `ExpressionTransformer` does it: a function fills its column where that is null; one that uses
columns of others runs after them. `FilterTransformer` then drops the rows for which its function is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.expressions.spark import check_spark_expression
from pinot_assets.expressions.syntax import ExpressionRefused
from pinot_assets.segment.column.support import Feature
from pinot_assets.segment.functions.pinot_expression import NotTranslated, Translation, translate


@dataclass(frozen=True, slots=True)
class Transforms:
    """What a table config does to rows.

    :ivar derived: columns and what is put where they are null, in the order in which that is computed.
    :ivar dropped: true for rows that are left out.
    :ivar problems: what cannot be translated.
    """

    derived: tuple[tuple[str, Translation], ...] = ()
    dropped: Translation | None = None
    problems: tuple[str, ...] = ()


def read_transforms(config: JsonMapping) -> Transforms:
    """Translate what a table config has.

    :param config: Pinot table config, as JSON values.
    """
    ingestion = config.get("ingestionConfig") or {}
    problems: list[str] = []
    found: dict[str, Translation] = {}
    for entry in ingestion.get("transformConfigs") or ():
        column, function = entry.get("columnName"), entry.get("transformFunction")
        where = f"ingestionConfig.transformConfigs: column {column}"
        if not column or not function:
            problems.append(Feature.TRANSFORM_INVALID.refusal(where, "no columnName, or no function"))
            continue
        translated = _translate(where, function, problems)
        if column in found:
            problems.append(Feature.TRANSFORM_INVALID.refusal(where, "two functions"))
        if translated is not None:
            found[column] = translated
    dropped = _translate_filter(ingestion.get("filterConfig") or {}, problems)
    try:
        order = [
            *TopologicalSorter({c: sorted(t.columns & found.keys()) for c, t in found.items()}).static_order()
        ]
    except CycleError as error:
        cycle = " → ".join(error.args[1])
        problems.append(
            Feature.TRANSFORM_INVALID.refusal("ingestionConfig.transformConfigs", f"a cycle, {cycle}")
        )
        order = []
    return Transforms(tuple((column, found[column]) for column in order), dropped, tuple(problems))


def _translate(where: str, function: str, problems: list[str]) -> Translation | None:
    shown = function.replace("; ", ";")  # which separates problems
    try:
        translated = translate(function)
        check_spark_expression(translated.sql)  # as the run does: it may cost too much, or nest too deep
        return translated
    except ExpressionRefused as refused:
        reason = refused.reason.replace("; ", ", ")
        problems.append(Feature.TRANSFORM_OTHER.refusal(where, f"in Spark SQL it {reason}, in {shown}"))
        return None
    except NotTranslated as error:
        feature = Feature.TRANSFORM_OTHER
        if error.is_groovy:
            feature = Feature.GROOVY
        elif error.is_reference:
            feature = Feature.TRANSFORM_REFERENCE
        problems.append(feature.refusal(where, f"{error} in {shown}"))
        return None


def _translate_filter(config: JsonMapping, problems: list[str]) -> Translation | None:
    function = config.get("filterFunction")
    if function is None:
        return None
    where = "ingestionConfig.filterConfig"
    translated = _translate(where, str(function), problems)
    if translated is not None and not translated.is_boolean:
        problems.append(Feature.TRANSFORM_INVALID.refusal(where, f"{function} is neither true nor false"))
    return translated
