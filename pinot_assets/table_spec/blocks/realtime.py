"""The `realtime:` block: short keys for settings that a REALTIME table config has in distant places.

The block is merged into the table config; what it does not know stays there as written. If both set the same
thing differently, neither wins: that is a problem. Source: docs/design/realtime.md#s2, StreamIngestionConfig,
StreamConfig and TableConfigUtils of Pinot 1.5.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.core.untrusted import listed
from pinot_assets.pinot.table_config import setting
from pinot_assets.source.settings import is_reference
from pinot_assets.table_spec.yaml.document import DocumentNode, KeyPath, Note, Problem
from pinot_assets.table_spec.yaml.values import AnyCase, Count, Flag, Period, Size, has_reference, reason_of

STREAM_INGESTION: Final = ("ingestionConfig", "streamIngestionConfig")
STREAMS: Final = (*STREAM_INGESTION, "streamConfigMaps")
FORMER_STREAM: Final = ("tableIndexConfig", "streamConfigs")
"""Where streams were before Pinot had the place above; Pinot refuses a table that uses both."""

FLUSH: Final = "realtime.segment.flush.threshold."
STREAM_KEYS: Final = {
    "flushThresholdRows": f"{FLUSH}rows",
    "flushThresholdTime": f"{FLUSH}time",
    "flushThresholdSegmentSize": f"{FLUSH}segment.size",
}
"""Keys of the block that are settings of the stream, with the names that they have there."""

_ROWS: Final = (STREAM_KEYS["flushThresholdRows"], f"{FLUSH}size", f"{FLUSH}size.llc")
"""The stream's key for the number of rows, then the former names of that key."""

TABLE_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "peerSegmentDownloadScheme": ("segmentsConfig", "peerSegmentDownloadScheme"),
    "pauselessConsumptionEnabled": (*STREAM_INGESTION, "pauselessConsumptionEnabled"),
    "disasterRecoveryMode": (*STREAM_INGESTION, "disasterRecoveryMode"),
}
"""Keys of the block that are settings of the table, with the paths that they have there."""


class RealtimeBlock(BaseModel):
    """Settings of a REALTIME table that have a short key: its stream, its commits, its repair.

    The table config may have all of them instead.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    stream: Mapping[str, str] = Field(default_factory=dict)
    """The stream's settings, as in Pinot's streamConfigMaps; secrets as ${NAME} of Pinot's environment."""
    peer_scheme: Annotated[
        Annotated[Literal["http", "https"], AnyCase()] | None, Field(alias="peerSegmentDownloadScheme")
    ] = None
    """Servers download segments from each other, and a commit succeeds while the deep store is down."""
    pauseless: Annotated[Flag | None, Field(alias="pauselessConsumptionEnabled")] = None
    """The next segment is consumed while this one is built and uploaded; Pinot 1.4 or newer."""
    recovery: Annotated[
        Annotated[Literal["DEFAULT", "ALWAYS"], AnyCase()] | None, Field(alias="disasterRecoveryMode")
    ] = None
    """ALWAYS: Pinot reads a lost segment again even where order matters (dedup, partial upsert)."""
    flush_rows: Annotated[Count | None, Field(alias="flushThresholdRows")] = None
    """Rows after which a segment is committed, over all partitions of a server; 0: by size."""
    flush_time: Annotated[Period | None, Field(alias="flushThresholdTime")] = None
    """Age at which a segment is committed whatever its size."""
    flush_size: Annotated[Size | None, Field(alias="flushThresholdSegmentSize")] = None
    """Size that a segment should have; Pinot estimates the rows from committed segments."""


_FIELDS: Final = {field.alias or name: name for name, field in RealtimeBlock.model_fields.items()}
KEYS: Final = tuple(_FIELDS)


def merge_block(
    block: DocumentNode, table: DocumentNode, refused: frozenset[KeyPath]
) -> tuple[JsonObject, list[Problem], list[Note]]:
    """Merge a `realtime:` block into a table config.

    :param table: a mapping whose parts have the right shapes.
    :param refused: paths whose values were refused as secrets and are left out.
    :returns: the table config to apply, the problems and the notes.
    """
    merging = _Merging(block, table, refused)
    if not isinstance(block.value, dict):
        fix = f"write {{}}, or some of {', '.join(KEYS)}"
        return merging.config, [block.problem("is not a mapping", fix)], []
    merging.settle_streams()
    for key in block.value:
        merging.take(key)
    merging.judge_flush()
    return merging.config, merging.problems, merging.notes


def merged_from(block: DocumentNode, table: DocumentNode, *path: str | int) -> DocumentNode:
    """Return where a value of the merged table config is written: in the block, or in the table config."""
    stream = block.mapping.get("stream")
    if path[: len(STREAMS)] == STREAMS and isinstance(stream, dict) and path[-1] in stream:
        return block.at("stream", path[-1])
    for key, place in TABLE_PATHS.items():
        if path == place and key in block.mapping:
            return block.at(key)
    if path[: len(STREAMS)] == STREAMS and setting(table.value, *FORMER_STREAM):
        return table.at(*FORMER_STREAM, *path[len(STREAMS) + 1 :])
    return table.at(*path)


