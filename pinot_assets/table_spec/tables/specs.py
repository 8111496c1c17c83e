"""The checked spec of one table, OFFLINE or REALTIME, and the table specs of one directory.

The names of a table's jobs, sensors and pools in Dagster begin with the name of its asset. So two table names
that give the same asset name cannot be loaded together (`load`).
"""

from __future__ import annotations

import hashlib
import keyword
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
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
from pinot_assets.table_spec.blocks.layout import LayoutSettings
from pinot_assets.table_spec.blocks.pinot_json import OFFLINE_SUFFIX, REALTIME_SUFFIX, raw_table_name
from pinot_assets.table_spec.yaml.document import Note, Problem, canonical_json, did_you_mean
from pinot_assets.table_spec.yaml.values import normalise_location

NO_SPECS: Final = "run this in the folder of tables/, or name that with --tables or PINOT_ASSETS_TABLES"
"""What to do when no table spec is there."""
RESERVED: Final = frozenset(
    [
        *keyword.kwlist,
        *("arg_dict", "bool", "conf", "context", "dict", "float", "input", "input_arg_dict", "int"),
        *("meta", "output", "output_arg_dict", "str", "type"),
    ]
)
"""Names that Dagster refuses: the input of an asset check has the name of its asset."""


def asset_name(table: str, kind: str) -> str:
    """Return the asset's name: the raw name with `_` for `-`, plus `_realtime` for a REALTIME table, plus
    `_table` if the result is a reserved word.

    :param kind: `_OFFLINE` or `_REALTIME`.
    """
    name = table.replace("-", "_") + ("_realtime" if kind == REALTIME_SUFFIX else "")
    return f"{name}_table" if name in RESERVED else name


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """What the specs of OFFLINE and REALTIME tables have in common.

    :cvar kind: `_OFFLINE` or `_REALTIME`.
    :ivar name: raw table name; the two halves of a hybrid table have the same one.
    :ivar path: the YAML file.
    :ivar schema_json: the Pinot schema.
    :ivar table_json: the table config that is applied to Pinot.
    :ivar dagster: how Dagster shows and watches the table.
    :ivar policy: what the spec may read and reach.
    :ivar notes: what is accepted but worth knowing.
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
        """Name of the table's asset; unique among the tables loaded together."""
        return asset_name(self.name, self.kind)


_SHAPING_CONFIG: Final = ("tableIndexConfig", "fieldConfigList", "upsertConfig", "dedupConfig")
_SHAPING_INGESTION: Final = (
    *("aggregationConfigs", "complexTypeConfig", "continueOnError", "enrichmentConfigs", "filterConfig"),
    *("rowTimeValueCheck", "schemaConformingTransformerConfig", "schemaConformingTransformerV2Config"),
    *("segmentTimeValueCheck", "transformConfigs"),
)


