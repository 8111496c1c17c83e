"""One table's whole spec, OFFLINE or REALTIME, checked, as values.

What the asset of a table is called in Dagster, all its jobs, sensors and pools begin with. Two names that
come to the same asset are two tables that cannot be loaded together (`load`).
"""

from __future__ import annotations

import hashlib
import keyword
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.policy import Policy
from pinot_assets.errors import SourceError, SpecError
from pinot_assets.pinot.table_config import setting
from pinot_assets.segment.config.indexes import BUILD_INVERTED
from pinot_assets.source import resolve_env
from pinot_assets.table_spec.blocks.audit import Audit
from pinot_assets.table_spec.blocks.dagster import DagsterSettings
from pinot_assets.table_spec.blocks.ingestion import FileIngestion, Mode
from pinot_assets.table_spec.blocks.ingestion_rules import check_apart
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX, REALTIME_SUFFIX
from pinot_assets.table_spec.yaml.document import Note, canonical_json
from pinot_assets.table_spec.yaml.values import normalise_location

RESERVED: Final = frozenset(
    [
        *keyword.kwlist,
        *("arg_dict", "bool", "conf", "context", "dict", "float", "input", "input_arg_dict", "int"),
        *("meta", "output", "output_arg_dict", "str", "type"),
    ]
)
"""Words after which Dagster names nothing: an asset check's input has the name of its asset."""


def asset_name(table: str, kind: str) -> str:
    """The raw name with `_` for `-`; of a REALTIME table with `_realtime` behind it, and with `_table` where
    it would be a word of Dagster's.

    :param kind: `_OFFLINE` or `_REALTIME`.
    """
    name = table.replace("-", "_") + ("_realtime" if kind == REALTIME_SUFFIX else "")
    return f"{name}_table" if name in RESERVED else name


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """What the specs of OFFLINE and REALTIME tables have in common.

    :cvar kind: `_OFFLINE` or `_REALTIME`.
    :ivar name: raw table name; the two halves of a hybrid table have the same.
    :ivar path: the YAML file.
    :ivar schema_json: the Pinot schema.
    :ivar table_json: the table config that is applied to Pinot.
    :ivar dagster: how Dagster shows and watches the table.
    :ivar policy: what the spec may reach.
    :ivar notes: what was accepted but is worth knowing.
    """

    kind: ClassVar[str]

    name: str
    path: Path
    schema_json: JsonObject
    table_json: JsonObject
    policy: Policy
    dagster: DagsterSettings = field(default_factory=DagsterSettings)
    notes: tuple[Note, ...] = ()

    @property
    def name_with_type(self) -> str:
        """`<name>_OFFLINE`, `<name>_REALTIME`."""
        return self.name + self.kind

    @property
    def asset_name(self) -> str:
        """What its asset is called; unique among the tables loaded together."""
        return asset_name(self.name, self.kind)


_SHAPING_CONFIG: Final = ("tableIndexConfig", "fieldConfigList", "upsertConfig", "dedupConfig")
_SHAPING_INGESTION: Final = (
    *("aggregationConfigs", "complexTypeConfig", "continueOnError", "enrichmentConfigs", "filterConfig"),
    *("rowTimeValueCheck", "schemaConformingTransformerConfig", "schemaConformingTransformerV2Config"),
    *("segmentTimeValueCheck", "transformConfigs"),
)


@dataclass(frozen=True, kw_only=True)
class TableSpec(TableFile):
    """What one `tables/*.yaml` says: its `table_json` is without the FileIngestionTask block.

    :ivar ingestion: how files become segments.
    :ivar audit: what must hold of staged segments before they are shown.
    """

    kind: ClassVar[str] = OFFLINE_SUFFIX

    ingestion: FileIngestion
    audit: Audit = field(default_factory=Audit)

    @property
    def mode(self) -> Mode:
        """append, sync or swap."""
        return self.ingestion.mode

    def input_uri(self) -> str:
        """The input directory: references resolved, relative to the YAML file, without a trailing slash.

        :raises SpecError: a variable is not set, or the result is no usable directory.
        """
        return self._locate("inputDirURI", self.ingestion.input_dir_uri)

    def staging_uri(self) -> str:
        """The staging area, as `input_uri`.

        :raises SpecError: as `input_uri`, or one of the two directories lies in the other.
        """
        staging = self._locate("output.segment.dir.uri", self.ingestion.staging_uri)
        check_apart(self.input_uri(), staging)
        return staging

    def config_fingerprint(self, writer_version: str) -> str:
        """What a session must not outlive: a change of it abandons an open one (rule R28, edge case E14).

        Credentials, schedule, retries, parallelism, the push mode, when files count as ready and what Dagster
        shows are not part of it.

        :param writer_version: version of the segment writer.
        :returns: 64 hex digits.
        :raises SpecError: as `input_uri`.
        """
        index = self.table_json.get("tableIndexConfig") or {}
        ingestion = self.table_json.get("ingestionConfig") or {}
        segments = self.table_json.get("segmentsConfig") or {}
        shaping = {
            "mode": self.mode,
            "push": self.ingestion.push_kind,
            "input": self.input_uri(),
            "patterns": [self.ingestion.include, self.ingestion.exclude],
            "format": self.ingestion.input_format,
            "reader": self.ingestion.reader,
            "skipUnreadable": self.ingestion.skip_unreadable,
            "maxRows": self.ingestion.max_rows_per_segment,
            "desiredBytes": self.ingestion.desired_segment_bytes,
            "badRows": self.ingestion.bad_row_limit,
            "missingColumn": self.ingestion.on_missing_column,
            "sql": [self.ingestion.engine, self.ingestion.filter, self.ingestion.transforms],
            "minServer": self.ingestion.min_server,
            "schema": self.schema_json,
            "timeColumn": [segments.get("timeColumnName"), segments.get("timeType")],
            "table": {key: self.table_json.get(key) for key in _SHAPING_CONFIG}
            | {"tableIndexConfig": {k: v for k, v in index.items() if k != "loadMode"}},
            "ingestion": {key: ingestion.get(key) for key in _SHAPING_INGESTION},
            "invertedAtBuild": setting(self.table_json, "metadata", "customConfigs", BUILD_INVERTED),
            "writer": writer_version,
        }
        return hashlib.sha256(canonical_json(shaping).encode()).hexdigest()

    def _locate(self, key: str, text: str) -> str:
        try:
            return normalise_location(resolve_env(text, self.policy), self.path.parent)
        except SourceError as error:
            raise SpecError(
                f"{self.path}: {key} is no usable directory", why=error.why or error.what, hint=error.hint
            ) from None


@dataclass(frozen=True, kw_only=True)
class RealtimeTableSpec(TableFile):
    """What one `tables/*.yaml` with a `realtime:` block says: its `table_json` has the block laid into it.

    References to the environment are kept as they are written, for Pinot to fill in.
    """

    kind: ClassVar[str] = REALTIME_SUFFIX


AnyTableSpec = TableSpec | RealtimeTableSpec
"""What one file of `tables/` may be."""


def label_of(spec: AnyTableSpec) -> str:
    """What tells tables apart in tags and metrics, and commands take: the raw name of an OFFLINE table, a
    REALTIME one's with its type."""
    return spec.name if isinstance(spec, TableSpec) else spec.name_with_type