class _Merging:
    """Merges one block into one table config."""

    def __init__(self, block: DocumentNode, table: DocumentNode, refused: frozenset[KeyPath]) -> None:
        self.block = block
        self.table = table
        self.refused = refused
        self.config: JsonObject = deepcopy(table.mapping)
        self.problems: list[Problem] = []
        self.notes: list[Note] = []
        self._streams: list[JsonObject] = []

    def settle_streams(self) -> None:
        """Move the streams to the place that Pinot's newer stream settings need."""
        former, streams = setting(self.config, *FORMER_STREAM), setting(self.config, *STREAMS)
        if former:
            place, where = self.table.at(*FORMER_STREAM), ".".join(STREAMS)
            if streams:
                reason = f"is set together with {where}, and Pinot refuses that"
                self.problems.append(place.problem(reason, "keep one of the two"))
            text = f"is applied as {where}, where Pinot's newer stream settings are"
            self.notes.append(place.note(text))
        elif not streams and not self.block.mapping.get("stream"):
            fix = "write stream: with streamType, stream.<type>.topic.name, … below it"
            self.problems.append(self.block.problem("the table has no stream", fix))
        self._streams = list(listed(streams or [former or {}], dict))
        self.config["tableIndexConfig"].pop("streamConfigs", None)
        _put(self.config, STREAMS, self._streams)

    def take(self, key: str) -> None:
        """Merge one key of the block."""
        place = self.block.at(key)
        if key not in _FIELDS:
            self.problems.append(place.unknown_key("the realtime block", KEYS))
        elif key == "stream":
            self._take_stream(place)
        elif problem := place.no_single_value():
            self.problems.append(problem)
        else:
            try:
                value = getattr(RealtimeBlock.model_validate({key: place.text()}), _FIELDS[key])
            except ValidationError as invalid:
                self.problems.append(place.problem(reason_of(invalid.errors(include_input=False)[0])))
                return
            if key in STREAM_KEYS:
                self._into_streams(place, STREAM_KEYS[key], str(value))
                return
            path = TABLE_PATHS[key]
            if (said := setting(self.config, *path)) is None:
                _put(self.config, path, value)
            elif _text(said).lower() != _text(value).lower():
                self._contradicts(place, self.table.at(*path))

    def judge_flush(self) -> None:
        """Set rows to 0 beside a size: Pinot uses a size only without rows; before 1.0, only with 0 rows."""
        if "flushThresholdSegmentSize" not in self.block.mapping:
            return
        for stream in self._streams:
            if (said := next((str(stream[key]).strip() for key in _ROWS if key in stream), None)) is None:
                stream[_ROWS[0]] = "0"
            elif said.strip("0"):
                reason = f"is set together with a number of rows, and Pinot uses only the {said} rows"
                fix = "keep one of the two, or write flushThresholdRows: 0"
                self.problems.append(self.block.at("flushThresholdSegmentSize").problem(reason, fix))
                return

    def _take_stream(self, place: DocumentNode) -> None:
        if not isinstance(place.value, dict):
            self.problems.append(place.problem("is not a mapping", "write the stream's settings below it"))
            return
        if len(self._streams) > 1:
            reason = f"is one stream, and the table config has {len(self._streams)}"
            self.problems.append(place.problem(reason, "write its settings in the table config"))
            return
        for key in place.value:
            inner = place.at(key)
            text = inner.text() or ""
            if inner.path in self.refused:
                continue
            if problem := inner.no_single_value():
                self.problems.append(problem)
            elif has_reference(text) and not is_reference(text):
                reason = (
                    "refers to the environment inside a text or with a default, which Pinot reads as it is"
                )
                fix = "make the whole value one ${NAME}; Pinot replaces it"
                self.problems.append(inner.problem(reason, fix))
            else:
                self._into_streams(inner, key, text)

    def _into_streams(self, place: DocumentNode, key: str, value: str) -> None:
        for stream in self._streams:
            said = stream.setdefault(key, value)
            if _text(said) != value:
                path = FORMER_STREAM if setting(self.table.value, *FORMER_STREAM) else (*STREAMS, 0)
                self._contradicts(place, self.table.at(*path, key))
                return

    def _contradicts(self, place: DocumentNode, other: DocumentNode) -> None:
        line = other.document.line(other.path)
        where = (
            f"line {line}" if other.document.file == place.document.file else f"{other.document.file}:{line}"
        )
        self.problems.append(
            place.problem(f"differs from the table config in {where}", "keep one of the two")
        )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _put(config: JsonObject, path: KeyPath, value: JsonValue) -> None:
    *outer, last = path
    for step in outer:
        config = config.setdefault(str(step), {})
    config[str(last)] = value