@dataclass(frozen=True, kw_only=True)
class TableSpec(TableFile):
    """The spec in one `tables/*.yaml` of an OFFLINE table, without FileIngestionTask in its `table_json`.

    :ivar ingestion: how files become segments.
    :ivar layout: how the rows of files lie in segments.
    :ivar audit: what must hold for staged segments before queries see them.
    """

    kind: ClassVar[str] = OFFLINE_SUFFIX

    ingestion: FileIngestion
    layout: LayoutSettings = field(default_factory=LayoutSettings)
    audit: Audit = field(default_factory=Audit)

    @property
    def mode(self) -> Mode:
        """The mode of the table's sessions: append, sync or swap."""
        return self.ingestion.mode

    def input_uri(self) -> str:
        """Return the input URI: references resolved, relative to the YAML file, without a trailing slash.

        :raises SpecError: a variable is not set, or the result is not a usable directory.
        """
        return self._locate("inputDirURI", self.ingestion.input_dir_uri)

    def staging_uri(self) -> str:
        """Return the URI of the staging area, made like `input_uri`.

        :raises SpecError: as `input_uri`, or one of the two directories lies inside the other.
        """
        staging = self._locate("output.segment.dir.uri", self.ingestion.staging_uri)
        check_apart(self.input_uri(), staging)
        return staging

    def config_fingerprint(self, writer_version: str) -> str:
        """Return a hash of what shapes segments; a change gives up an open session (rule R28, edge case E14).

        Not part of it: credentials, schedule, retries, parallelism, the push mode, when files are ready, and
        what Dagster shows.

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
            # Servers may be upgraded during a session, and newer ones read all formats.
            "minServer": self.ingestion.assured_target,
            "schema": self.schema_json,
            "timeColumn": [segments.get("timeColumnName"), segments.get("timeType")],
            "table": {key: self.table_json.get(key) for key in _SHAPING_CONFIG}
            | {"tableIndexConfig": {k: v for k, v in index.items() if k != "loadMode"}},
            "ingestion": {key: ingestion.get(key) for key in _SHAPING_INGESTION},
            "invertedAtBuild": setting(self.table_json, "metadata", "customConfigs", BUILD_INVERTED),
            "writer": writer_version,
        }
        if self.layout.provenance_column:
            shaping["provenance"] = self.layout.provenance_column
        if self.layout.pack:
            shaping["pack"] = True
        if (cells := self.layout.cells) is not None:
            shaping["cells"] = [cells.partition, cells.time_slice]
        return hashlib.sha256(canonical_json(shaping).encode()).hexdigest()

    def _locate(self, key: str, text: str) -> str:
        try:
            return normalise_location(resolve_env(text, self.policy), self.path.parent)
        except SourceError as error:
            raise SpecError(
                f"{self.path}: {key} is not a usable directory", why=error.why or error.what, hint=error.hint
            ) from None


@dataclass(frozen=True, kw_only=True)
class RealtimeTableSpec(TableFile):
    """The spec in one `tables/*.yaml` with a `realtime:` block, which is merged into its `table_json`.

    References to the environment are kept as written; Pinot fills them in.
    """

    kind: ClassVar[str] = REALTIME_SUFFIX


AnyTableSpec = TableSpec | RealtimeTableSpec
"""The spec of one file of `tables/`."""


def label_of(spec: AnyTableSpec) -> str:
    """Return the table's label in tags and metrics, which commands accept, too: the raw name of an OFFLINE
    table, the name with type of a REALTIME table."""
    return spec.name if isinstance(spec, TableSpec) else spec.name_with_type


EITHER: Final = frozenset((OFFLINE_SUFFIX, REALTIME_SUFFIX))
"""Both kinds: for a file that does not say which one its table is."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One file that cannot be used.

    :ivar file: the YAML file.
    :ivar name: raw name of its table, from the file if it gives one, else from the name of the file.
    :ivar kinds: what its table may be: `_OFFLINE` or `_REALTIME`. If the file does not say, both without
        those that a good file with the same table name already is.
    :ivar problems: what is wrong with it, at least one.
    """

    file: Path
    name: str
    kinds: frozenset[str]
    problems: tuple[Problem, ...]

    @property
    def error(self) -> SpecError:
        """An error that lists all its problems."""
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
        """Whether a command's argument means this table: its raw name, or its name with a possible type."""
        return name == self.name or any(name == self.name + kind for kind in self.kinds)


def spec_error(problems: Sequence[Problem]) -> SpecError:
    """Return an error that lists these problems."""
    listed = "\n".join(f"  {problem}" for problem in problems)
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    return SpecError(f"the table specs have {count}:\n{listed}")


def in_file_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return each problem once, sorted by file and line."""
    # Sorting whole problems would compare None with text in `fix`.
    return sorted(set(problems), key=lambda p: (p.file, p.line, p.key, p.reason))


T = TypeVar("T")


class Tables(Mapping[str, TableSpec]):
    """The table specs of one directory by raw table name, in the order of their names.

    As a mapping it holds the OFFLINE tables: files are pushed to these only.

    :ivar realtime: the REALTIME tables by raw name; both halves of a hybrid table have the same name.
    :ivar left_out: tables whose files are wrong. Asking for one by name raises the problems of its file.
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
        """Return the OFFLINE tables of these names in this order; all usable ones if no name is given.

        :raises SpecError: there is no such OFFLINE table, or its file is wrong.
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
        """Return the REALTIME table of that raw name, None if no file describes it.

        :raises SpecError: its file is wrong.
        """
        self._refuse_left_out(name, REALTIME_SUFFIX, self.realtime)
        return self.realtime.get(name)

    def sort_out(self, names: Iterable[str]) -> tuple[list[AnyTableSpec], list[LeftOut]]:
        """Return the usable tables of these names, of either type, and those left out. Each comes once, even
        if it is named several times. A hybrid table's name means both halves, unless it ends in `_OFFLINE` or
        `_REALTIME`. If no name is given: all tables.

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
        """Return, as `choose`, the usable tables of these names, and those left out of them; each once.

        :raises SpecError: there is no such OFFLINE table.
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
        # People also type the file of a spec, or the name that Pinot's pages show.
        hint = did_you_mean(raw_table_name(PurePath(name).stem), names)
        if hint is None:
            hint = f"the table specs are: {', '.join(names)}" if names else NO_SPECS
        return SpecError(f"there is no table spec for {name}", hint=hint)


def _once(items: Iterable[T]) -> list[T]:
    """Each item at its first place, compared by identity: specs hold JSON and cannot be hashed."""
    return [*{id(one): one for one in items}.values()]
