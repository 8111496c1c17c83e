"""Whether the segment writer can build what a spec asks for: asked when it is read, not at the first run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pinot_assets.errors import UnsupportedFeature
from pinot_assets.segment import SegmentSpec
from pinot_assets.table_spec.blocks.ingestion import TRANSFORMS
from pinot_assets.table_spec.blocks.pinot_json import field_specs
from pinot_assets.table_spec.yaml.document import DocumentNode
from pinot_assets.table_spec.yaml.problem import Note, Problem, did_you_mean

_COLUMN: Final = re.compile(r"column (.*?):")
_TRANSFORM: Final = re.compile(r"ingestionConfig\.transformConfigs: column (.*?):")
_FILTER: Final = "ingestionConfig.filterConfig:"


def transform_problems(block: DocumentNode, schema: DocumentNode, transforms: Iterable[str]) -> list[Problem]:
    """Columns that `transforms` makes and the table does not have."""
    columns = [place.value["name"] for _, place in field_specs(schema)]
    return [
        block.at(f"{TRANSFORMS}.{name}").problem("makes no column of the schema", did_you_mean(name, columns))
        for name in transforms
        if name not in columns
    ]


def writer_findings(
    schema: DocumentNode, table: DocumentNode, min_server: str
) -> tuple[list[Problem], list[Note]]:
    """What the segment writer refuses, and what it leaves to the server, each at its column's line.

    :param schema: a schema without problems of its own.
    :param table: a table config without problems of its own.
    """
    places = {place.value["name"]: place for _, place in field_specs(schema)}

    def place_of(text: str) -> DocumentNode:
        column = _COLUMN.match(text)
        return places.get(column.group(1), table) if column else _expression_place(table, text)

    try:
        spec = SegmentSpec.from_pinot(schema.value, table.value, min_server=min_server)
    except UnsupportedFeature as refused:
        reasons = (refused.why or refused.what).split("; ")
        fix = "the segment writer cannot do this yet; take it out"
        return [place_of(reason).problem(reason, fix) for reason in reasons], []
    except (AttributeError, KeyError, TypeError, ValueError):
        # Settings of another shape than Pinot's own classes have; which of them, Pinot says best.
        reason = "has a setting that is not of the shape that Pinot gives it"
        return [table.problem(reason, "compare it with a table config that Pinot has accepted")], []
    return [], [place_of(text).note(text) for text in spec.notes]


def _expression_place(table: DocumentNode, text: str) -> DocumentNode:
    """Where the function is that a reason is about; the table config, where it is about none."""
    if text.startswith(_FILTER):
        return table.at("ingestionConfig", "filterConfig", "filterFunction")
    if (made := _TRANSFORM.match(text)) is not None:
        for number, entry in enumerate(table.value["ingestionConfig"]["transformConfigs"]):
            if entry.get("columnName") == made[1]:
                return table.at("ingestionConfig", "transformConfigs", number, "transformFunction")
    return table
