"""An in-memory Pinot with the real rules of lineage, for tests of what stands on `pinot_assets.pinot.port`.

The contract suite (`tests/contract/test_pinot.py`) holds it to what the real thing does. Rules:
spec/lineage.md sections 2, 4, 5 and 6. What happens to a real cluster from time to time (a slow load, a
broken replica, a lost message, a lost reply) happens here when a test asks for it, see under "trouble".
"""

from __future__ import annotations

import io
import itertools
import re
import tarfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pinot_assets.errors import (
    PinotError,
    PinotNotFound,
    PinotUnreachable,
    PushRefused,
    SwitchConflict,
    SwitchStateUnknown,
)
from pinot_assets.pinot import (
    Lineage,
    LineageEntry,
    LineageState,
    PushMode,
    PushReport,
    ReadObject,
    Replicas,
    SegmentMetadata,
)
from pinot_assets.pinot.versions import takes_empty_outputs
from pinot_assets.session.receipt import Output

SERVERS = ("Server_127.0.0.1_7051", "Server_127.0.0.1_7052")
BROKERS = ("http://127.0.0.1:8091", "http://127.0.0.1:8092")


@dataclass
class _Table:
    config: dict[str, Any]
    segments: dict[str, Output] = field(default_factory=dict)
    metadata: dict[str, SegmentMetadata] = field(default_factory=dict)
    loading: Counter[str] = field(default_factory=Counter)  # looks until ONLINE
    broken: set[tuple[str, str]] = field(default_factory=set)
    entries: dict[str, LineageEntry] = field(default_factory=dict)
    ending: set[str] = field(default_factory=set)  # entries whose end waits in the controller
    routing: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def lineage(self) -> Lineage:
        return Lineage(tuple(sorted(self.entries.values(), key=lambda entry: entry.timestamp_ms)))

    @property
    def visible(self) -> frozenset[str]:
        return frozenset(self.lineage.visible(self.segments))

    def state(self, segment: str, server: str) -> str:
        if (segment, server) in self.broken:
            return "ERROR"
        return "OFFLINE" if self.loading[segment] else "ONLINE"

    def is_online(self, segment: str) -> bool:
        return any(self.state(segment, server) == "ONLINE" for server in SERVERS)

    @property
    def keeps_two_snapshots(self) -> bool:
        batch = self.config.get("ingestionConfig", {}).get("batchIngestionConfig", {})
        return str(batch.get("segmentIngestionType", "APPEND")).upper() == "REFRESH"


