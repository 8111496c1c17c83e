"""The `realtime:` block: short keys for what a REALTIME table config says in far places, merged into it.

Whatever the block does not know stays in the table config as it is written. Where both say the same thing
differently, neither wins: that is a problem. Source: docs/design/realtime.md#s2, StreamIngestionConfig,
StreamConfig and TableConfigUtils of Pinot 1.5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from pinot_assets.core.json_object import JsonObject
from pinot_assets.source.settings.references import is_reference
from pinot_assets.table_spec.yaml.document import DocumentNode, KeyPath, Note, Problem, did_you_mean
from pinot_assets.table_spec.yaml.environment import has_reference
from pinot_assets.table_spec.yaml.values import Count, Flag, Period, Size, any_case, one_of

STREAM_INGESTION: Final = ("ingestionConfig", "streamIngestionConfig")
STREAMS: Final = (*STREAM_INGESTION, "streamConfigMaps")
FORMER_STREAM: Final = ("tableIndexConfig", "streamConfigs")
"""Where a stream stood before Pinot had the place above; Pinot refuses a table that uses both."""

FLUSH: Final = "realtime.segment.flush.threshold."
STREAM_KEYS: Final = {
    "flushThresholdRows": f"{FLUSH}rows",
    "flushThresholdTime": f"{FLUSH}time",
    "flushThresholdSegmentSize": f"{FLUSH}segment.size",
}
"""Keys that are settings of the stream, and their names there."""

_ROWS: Final = (STREAM_KEYS["flushThresholdRows"], f"{FLUSH}size", f"{FLUSH}size.llc")
"""A stream's key for the rows, and what it was called before."""

TABLE_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "peerSegmentDownloadScheme": ("segmentsConfig", "peerSegmentDownloadScheme"),
    "pauselessConsumptionEnabled": (*STREAM_INGESTION, "pauselessConsumptionEnabled"),
    "disasterRecoveryMode": (*STREAM_INGESTION, "disasterRecoveryMode"),
}
"""Keys that are settings of the table, and their places there."""


class RealtimeBlock(BaseModel):
    """What of a REALTIME table is worth a short key: its stream, its commits, its repair.

    Everything here may stand in the table config instead.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    stream: Mapping[str, str] = Field(default_factory=dict)
    """The stream's settings, as in Pinot's streamConfigMaps; secrets as ${NAME} of Pinot's environment."""
    peer_scheme: Annotated[
        Annotated[
            Literal["http", "https"], BeforeValidator(one_of("http", "https")), any_case("http", "https")
        ]
        | None,
        Field(alias="peerSegmentDownloadScheme"),
    ] = None
    """Servers take segments from each other, and a commit passes a deep store that is down."""
    pauseless: Annotated[Flag | None, Field(alias="pauselessConsumptionEnabled")] = None
    """The next segment is consumed while this one is built and uploaded; Pinot 1.4 or newer."""
    recovery: Annotated[
        Annotated[
            Literal["DEFAULT", "ALWAYS"],
            BeforeValidator(one_of("DEFAULT", "ALWAYS")),
            any_case("DEFAULT", "ALWAYS"),
        ]
        | None,
        Field(alias="disasterRecoveryMode"),
    ] = None
    """ALWAYS: Pinot reads a lost segment again even where order matters (dedup, partial upsert)."""
    flush_rows: Annotated[Count | None, Field(alias="flushThresholdRows")] = None
    """Rows after which a segment is committed, over all partitions of a server; 0 for by size."""
    flush_time: Annotated[Period | None, Field(alias="flushThresholdTime")] = None
    """Age at which a segment is committed whatever its size."""
    flush_size: Annotated[Size | None, Field(alias="flushThresholdSegmentSize")] = None
    """Size that a segment should have; Pinot learns the rows from committed ones."""


_FIELDS: Final = {field.alias or name: name for name, field in RealtimeBlock.model_fields.items()}
KEYS: Final = tuple(_FIELDS)


def merge_block(
    block: DocumentNode, table: DocumentNode, refused: frozenset[KeyPath]
) -> tuple[JsonObject, list[Problem], list[Note]]:
    """Lay a `realtime:` block into a table config.

    :param table: a mapping whose parts have the right shapes.
    :param refused: paths whose values were refused as secrets and are left out.
    :returns: the table config to apply, the problems and the notes.
    """
    merging = _Merging(block, table, refused)
    if not isinstance(block.value, dict):
        fix = f"write {{}}, or some of {', '.join(KEYS)}"
        return merging.config, [block.problem("is no mapping", fix)], []
    merging.settle_streams()
    for key in block.value:
        merging.take(key)
    merging.judge_flush()
    return merging.config, merging.problems, merging.notes


def merged_from(block: DocumentNode, table: DocumentNode, *path: str | int) -> DocumentNode:
    """Where a value of the merged table config is written: in the block, or in the table config."""
    stream = block.value.get("stream") if isinstance(block.value, dict) else None
    if path[: len(STREAMS)] == STREAMS and isinstance(stream, dict) and path[-1] in stream:
        return block.at("stream", path[-1])
    for key, place in TABLE_PATHS.items():
        if path == place and key in block.value:
            return block.at(key)
    if path[: len(STREAMS)] == STREAMS and _at(table.value, FORMER_STREAM):
        return table.at(*FORMER_STREAM, *path[len(STREAMS) + 1 :])
    return table.at(*path)


