"""The `layout:` block: how the rows of files lie in segments.

Source: docs/tables.md#layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from pinot_assets.expressions.syntax import PINOT, SPARK, ExpressionRefused, column_names
from pinot_assets.pinot.table_config import setting
from pinot_assets.segment.column.unsupported import is_true
from pinot_assets.table_spec.blocks.ingestion import FileIngestion
from pinot_assets.table_spec.blocks.pinot_json import field_specs
from pinot_assets.table_spec.yaml.document import DocumentNode, Problem, did_you_mean
from pinot_assets.table_spec.yaml.values import has_reference, yaml_keys

PROVENANCE: Final = "provenanceColumn"


class LayoutSettings(BaseModel):
    """How the rows of files lie in segments."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    provenance_column: Annotated[str, Field(alias=PROVENANCE)] = ""
    """A STRING column of the schema that gets, in each row, the path of its file below inputDirURI."""


_KEYS: Final = yaml_keys(LayoutSettings)


def read_layout_block(block: DocumentNode) -> tuple[LayoutSettings, list[Problem]]:
    """Read the `layout:` block.

    :returns: the layout, with defaults for what is wrong, and its problems.
    """
    if not isinstance(block.value, dict):
        what = "is empty" if block.value is None else "is not a mapping"
        return LayoutSettings(), [block.problem(what, f"write {PROVENANCE}: <column> below it, or remove it")]
    strange = [key for key in block.value if key not in _KEYS]
    problems = [block.at(key).unknown_key("the layout block", _KEYS) for key in strange]
    if PROVENANCE not in block.value:
        return LayoutSettings(), problems
    place = block.at(PROVENANCE)
    name = place.value
    if not isinstance(name, str) or not name:
        problems.append(place.problem("is not the name of a column", f"{PROVENANCE}: source_file"))
    elif has_reference(name):
        problems.append(place.problem("refers to the environment, which is not read here", "write the name"))
    else:
        return LayoutSettings(provenance_column=name), problems
    return LayoutSettings(), problems


def layout_problems(
    block: DocumentNode,
    layout: LayoutSettings,
    schema: DocumentNode,
    table: DocumentNode,
    ingestion: FileIngestion,
) -> Iterator[Problem]:
    """Yield what is wrong with the layout together with the rest of the spec.

    :param schema: a schema without problems of its own.
    :param table: a table config without problems of its own.
    """
    if not (name := layout.provenance_column):
        return
    place = block.at(PROVENANCE)
    columns = {spec.mapping["name"]: (kind, spec.mapping) for kind, spec in field_specs(schema)}
    if name not in columns:
        fix = did_you_mean(name, columns) or "add it to dimensionFieldSpecs, with dataType STRING"
        yield place.problem(f"{name} is no column of the schema", fix)
        return
    kind, field = columns[name]
    is_multi_value = "singleValueField" in field and not is_true(field["singleValueField"])
    data_type = str(field.get("dataType")).upper()
    if kind != "DIMENSION":
        reason = f"{name} is a column of dateTimeFieldSpecs or metricFieldSpecs, and has to be a dimension"
        yield place.problem(reason, "add a STRING column to dimensionFieldSpecs")
    elif data_type != "STRING":
        yield place.problem(f"{name} is {data_type}, and has to be STRING", "choose or add a STRING column")
    elif is_multi_value:
        yield place.problem(f"{name} has several values a row", "choose or add a column of one STRING")
    elif is_true(field.get("notNull")):
        reason = f"{name} has notNull, but it is null in rows that were published before"
        yield place.problem(reason, "remove notNull from the column")
    if makers := [*_makers(name, table, ingestion)]:
        reason = f"{name} is filled with the file's path, so {' and '.join(makers)} cannot fill it"
        yield place.problem(reason, "remove the expression, or choose another column")
    if readers := [*_readers(name, table, ingestion)]:
        reason = f"{' and '.join(readers)} cannot read {name}: no file has it"
        fix = "remove it from the expression; in Spark SQL, _metadata.file_path has the file's address"
        yield place.problem(reason, fix)


def _transform_configs(table: DocumentNode) -> Iterator[tuple[str, str]]:
    """Yield column and function of each entry of Pinot's `transformConfigs`."""
    for place in table.items("ingestionConfig", "transformConfigs"):
        yield str(place.mapping.get("columnName")), str(place.mapping.get("transformFunction"))


def _makers(name: str, table: DocumentNode, ingestion: FileIngestion) -> Iterator[str]:
    if name in ingestion.transforms:
        yield f"transforms.{name}"
    if name in dict(_transform_configs(table)):
        yield f"transformConfigs of {name}"


def _readers(name: str, table: DocumentNode, ingestion: FileIngestion) -> Iterator[str]:
    of_pinot = setting(table.value, "ingestionConfig", "filterConfig", "filterFunction")
    of_spark = {"filter": ingestion.filter}
    of_spark |= {f"transforms.{column}": sql for column, sql in ingestion.transforms.items()}
    functions = {f"transformConfigs of {column}": made for column, made in _transform_configs(table)}
    functions["filterConfig"] = str(of_pinot or "")
    for dialect, expressions in ((SPARK, of_spark), (PINOT, functions)):
        for key, text in expressions.items():
            with suppress(ExpressionRefused):  # which is a problem of its own
                if name in column_names(text, dialect):
                    yield key
