"""One table's whole spec, OFFLINE or REALTIME, checked, as values; and the tables of one directory.

What the asset of a table is called in Dagster, all its jobs, sensors and pools begin with. Two names that
come to the same asset are two tables that cannot be loaded together (`load`).
"""

from __future__ import annotations

import hashlib
import keyword
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, TypeVar

from pinot_assets.core.installation_policy import Policy
from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import SourceError, SpecError
from pinot_assets.pinot.table_config import setting
from pinot_assets.segment.config.segment_spec import BUILD_INVERTED
from pinot_assets.source import resolve_env
from pinot_assets.table_spec.blocks.audit import Audit
from pinot_assets.table_spec.blocks.dagster import DagsterSettings
from pinot_assets.table_spec.blocks.ingestion import FileIngestion, Mode
from pinot_assets.table_spec.blocks.ingestion_rules import check_apart
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX, REALTIME_SUFFIX, raw_table_name
from pinot_assets.table_spec.yaml.document import Note, Problem, canonical_json, did_you_mean
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


EITHER: Final = frozenset((OFFLINE_SUFFIX, REALTIME_SUFFIX))
"""Kinds of a table whose file does not say which one it is."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One file that cannot be used.

    :ivar file: the YAML file.
    :ivar name: the raw name of its table: as the file says it, else the name of the file.
    :ivar kinds: what its table may be: `_OFFLINE` or `_REALTIME`; where the file does not say, those of the
        two that no good file of its table is.
    :ivar problems: what is wrong with it, at least one.
    """

    file: Path
    name: str
    kinds: frozenset[str]
    problems: tuple[Problem, ...]

    @property
    def error(self) -> SpecError:
        """All that is wrong with it."""
        return spec_error(self.problems)

    @property
    def in_one_line(self) -> str:
        """The file, its first problem, and how many more there are."""
        more = len(self.problems) - 1
        behind = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
        first = self.problems[0]
        where = "" if first.file == self.file else f"{self.file}: "
        return f"{where}{first}{behind}"

    def answers_to(self, name: str) -> bool:
        """Whether a command that is given this name means its table: a raw name, or one with its type."""
        return name == self.name or any(name == self.name + kind for kind in self.kinds)


def spec_error(problems: Sequence[Problem]) -> SpecError:
    """The error that lists these."""
    listed = "\n".join(f"  {problem}" for problem in problems)
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return SpecError(f"the table specs have {count}:\n{listed}")


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each once, by file and line."""
    # `key` alone would mix None and text in `fix`.
    return sorted(set(problems), key=lambda p: (p.file, p.line, p.key, p.reason))


T = TypeVar("T")


class Tables(Mapping[str, TableSpec]):
    """The table specs of one directory by raw table name, in the order of their names.

    As a mapping it holds the OFFLINE tables, which files are pushed to.

    :ivar realtime: the REALTIME tables by raw name; a hybrid table's two halves have the same.
    :ivar left_out: tables whose files are wrong. To ask for one by its name raises what is wrong with it.
    """

    def __init__(self, specs: Iterable[AnyTableSpec], left_out: Iterable[LeftOut] = ()) -> None:
        ordered = sorted(specs, key=lambda spec: spec.name)
        self._offline = {spec.name: spec for spec in ordered if isinstance(spec, TableSpec)}
        self.realtime: Mapping[str, RealtimeTableSpec] = {
            spec.name: spec for spec in ordered if isinstance(spec, RealtimeTableSpec)
        }
        self.left_out: Sequence[LeftOut] = tuple(left_out)

    def __getitem__(self, name: str) -> TableSpec:
        return self._offline[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._offline)

    def __len__(self) -> int:
        return len(self._offline)

    def choose(self, names: Iterable[str]) -> list[TableSpec]:
        """The OFFLINE tables of these names in their order; where no name is given, all that can be used.

        :raises SpecError: there is no such table, or its file is wrong.
        """
        requested = list(names) or list(self._offline)
        for name in requested:
            self._refuse_left_out(name, OFFLINE_SUFFIX, self._offline)
            if name not in self._offline and name in self.realtime:
                raise SpecError(f"{name} is a REALTIME table", hint="see `pinot-assets realtime --help`")
            if name not in self._offline:
                raise self._absent(name, self._offline)
        return [self._offline[name] for name in requested]

    def find_realtime(self, name: str) -> RealtimeTableSpec | None:
        """The REALTIME table of that raw name, None where no file is about it.

        :raises SpecError: its file is wrong.
        """
        self._refuse_left_out(name, REALTIME_SUFFIX, self.realtime)
        return self.realtime.get(name)

    def sort_out(self, names: Iterable[str]) -> tuple[list[AnyTableSpec], list[LeftOut]]:
        """The tables of these names, of either type, that can be used, and those that are left out; each
        once, however often and by whichever of its names it is named. A hybrid's name stands for both halves,
        unless it ends in `_OFFLINE` or `_REALTIME`. Where no name is given, all of them.

        :raises SpecError: there is no such table.
        """
        known = dict.fromkeys([*self._offline, *self.realtime])
        if not (requested := list(names)):
            return [spec for name in sorted(known) for spec in self._halves(name)], [*self.left_out]
        chosen: list[AnyTableSpec] = []
        missing: list[LeftOut] = []
        for name in requested:
            halves, wrong = self._halves(name), [one for one in self.left_out if one.answers_to(name)]
            if not halves and not wrong:
                raise self._absent(name, known)
            chosen += halves
            missing += wrong
        return _once(chosen), _once(missing)

    def sort_out_offline(self, names: Iterable[str]) -> tuple[list[TableSpec], list[LeftOut]]:
        """As `choose`: the tables that can be used, and those of the names that are left out; each once.

        :raises SpecError: there is no such table.
        """
        wrong = [one for one in self.left_out if OFFLINE_SUFFIX in one.kinds]
        if not (requested := list(names)):
            return self.choose([]), wrong
        absent = [name for name in requested if name not in self._offline]
        missing = {name: one for name in absent for one in wrong if one.answers_to(name)}
        good = [name for name in requested if name not in missing]
        return _once(self.choose(good)) if good else [], _once(missing.values())

    def _halves(self, name: str) -> list[AnyTableSpec]:
        raw = raw_table_name(name)
        halves = (self._offline.get(raw), self.realtime.get(raw))
        return [spec for spec in halves if spec is not None and name in (spec.name, spec.name_with_type)]

    def _refuse_left_out(self, name: str, kind: str, good: Iterable[str]) -> None:
        for one in self.left_out:
            if one.answers_to(name) and kind in one.kinds and name not in good:
                raise one.error

    def _absent(self, name: str, known: Iterable[str]) -> SpecError:
        names = sorted({*known, *(one.name for one in self.left_out)})
        hint = did_you_mean(name, names) or f"there are: {', '.join(names) or 'none'}"
        return SpecError(f"there is no table spec for {name}", hint=hint)


def _once(items: Iterable[T]) -> list[T]:
    """Each of these in its first place; specs hold JSON and cannot be hashed."""
    return [*{id(one): one for one in items}.values()]
