"""Check one file of `tables/`, with the JSON files that it names: an OFFLINE or a REALTIME table."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from pinot_assets.core.installation_policy import Policy
from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import SpecError
from pinot_assets.pinot.table_config import has_transforms, is_refresh, period_ms, setting
from pinot_assets.pinot.versions import REPLACED_KEPT
from pinot_assets.table_spec.blocks import pinot_json
from pinot_assets.table_spec.blocks.audit import Audit, read_audit_block
from pinot_assets.table_spec.blocks.cells import cell_problems, pruning_notes
from pinot_assets.table_spec.blocks.dagster import DagsterSettings, read_dagster_block, stray_keys
from pinot_assets.table_spec.blocks.index_notes import tree_notes
from pinot_assets.table_spec.blocks.ingestion import FileIngestion
from pinot_assets.table_spec.blocks.ingestion_rules import Surroundings
from pinot_assets.table_spec.blocks.key_notes import key_notes
from pinot_assets.table_spec.blocks.layout import LayoutSettings, layout_problems, read_layout_block
from pinot_assets.table_spec.blocks.pinot_code import code_problems, query_code_problems
from pinot_assets.table_spec.blocks.pinot_reach import refused_schema, refused_table
from pinot_assets.table_spec.blocks.pinot_settings import TASKS
from pinot_assets.table_spec.blocks.read_ingestion import read_block
from pinot_assets.table_spec.blocks.realtime import merge_block, merged_from
from pinot_assets.table_spec.tables.specs import EITHER, AnyTableSpec, RealtimeTableSpec, TableSpec
from pinot_assets.table_spec.yaml.document import (
    TABLE_SPEC,
    DocumentNode,
    KeyPath,
    Note,
    Problem,
    read_document,
    read_spec_bytes,
)
from pinot_assets.table_spec.yaml.values import secret_problems

_FILES: Final = "fileIngestion"
_REALTIME: Final = "realtime"
_AUDIT: Final = "audit"
_LAYOUT: Final = "layout"
_DAGSTER: Final = "dagster"
_FILE_FOR: Final = {"schema": "schemaFile", "table": "tableFile"}
_TOP_KEYS: Final = (*_FILE_FOR, *_FILE_FOR.values(), _FILES, _REALTIME, _LAYOUT, _AUDIT, _DAGSTER)
_OFFLINE_ONLY: Final = {
    _LAYOUT: "no files are pushed to a REALTIME table",
    _AUDIT: "nothing is staged for a REALTIME table",
}
_BLOCKS: Final = {_FILES: pinot_json.OFFLINE_SUFFIX, _REALTIME: pinot_json.REALTIME_SUFFIX}


class FileCheck:
    """Checks one YAML file and the JSON files that it names.

    :ivar policy: what its specs may reach.
    :ivar name: raw name of its table; until the file gives one, the caller's guess.
    :ivar problems: what is wrong with the file.
    :ivar notes: what is accepted but worth knowing.
    :ivar kinds: `_OFFLINE` or `_REALTIME`; both until the file says which.
    """

    def __init__(self, file: Path, policy: Policy, name: str) -> None:
        self.file = file
        self.policy = policy
        self.problems: list[Problem] = []
        self.notes: list[Note] = []
        self.name = name
        self.kinds = EITHER
        self._refused: set[KeyPath] = set()

    def run(self) -> AnyTableSpec | None:
        """Check the file and return its spec, None if there are problems."""
        try:
            return self._spec()
        except Exception as error:
            # This is a fault of ours, and only this table may suffer from it. The text may quote a secret.
            place = traceback.extract_tb(error.__traceback__)[-1]
            what = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
            fix = "this is a fault of pinot-assets: report it, with the file if it contains no secret"
            self.problems.append(Problem(self.file, 1, "", f"could not be checked: {what}", fix))
            return None

    def _spec(self) -> AnyTableSpec | None:
        if (root := self._read(self.file, TABLE_SPEC)) is None:
            self.kinds = _kinds_in(self.file)
            return None
        if not isinstance(root.value, dict):
            self.problems.append(root.problem("is not a mapping", f"write {', '.join(_TOP_KEYS)}"))
            return None
        strange = [key for key in root.value if key not in _TOP_KEYS]
        self.problems += [root.at(key).unknown_key("a table spec", _TOP_KEYS) for key in strange]
        schema, table = self._pinot_json(root, "schema"), self._pinot_json(root, "table")
        self._identify(root.value, table)
        if schema is not None:
            self.problems += pinot_json.schema_problems(schema)
            self.notes += pinot_json.schema_notes(schema)
        if _REALTIME in root.mapping:
            return self._realtime(root, schema, table)
        return self._offline(root, schema, table)

    def _identify(self, whole: JsonMapping, table: DocumentNode | None) -> None:
        """Set name and kind of the table as far as the file says them, even if it is wrong elsewhere."""
        config = table.mapping if table is not None else {}
        name, kind = config.get("tableName"), str(config.get("tableType")).upper()
        if isinstance(name, str):
            self.name = pinot_json.raw_table_name(name) or self.name
        if f"_{kind}" in EITHER:
            self.kinds = frozenset((f"_{kind}",))
        elif (_REALTIME in whole) != (_FILES in whole):
            self.kinds = frozenset(
                (pinot_json.REALTIME_SUFFIX if _REALTIME in whole else pinot_json.OFFLINE_SUFFIX,)
            )

    def _offline(
        self, root: DocumentNode, schema: DocumentNode | None, table: DocumentNode | None
    ) -> TableSpec | None:
        if table is not None:
            self.problems += pinot_json.table_problems(table)
        table_value: JsonObject = {}
        if both := _mappings(schema, table):
            table_value = both[1].mapping
            self.problems += [
                *pinot_json.agreement_problems(*both),
                *query_code_problems(both[1], self.policy),
            ]
            self.notes += pinot_json.table_notes(both[1])
            self._reach(both[0], pinot_json.without_file_ingestion(table_value), both[1].at)
        # The other blocks are checked even if this one is wrong, so that all problems are reported at once.
        sound = None if self.problems else both
        settings = self._dagster(root, "OFFLINE")
        if (block := self._block(root, table)) is None:
            return None
        known = pinot_json.field_specs(schema) if schema is not None else ()
        columns = frozenset(place.mapping["name"] for _, place in known)
        config = table.mapping if table is not None else {}
        # A config that is missing is one problem, and not a table of the wrong type, too.
        keeps = not config or is_refresh(config) or bool(period_ms(setting(config, *REPLACED_KEPT)))
        around = Surroundings(self.file.parent, keeps, has_transforms(config), columns, self.policy)
        ingestion, problems, notes = read_block(block, self._refused, around)
        self.problems += problems
        self.notes += notes
        if sound is None:
            return None
        audit = self._audit(root, *sound, ingestion)
        layout = self._layout(root, *sound, ingestion)
        self.notes += pruning_notes(root, layout, *sound)
        if ingestion is not None:
            self.problems += pinot_json.transform_problems(block, sound[0], ingestion.transforms)
            unwritable, left_to_server = pinot_json.writer_findings(*sound, ingestion.target)
            self.problems += unwritable
            self.notes += left_to_server
        if self.problems or ingestion is None:
            return None
        return TableSpec(
            name=pinot_json.raw_table_name(table_value["tableName"]),
            path=self.file,
            schema_json=sound[0].mapping,
            table_json=pinot_json.without_file_ingestion(table_value),
            policy=self.policy,
            ingestion=ingestion,
            layout=layout,
            audit=audit,
            dagster=settings,
            notes=tuple(self.notes),
        )

    def _realtime(
        self, root: DocumentNode, schema: DocumentNode | None, table: DocumentNode | None
    ) -> RealtimeTableSpec | None:
        if _FILES in root.mapping:
            reason = f"cannot be used together with {_FILES}: a table file is OFFLINE or REALTIME"
            fix = "write the halves of a hybrid table into two files"
            self.problems.append(root.at(_REALTIME).problem(reason, fix))
        for block, why in _OFFLINE_ONLY.items():
            if block in root.mapping:
                reason = f"is only for OFFLINE tables: {why}"
                self.problems.append(root.at(block).problem(reason, "remove it"))
        wrong = pinot_json.realtime_table_problems(table) if table is not None else []
        self.problems += wrong
        settings = self._dagster(root, "REALTIME")
        if (both := _mappings(schema, table)) is None:
            return None
        self.problems += [*pinot_json.agreement_problems(*both), *code_problems(*both, self.policy)]
        if wrong:
            return None
        config, problems, notes = merge_block(root.at(_REALTIME), both[1], frozenset(self._refused))
        self.problems += problems
        self.notes += notes
        self.notes += [*key_notes(both[1]), *tree_notes(both[1])]
        self._reach(both[0], config, partial(merged_from, root.at(_REALTIME), both[1]))
        if self.problems:
            return None
        return RealtimeTableSpec(
            name=pinot_json.raw_table_name(config["tableName"]),
            path=self.file,
            schema_json=both[0].mapping,
            table_json=config,
            policy=self.policy,
            dagster=settings,
            notes=tuple(self.notes),
        )

    def _reach(
        self, schema: DocumentNode, config: JsonMapping, place_of: Callable[..., DocumentNode]
    ) -> None:
        """Add a problem for each place that Pinot would open for the table and the policy refuses.

        :param config: the table config as it is applied.
        :param place_of: returns the place in the YAML of a path of `config`.
        """
        for where, refused in (
            (schema.at, refused_schema(schema.mapping, self.policy)),
            (place_of, refused_table(config, self.policy)),
        ):
            self.problems += [where(*path).problem(one.reason, one.fix) for path, one in refused]

    def _audit(
        self, root: DocumentNode, schema: DocumentNode, table: DocumentNode, ingestion: FileIngestion | None
    ) -> Audit:
        if _AUDIT not in root.mapping:
            return Audit()
        time = setting(table.value, "segmentsConfig", "timeColumnName")
        audit, wrong = read_audit_block(
            root.at(_AUDIT),
            pinot_json.raw_table_name(table.mapping["tableName"]),
            [place.mapping["name"] for _, place in pinot_json.field_specs(schema)],
            pinot_json.nullable_columns(schema, table),
            time if isinstance(time, str) else None,
        )
        self.problems += wrong
        if audit != Audit() and ingestion is not None and ingestion.push_kind == "plain":
            reason = "needs consistentPushEnabled: a plain push shows segments before they are audited"
            self.problems.append(root.at(_AUDIT).problem(reason, "remove it, or push consistently"))
        return audit

    def _layout(
        self, root: DocumentNode, schema: DocumentNode, table: DocumentNode, ingestion: FileIngestion | None
    ) -> LayoutSettings:
        if _LAYOUT not in root.mapping:
            return LayoutSettings()
        layout, wrong = read_layout_block(root.at(_LAYOUT))
        self.problems += wrong
        if ingestion is not None and not wrong:
            self.problems += layout_problems(root.at(_LAYOUT), layout, schema, table, ingestion)
            self.problems += cell_problems(root.at(_LAYOUT), layout, schema, table)
        return layout

    def _dagster(self, root: DocumentNode, kind: str) -> DagsterSettings:
        if _DAGSTER not in root.mapping:
            return DagsterSettings()
        settings, wrong = read_dagster_block(root.at(_DAGSTER))
        self.problems += [*wrong, *stray_keys(root.at(_DAGSTER), kind)]
        return settings

    def _read(self, file: Path, content: str) -> DocumentNode | None:
        document, problems = read_document(file, content)
        self.problems += problems
        if document is None:
            return None
        root = DocumentNode(document, ())
        wrong, refused = secret_problems(root)
        self.problems += wrong
        if file == self.file:
            self._refused |= refused
        return root

    def _pinot_json(self, root: DocumentNode, key: str) -> DocumentNode | None:
        """The schema or the table config: from this file, or from the file that it names."""
        file_key = _FILE_FOR[key]
        place = root.at(file_key)
        if key in root.mapping:
            if file_key in root.mapping:
                self.problems.append(
                    place.problem(f"cannot be used together with {key}", "keep one of the two")
                )
            return root.at(key)
        if file_key not in root.mapping:
            fix = f"write {key}: with the Pinot JSON below it, or {file_key}: <path>"
            self.problems.append(root.problem(f"{key} is missing", fix))
            return None
        name = root.mapping[file_key]
        other = self.file.parent / str(name)
        if not isinstance(name, str) or not name or "\0" in name:
            problem = place.problem("is not a path", "a path relative to this file")
        elif not other.is_file():
            problem = place.problem(f"{other} is not a file", "a path relative to this file")
        elif refusal := self.policy.refuses_path(os.path.abspath(other)):
            problem = place.problem(refusal.reason, refusal.fix)
        else:
            what = "schema" if key == "schema" else "table config"
            return self._read(other, f"write the Pinot {what} into it")
        self.problems.append(problem)
        return None

    def _block(self, root: DocumentNode, table: DocumentNode | None) -> DocumentNode | None:
        """The ingestion block, from either of its two places; None and a problem if it is missing."""
        tasks = setting(table.value, *TASKS) if table is not None else None
        pasted = None
        if table is not None and isinstance(tasks, dict) and pinot_json.FILE_INGESTION_TASK in tasks:
            pasted = table.at(*TASKS, pinot_json.FILE_INGESTION_TASK)
            text = "is not applied: open-source Pinot does not know this task type"
            self.notes.append(pasted.note(text))
        if _FILES in root.mapping:
            if pasted is not None:
                reason = f"cannot be used together with {_FILES}"
                self.problems.append(pasted.problem(reason, "keep one of the two"))
            return root.at(_FILES)
        if pasted is None:
            keys = f"write {_FILES}: with the FileIngestionTask keys below it"
            fix = f"{keys}, or {_REALTIME}: for a REALTIME table"
            self.problems.append(root.problem(f"{_FILES} is missing", fix))
        return pasted


def _kinds_in(file: Path) -> frozenset[str]:
    """Which kinds a file that is no valid YAML may be: the kind of its block at the left margin, or both."""
    try:
        data = read_spec_bytes(file) if file.is_file() else b""  # reading a pipe would block
    except (OSError, SpecError):
        return EITHER
    kinds = {kind for block, kind in _BLOCKS.items() if re.search(rf"(?m)^{block}\s*:".encode(), data)}
    return frozenset(kinds) if len(kinds) == 1 else EITHER


def _mappings(
    schema: DocumentNode | None, table: DocumentNode | None
) -> tuple[DocumentNode, DocumentNode] | None:
    """Schema and table config if both are mappings, so that they can be compared."""
    if schema is None or table is None:
        return None
    return (schema, table) if isinstance(schema.value, dict) and isinstance(table.value, dict) else None