class _Merging:
    """One block on its way into one table config."""

    def __init__(self, block: DocumentNode, table: DocumentNode, refused: frozenset[KeyPath]) -> None:
        self.block = block
        self.table = table
        self.refused = refused
        self.config = _copy(table.value)
        self.problems: list[Problem] = []
        self.notes: list[Note] = []
        self._streams: list[JsonObject] = []

    def settle_streams(self) -> None:
        """Put the streams where this Pinot and its newer settings want them."""
        former, streams = _at(self.config, FORMER_STREAM), _at(self.config, STREAMS)
        if former and streams:
            self.problems.append(
                self.table.at(*FORMER_STREAM).problem(
                    f"stands beside {'.'.join(STREAMS)}, and Pinot refuses both", "keep one of the two"
                )
            )
        if former:
            self.notes.append(
                self.table.at(*FORMER_STREAM).note(
                    f"is applied as {'.'.join(STREAMS)}, beside which Pinot's newer stream settings stand"
                )
            )
        self._streams = [*(streams or ()), *([former] if former and not streams else ())]
        if not self._streams:
            if not _at(self.block.value, ("stream",)):
                fix = "write stream: with streamType, stream.<type>.topic.name, … below it"
                self.problems.append(self.block.problem("the table has no stream", fix))
            self._streams = [{}]
        index = self.config.get("tableIndexConfig")
        if isinstance(index, dict):
            index.pop("streamConfigs", None)
        _put(self.config, STREAMS, self._streams)

    def take(self, key: str) -> None:
        """One key of the block."""
        place = self.block.at(key)
        if key not in _FIELDS:
            fix = did_you_mean(key, KEYS) or f"the keys are {', '.join(KEYS)}"
            self.problems.append(place.problem("is not a key of the realtime block", fix))
        elif key == "stream":
            self._take_stream(place)
        elif (text := self._single(place)) is not None:
            try:
                value = _reader(key).validate_python(text)
            except ValidationError as invalid:
                self.problems.append(place.problem(_reason(invalid)))
                return
            if key in STREAM_KEYS:
                self._into_streams(place, STREAM_KEYS[key], str(value))
            else:
                self._lay(place, TABLE_PATHS[key], value)

    def judge_flush(self) -> None:
        """Pinot looks at a size only where no rows are said; before 1.0, where they are said to be 0."""
        if "flushThresholdSegmentSize" not in self.block.value:
            return
        for stream in self._streams:
            said = next((str(stream[key]).strip() for key in _ROWS if key in stream), None)
            if said is None:
                stream[_ROWS[0]] = "0"
            elif said.strip("0"):
                reason = f"stands beside a number of rows, and Pinot looks at the {said} rows alone"
                fix = "keep one of the two, or write flushThresholdRows: 0"
                self.problems.append(self.block.at("flushThresholdSegmentSize").problem(reason, fix))
                return

    def _take_stream(self, place: DocumentNode) -> None:
        if not isinstance(place.value, dict):
            self.problems.append(place.problem("is no mapping", "write the stream's settings below it"))
            return
        if len(self._streams) > 1:
            reason = f"is one stream, and the table config has {len(self._streams)}"
            self.problems.append(place.problem(reason, "write its settings in the table config"))
            return
        for key in place.value:
            setting = place.at(key)
            text = None if setting.path in self.refused else self._single(setting)
            if text is None:
                continue
            if has_reference(text) and not is_reference(text):
                reason = (
                    "refers to the environment in the midst of a text or with a default, which Pinot takes "
                    "as it is"
                )
                fix = "let the whole value be one ${NAME}; Pinot fills it in"
                self.problems.append(setting.problem(reason, fix))
            else:
                self._into_streams(setting, key, text)

    def _into_streams(self, place: DocumentNode, key: str, value: str) -> None:
        for stream in self._streams:
            said = stream.setdefault(key, value)
            if _text(said) != value:
                self._contradicts(place, self._stream_place(key))
                return

    def _lay(self, place: DocumentNode, path: KeyPath, value: Any) -> None:
        said = _at(self.config, path)
        if said is None:
            _put(self.config, path, value)
        elif _text(said).lower() != _text(value).lower():
            self._contradicts(place, self.table.at(*path))

    def _contradicts(self, place: DocumentNode, other: DocumentNode) -> None:
        line = other.document.line(other.path)
        where = (
            f"line {line}" if other.document.file == place.document.file else f"{other.document.file}:{line}"
        )
        self.problems.append(
            place.problem(f"says something else than the table config in {where}", "keep one of the two")
        )

    def _stream_place(self, key: str) -> DocumentNode:
        former = self.table.at(*FORMER_STREAM)
        return former.at(key) if _at(self.table.value, FORMER_STREAM) else self.table.at(*STREAMS, 0, key)

    def _single(self, place: DocumentNode) -> str | None:
        """The value as written, None where it is none, after a problem."""
        text = place.text()
        if isinstance(place.value, dict | list):
            self.problems.append(place.problem("holds more than a single value"))
        elif text is None:
            self.problems.append(place.problem("has no value", "write a value or leave the key out"))
        return text


def _reader(key: str) -> TypeAdapter[Any]:
    annotation: Any = RealtimeBlock.model_fields[_FIELDS[key]].annotation
    return TypeAdapter(annotation)


def _reason(invalid: ValidationError) -> str:
    error = invalid.errors(include_input=False, include_url=False)[0]
    limits = {"greater_than_equal": "is negative", "less_than_equal": "is above 2147483647"}
    return limits.get(error["type"], error["msg"].removeprefix("Value error, "))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _at(value: Any, path: KeyPath) -> Any:
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _put(config: JsonObject, path: KeyPath, value: Any) -> None:
    *outer, last = path
    for step in outer:
        config = config.setdefault(str(step), {})
    config[str(last)] = value


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value