class FakePinot:
    """See the module docstring; for the methods see `pinot_assets.pinot.port.Pinot`.

    :param version: the release whose ways it has (`pinot_assets.pinot.versions`).
    """

    def __init__(self, *, version: str = "1.5.1") -> None:
        self.calls: list[str] = []
        self._version = version
        self._tables: dict[str, _Table] = {}
        self._schemas: dict[str, dict[str, Any]] = {}
        self.realtime: dict[str, dict[str, Any]] = {}  # configs of REALTIME tables, by raw name
        self._clock = itertools.count(time.time_ns() // 1_000_000)  # entries age beside a real clock
        self._before: dict[str, list[Callable[[], None]]] = {}
        self._after: dict[str, list[Callable[[], None]]] = {}
        self._refused: dict[str, str] = {}
        self._slow: dict[str, int] = {}
        self._deaf: set[str] = set()

    # --- trouble ---------------------------------------------------------------------------------

    def lose_call(self, method: str) -> None:
        """The next call of that name never arrives, and its caller cannot know: SwitchStateUnknown."""
        self._before.setdefault(method, []).append(_lost)

    def lose_reply(self, method: str) -> None:
        """The next call of that name happens, and its caller cannot know: SwitchStateUnknown."""
        self._after.setdefault(method, []).append(_lost)

    def refuse_connection(self, method: str) -> None:
        """The next call of that name finds no connection: PinotUnreachable."""
        self._before.setdefault(method, []).append(_unreachable)

    def before(self, method: str, action: Callable[[], None]) -> None:
        """Do this just before the next call of that name (somebody else at work, a crash)."""
        self._before.setdefault(method, []).append(action)

    def after(self, method: str, action: Callable[[], None]) -> None:
        """Do this just after the next call of that name had its effect."""
        self._after.setdefault(method, []).append(action)

    def refuse_push(self, segment: str, reason: str = "storage quota exceeded") -> None:
        """Refuse every upload of that segment, until `accept_push`."""
        self._refused[segment] = reason

    def accept_push(self, segment: str) -> None:
        """Take `refuse_push` back."""
        del self._refused[segment]

    def load_slowly(self, segment: str, looks: int) -> None:
        """When pushed, the segment becomes ONLINE at the `looks`-th look at its replicas."""
        self._slow[segment] = looks

    def break_replica(self, table: str, segment: str, server: str = SERVERS[0]) -> None:
        """Put one replica of a segment, there or not yet, into ERROR."""
        self._table(table).broken.add((segment, server))

    def mend_replica(self, table: str, segment: str, server: str = SERVERS[0]) -> None:
        """Take `break_replica` back."""
        self._table(table).broken.remove((segment, server))

    def deafen_broker(self, broker: str) -> None:
        """From now on this broker gets no rebuild messages; `rebuild_routing` still works."""
        self._deaf.add(broker)

    # --- what is there ---------------------------------------------------------------------------

    def all_segments(self, table: str) -> frozenset[str]:
        with self._call("all_segments"):
            return frozenset(self._table(table).segments)

    def visible_segments(self, table: str) -> frozenset[str]:
        with self._call("visible_segments"):
            return self._table(table).visible

    def online_replicas(self, table: str, names: Collection[str]) -> Replicas:
        with self._call("online_replicas"):
            found = self._table(table)
            self._load(table, names)
            return {
                name: {server: found.state(name, server) for server in SERVERS}
                if name in found.segments
                else {}
                for name in names
            }

    def segment_crcs(self, table: str) -> Mapping[str, int]:
        with self._call("segment_crcs"):
            return {name: output.crc for name, output in self._table(table).segments.items()}

    def segment_metadata(self, table: str, name: str) -> SegmentMetadata:
        with self._call("segment_metadata"):
            metadata = self._table(table).metadata
            if name not in metadata:
                raise PinotNotFound(f"no segment {name} in table {table}")
            return metadata[name]

    def rows_on_servers(self, table: str, names: Collection[str]) -> Mapping[str, Mapping[str, int]]:
        with self._call("rows_on_servers"):
            found = self._table(table)
            return {
                name: {
                    server: found.segments[name].rows
                    for server in SERVERS
                    if name in found.segments and found.state(name, server) == "ONLINE"
                }
                for name in names
            }

    def version(self) -> str:
        with self._call("version"):
            return self._version

    def table_bytes(self, table: str) -> int:
        with self._call("table_bytes"):
            return sum(o.tar_bytes for o in self._table(table).segments.values()) * len(SERVERS)

    # --- push and delete -------------------------------------------------------------------------

    def push(
        self, table: str, outputs: Sequence[Output], *, read: ReadObject, mode: PushMode | None = None
    ) -> PushReport:
        with self._call("push"):
            found = self._table(table)
            for output in outputs:
                there = found.segments.get(output.segment)
                if there is not None and there.crc != output.crc:
                    raise PushRefused(f"{output.segment} is there already with another content")
            new = [output for output in outputs if output.segment not in found.segments]
            for output in new:
                if output.segment in self._refused:
                    raise PushRefused(f"{output.segment} was refused", why=self._refused[output.segment])
                metadata = _metadata(output, read(output.metadata_uri), next(self._clock))
                found.metadata[output.segment] = metadata
                found.segments[output.segment] = output
                found.loading[output.segment] = self._slow.pop(output.segment, 0)
                self._tell_brokers(table)
            return PushReport(
                pushed=tuple(output.segment for output in new),
                skipped=tuple(o.segment for o in outputs if o not in new),
                mode=mode or PushMode.METADATA,
                fallback=None,
                seconds=0.0,
            )

    def delete_segments(self, table: str, names: Collection[str]) -> None:
        if not names:
            raise ValueError("an empty list of segments to delete")
        with self._call("delete_segments"):
            self._delete(table, names)

    # --- lineage ---------------------------------------------------------------------------------

    def lineage(self, table: str) -> Lineage:
        with self._call("lineage"):
            self._load(table, ())
            return self._table(table).lineage

    def start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        self._check_names(segments_from, segments_to)
        with self._call("start_replace_segments"):
            found = self._startable(table, segments_from, segments_to)
            if found.lineage.overlapping(segments_from, segments_to):
                raise SwitchConflict("another entry overlaps")
            return self._enter(found, segments_from, segments_to)

    def force_start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        self._check_names(segments_from, segments_to)
        with self._call("force_start_replace_segments"):
            found = self._startable(table, segments_from, segments_to)
            doomed: set[str] = set()
            for entry in tuple(found.entries.values()):
                if entry.state is LineageState.REVERTED:
                    doomed |= entry.segments_to
                elif entry.state is LineageState.COMPLETED:
                    if found.keeps_two_snapshots and entry.segments_to == frozenset(segments_from):
                        doomed |= entry.segments_from
                elif entry.overlaps(segments_from, segments_to):
                    rest = entry.segments_to - set(segments_to)
                    del found.entries[entry.id]
                    if rest:
                        self._put(found, replace(entry, segments_to=rest, state=LineageState.REVERTED))
                    doomed |= rest
            entry_id = self._enter(found, segments_from, segments_to)
            self._delete(table, doomed)
            return entry_id

    def end_replace_segments(self, table: str, entry_id: str) -> None:
        with self._call("end_replace_segments"):
            entry = self._entry(table, entry_id)
            if entry.state is LineageState.COMPLETED:
                return
            if entry.state is LineageState.REVERTED:
                raise SwitchConflict(f"entry {entry_id} is REVERTED")
            if not entry.segments_to <= self._table(table).segments.keys():
                raise SwitchConflict("an output is not in the table")
            self._table(table).ending.add(entry_id)
            self._load(table, ())
            if entry_id in self._table(table).ending:
                # Pinot waits on its own; the caller's deadline is over long before.
                _lost()

    def revert_replace_segments(self, table: str, entry_id: str) -> None:
        with self._call("revert_replace_segments"):
            if self._entry(table, entry_id).state is LineageState.IN_PROGRESS:
                raise SwitchConflict(f"entry {entry_id} is IN_PROGRESS")
            self._revert(table, entry_id)

    def force_revert_replace_segments(self, table: str, entry_id: str) -> None:
        with self._call("force_revert_replace_segments"):
            self._revert(table, entry_id)

    # --- brokers ---------------------------------------------------------------------------------

    def brokers(self, table: str) -> Sequence[str]:
        with self._call("brokers"):
            self._table(table)
            return BROKERS

    def broker_visible_segments(self, broker: str, table: str) -> frozenset[str]:
        with self._call("broker_visible_segments"):
            found = self._table(table)
            self._load(table, ())
            return frozenset(s for s in found.routing.get(broker, ()) if found.is_online(s))

    def broker_rows(self, broker: str, table: str) -> int:
        with self._call("broker_rows"):
            found = self._table(table)
            routed = [s for s in found.routing.get(broker, ()) if s in found.segments]
            if not all(found.is_online(s) for s in routed):
                raise PinotError("a segment that the query needs is not ONLINE")
            return sum(found.segments[s].rows for s in routed)

    def rebuild_routing(self, broker: str, table: str) -> None:
        with self._call("rebuild_routing"):
            self._table(table).routing[broker] = self._table(table).visible

    # --- schema and table config -----------------------------------------------------------------

    def get_schema(self, name: str) -> dict[str, Any] | None:
        with self._call("get_schema"):
            return self._schemas.get(name)

    def put_schema(self, schema: Mapping[str, Any]) -> None:
        with self._call("put_schema"):
            self._schemas[schema["schemaName"]] = dict(schema)

    def delete_schema(self, name: str) -> None:
        with self._call("delete_schema"):
            if self._schemas.pop(name, None) is None:
                raise PinotNotFound(f"no schema {name}")

    def get_table_config(self, table: str) -> dict[str, Any] | None:
        with self._call("get_table_config"):
            return self._tables[table].config if table in self._tables else None

    def get_realtime_config(self, table: str) -> dict[str, Any] | None:
        with self._call("get_realtime_config"):
            return self.realtime.get(table)

    def create_table(self, config: Mapping[str, Any]) -> None:
        with self._call("create_table"):
            name = _raw_name(config)
            if name in self._tables:
                raise PinotError(f"table {name} exists")
            self._tables[name] = _Table({**config, "tableName": f"{name}_OFFLINE"})

    def update_table(self, config: Mapping[str, Any]) -> None:
        with self._call("update_table"):
            name = _raw_name(config)
            self._table(name).config = {**config, "tableName": f"{name}_OFFLINE"}

    def delete_table(self, table: str) -> None:
        with self._call("delete_table"):
            self._table(table)
            del self._tables[table]

    # --- inside ----------------------------------------------------------------------------------

    @contextmanager
    def _call(self, method: str) -> Iterator[None]:
        self.calls.append(method)
        _run_next(self._before, method)
        yield
        _run_next(self._after, method)

    def _table(self, table: str) -> _Table:
        if table not in self._tables:
            raise PinotNotFound(f"no table {table}")
        return self._tables[table]

    def _entry(self, table: str, entry_id: str) -> LineageEntry:
        entry = self._table(table).entries.get(entry_id)
        if entry is None:
            raise SwitchConflict(f"no entry {entry_id}")
        return entry

    def _put(self, table: _Table, entry: LineageEntry) -> None:
        table.entries[entry.id] = replace(entry, timestamp_ms=next(self._clock))

    def _check_names(self, segments_from: Collection[str], segments_to: Collection[str]) -> None:
        if not segments_from and not segments_to:
            raise ValueError("a replacement of nothing by nothing")
        if any("," in name or not name for name in (*segments_from, *segments_to)):
            raise ValueError("a name that the lineage node would tear in two")

    def _startable(self, table: str, segments_from: Collection[str], segments_to: Collection[str]) -> _Table:
        found = self._table(table)
        if not segments_to and not takes_empty_outputs(self._version):
            raise PinotError("'segmentsTo' should not be null or empty")
        if not found.visible.issuperset(segments_from):
            raise SwitchConflict("a source is not there or not visible")
        if not found.visible.isdisjoint(segments_to):
            raise SwitchConflict("an output is visible already")
        return found

    def _enter(self, table: _Table, segments_from: Collection[str], segments_to: Collection[str]) -> str:
        entry_id = str(uuid.uuid4())
        names = frozenset(segments_from), frozenset(segments_to)
        self._put(table, LineageEntry(entry_id, *names, LineageState.IN_PROGRESS, 0))
        return entry_id

    def _revert(self, table: str, entry_id: str) -> None:
        found, entry = self._table(table), self._entry(table, entry_id)
        if entry.state is LineageState.REVERTED:
            raise SwitchConflict(f"entry {entry_id} is REVERTED")
        for other in found.entries.values():
            if other.state is not LineageState.REVERTED and other.segments_from & entry.segments_to:
                raise SwitchConflict(f"entry {other.id} builds on it")
        if entry.state is LineageState.COMPLETED and not entry.segments_from <= found.segments.keys():
            raise SwitchConflict("a source is gone")
        self._put(found, replace(entry, state=LineageState.REVERTED))
        found.ending.discard(entry_id)
        self._delete(table, entry.segments_to)
        self._tell_brokers(table)

    def _delete(self, table: str, names: Collection[str]) -> None:
        found = self._table(table)
        for name in names:
            found.segments.pop(name, None)
            found.metadata.pop(name, None)
        self._tell_brokers(table)

    def _load(self, table: str, looked_at: Collection[str]) -> None:
        """One look at some segments; ends that only waited for them happen now."""
        found = self._table(table)
        found.loading.subtract(name for name in looked_at if found.loading[name] > 0)
        for entry_id in tuple(found.ending):
            entry = found.entries[entry_id]
            if all(found.is_online(name) for name in entry.segments_to):
                found.ending.discard(entry_id)
                self._put(found, replace(entry, state=LineageState.COMPLETED))
                self._tell_brokers(table)

    def _tell_brokers(self, table: str) -> None:
        for broker in BROKERS:
            if broker not in self._deaf:
                self._table(table).routing[broker] = self._table(table).visible


def _run_next(actions: dict[str, list[Callable[[], None]]], method: str) -> None:
    if waiting := actions.get(method):
        waiting.pop(0)()


def _lost() -> None:
    raise SwitchStateUnknown("the call was sent and no answer came")


def _unreachable() -> None:
    raise PinotUnreachable("no connection")


def _raw_name(config: Mapping[str, Any]) -> str:
    return str(config["tableName"]).removesuffix("_OFFLINE")


def _metadata(output: Output, metadata_tar: bytes, now_ms: int) -> SegmentMetadata:
    return SegmentMetadata(
        segment=output.segment,
        crc=output.crc,
        total_docs=output.rows,
        custom=_custom_map(metadata_tar),
        download_url=f"http://127.0.0.1:9000/segments/{output.segment}",
        start_ms=output.start_ms,
        end_ms=output.end_ms,
        push_ms=now_ms,
    )


def _custom_map(metadata_tar: bytes) -> dict[str, str]:
    """The `custom.*` lines of `metadata.properties`; none where a test stages no real metadata (`b""`)."""
    if not metadata_tar:
        return {}
    with tarfile.open(fileobj=io.BytesIO(metadata_tar)) as tar:
        (member,) = (m for m in tar.getmembers() if m.name.endswith("/metadata.properties"))
        file = tar.extractfile(member)
        assert file is not None
        lines = file.read().decode().splitlines()
    pairs = (line.split(" = ", 1) for line in lines if line.startswith("custom."))
    return {key.removeprefix("custom."): _unescaped(value) for key, value in pairs}


def _unescaped(value: str) -> str:
    """Text of a properties file: `\\u00E9` and `\\=` as what they stand for."""
    return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else m[2], value)
