"""An in-memory Pinot with the real rules of lineage: `pinot_assets.pinot.api` for tests.

The contract suite (`tests/contract`) holds it to what the real thing does. Rules:
docs/design/lineage.md#visibility, #startreplacesegments to #revertreplacesegments and
#retention-and-clean-up, those that change many entries at once in `lineage`. What happens to a real cluster
from time to time (a slow load, a broken replica, a lost message, a lost reply) happens here when a test asks
for it, see under "trouble".
"""

from __future__ import annotations

import io
import itertools
import re
import tarfile
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from fakes.pinot.lineage import (
    HOUR_MS,
    SERVERS,
    Entries,
    FakeTable,
    after_retention,
    give_way_to_force,
    give_way_to_nobody,
    raw_name,
    refused_start,
    without,
)
from fakes.pinot.releases import dialect_of
from fakes.pinot.reloads import is_compatible, loaded_with

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import (
    PinotError,
    PinotNotFound,
    PinotUnreachable,
    PushRefused,
    SpecError,
    SwitchConflict,
    SwitchStateUnknown,
)
from pinot_assets.pinot import (
    Lineage,
    LineageEntry,
    LineageState,
    NoResult,
    PushMode,
    PushReport,
    QueryResult,
    Replicas,
    SegmentMetadata,
    ServerDisk,
    StagedObjects,
)
from pinot_assets.pinot.client.data_table import DataTable
from pinot_assets.pinot.held_segment import HeldSegment
from pinot_assets.pinot.lineage import why_not_end, why_not_revert
from pinot_assets.snapshot.receipt import Output

BROKERS = ("http://127.0.0.1:8091", "http://127.0.0.1:8092")

GiveWay = Callable[[FakeTable, Collection[str], Collection[str], int], tuple[Entries, set[str]]]


def _count(sql: str, segments: Sequence[Output]) -> DataTable:
    rows = sum(output.rows for output in segments)
    return DataTable((("count(*)", "LONG"),), ((rows,),), {}, len(segments), rows, False)


def _whole_count(sql: str, segments: Sequence[Output]) -> QueryResult:
    rows = sum(output.rows for output in segments)
    return QueryResult(("count(*)",), ("LONG",), ((rows,),), 1, rows)


class FakePinot:
    """See the module docstring; for the methods see `pinot_assets.pinot.api.PinotClient`.

    :param version: the release whose ways it has (`fakes.pinot.releases`).
    :ivar hurried: whether callers' deadlines are so short that what Pinot answers late is not heard.
    """

    def __init__(self, *, version: str = "1.5.1") -> None:
        self.calls: list[str] = []
        self.hurried = False
        self._dialect = dialect_of(version)
        self._tables: dict[str, FakeTable] = {}
        self._schemas: dict[str, JsonObject] = {}
        self.realtime: dict[str, JsonObject] = {}  # configs of REALTIME tables, by raw name
        self.answer: Callable[[str, Sequence[Output]], DataTable] = _count
        """What a server says to a query of segments; as it is, their rows, whatever is asked."""
        self.broker_answer: Callable[[str, Sequence[Output]], QueryResult] = _whole_count
        """What a broker says to a query of the segments that it routes to; as it is, their rows."""
        self._clock = itertools.count(time.time_ns() // 1_000_000)  # entries age beside a real clock
        self._before: dict[str, list[Callable[[], None]]] = {}
        self._after: dict[str, list[Callable[[], None]]] = {}
        self._refused: dict[str, str] = {}
        self._slow: dict[str, int] = {}
        self._halves = False
        self._deaf: set[str] = set()
        self._stopped: set[str] = set()
        self._noticed: set[str] = set()
        self._slow_on: dict[tuple[str, str, str], int] = {}
        self.loaded_crcs: dict[tuple[str, str], int] = {}
        """(server, segment) → another CRC than the one that was pushed."""
        self._jobs: dict[str, int] = {}
        self._forgets_jobs = False
        self._reloads_slowly: dict[str, int] = {}
        self.unaskable: SpecError | None = None
        """Why servers cannot be asked with the settings of this machine."""

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

    def forget_trouble(self) -> None:
        """What was to happen before or after a call happens no more."""
        self._before.clear()
        self._after.clear()

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

    def halve_push(self) -> None:
        """Of what the next push sends the first half arrives and of the rest the metadata alone, as where a
        controller dies over it; its caller cannot know: SwitchStateUnknown."""
        self._halves = True

    def load_slowly(self, segment: str, looks: int) -> None:
        """When pushed, the segment becomes ONLINE at the `looks`-th look at its replicas."""
        self._slow[segment] = looks

    def load_slowly_on(self, table: str, segment: str, server: str, looks: int) -> None:
        """This replica is ONLINE at the `looks`-th look from now on."""
        self._slow_on[table, segment, server] = looks

    def break_replica(self, table: str, segment: str, server: str = SERVERS[0]) -> None:
        """Put one replica of a segment, there or not yet, into ERROR."""
        self._table(table).broken.add((segment, server))

    def mend_replica(self, table: str, segment: str, server: str = SERVERS[0]) -> None:
        """Take `break_replica` back."""
        self._table(table).broken.remove((segment, server))

    def reload_slowly(self, segment: str, looks: int) -> None:
        """The next reload of the segment is over at the `looks`-th look at its job."""
        self._reloads_slowly[segment] = looks

    def forget_jobs(self) -> None:
        """Pinot stores no job of reloads from now on, as 0.11 where two are stored at a time."""
        self._forgets_jobs = True

    def fail_to_load(self, table: str, segment: str) -> None:
        """Servers keep the segment as it is when they are told to reload it."""
        self._table(table).stuck.add(segment)

    def stop_server(self, server: str = SERVERS[0]) -> None:
        """The server is down, and ZooKeeper has noticed it."""
        self._stopped.add(server)
        self._noticed.add(server)

    def cut_off_server(self, server: str = SERVERS[0]) -> None:
        """The server answers nobody, and its segments count as ONLINE still."""
        self._stopped.add(server)

    def start_server(self, server: str = SERVERS[0]) -> None:
        """It is up again."""
        self._stopped.discard(server)
        self._noticed.discard(server)

    def deafen_broker(self, broker: str) -> None:
        """From now on this broker gets no rebuild messages; `rebuild_routing` still works."""
        self._deaf.add(broker)

    # --- others at work, and time ------------------------------------------------------------------

    def before_lineage_write(self, table: str, action: Callable[[], None]) -> None:
        """Do this when the next start has checked everything and is about to write (another controller)."""
        self.before("the write of the lineage", action)

    def put_entry(self, table: str, entry: LineageEntry) -> None:
        """Write an entry into the lineage, as another controller does."""
        self._table(table).entries[entry.id] = entry
        self._table(table).has_node = True

    def fix_time_boundary(self, table: str, boundary_ms: int) -> None:
        """Set the time boundary by hand, as `POST /tables/{table}/timeBoundary` does."""
        self._table(table).fixed_boundary_ms = boundary_ms

    def age_entry(self, table: str, entry_id: str, hours: float) -> None:
        """Make the last write of an entry's state so much longer ago."""
        entry = self._table(table).entries[entry_id]
        aged = entry.timestamp_ms - int(hours * HOUR_MS)
        self.put_entry(table, replace(entry, timestamp_ms=aged))

    def run_retention(self, table: str) -> None:
        """One pass of Pinot's retention over the lineage of the table."""
        fake_table = self._table(table)
        fake_table.entries, doomed = after_retention(fake_table, next(self._clock), self._dialect)
        self._delete(table, doomed)

    def leave_metadata(self, table: str, output: Output) -> None:
        """Put the metadata of a segment there, and nothing else of it: an upload that was cut short."""
        self._table(table).metadata[output.segment] = _metadata(output, b"", next(self._clock))

    def listed_segments(self, table: str) -> set[str]:
        """Names in Pinot's own listing."""
        return set(self._table(table).segments)

    # --- what is there ---------------------------------------------------------------------------

    def all_segments(self, table: str) -> frozenset[str]:
        with self._call("all_segments"):
            return frozenset(self._table(table).segments)

    def visible_segments(self, table: str) -> frozenset[str]:
        with self._call("visible_segments"):
            return self._table(table).visible

    def online_replicas(self, table: str, names: Collection[str]) -> Replicas:
        with self._call("online_replicas"):
            fake_table = self._table(table)
            self._load(table, names)
            return {
                name: {
                    server: "OFFLINE"
                    if self._is_behind(table, name, server)
                    else fake_table.state(name, server)
                    for server in SERVERS
                }
                if name in fake_table.segments
                else {}
                for name in names
            }

    def _is_behind(self, table: str, name: str, server: str) -> bool:
        looks = self._slow_on.get((table, name, server), 0)
        self._slow_on[table, name, server] = looks - 1
        return server in self._noticed or looks > 1

    def segment_crcs(self, table: str) -> Mapping[str, int]:
        with self._call("segment_crcs"):
            return {name: output.crc for name, output in self._table(table).segments.items()}

    def segment_metadata(self, table: str, name: str) -> SegmentMetadata:
        with self._call("segment_metadata"):
            metadata = self._table(table).metadata
            if name not in metadata:
                raise PinotNotFound(f"no segment {name} in table {table}")
            return metadata[name]

    def crcs_on_servers(
        self, table: str, servers: Collection[str]
    ) -> Mapping[str, Mapping[str, int] | PinotError]:
        with self._call("crcs_on_servers"):
            fake_table = self._table(table)
            return {
                server: _unanswered(server)
                if server in self._stopped
                else {
                    name: self.loaded_crcs.get((server, name), output.crc)
                    for name, output in fake_table.segments.items()
                    if fake_table.state(name, server) == "ONLINE"
                }
                for server in servers
            }

    def rows_on_servers(
        self, table: str, names: Collection[str], servers: Collection[str]
    ) -> Mapping[str, Mapping[str, int]]:
        with self._call("rows_on_servers"):
            fake_table = self._table(table)
            if away := self._stopped.intersection(servers):
                raise _unanswered(min(away))
            return {
                name: {
                    server: fake_table.segments[name].rows
                    for server in SERVERS
                    if server in servers
                    and name in fake_table.segments
                    and fake_table.state(name, server) == "ONLINE"
                }
                for name in names
            }

    def held_segments(
        self, table: str, names: Collection[str], servers: Collection[str]
    ) -> Mapping[str, Mapping[str, HeldSegment]]:
        with self._call("held_segments"):
            fake_table = self._table(table)
            return {
                name: {
                    server: fake_table.held[name]
                    for server in SERVERS
                    if server in servers
                    and server not in self._stopped
                    and name in fake_table.segments
                    and fake_table.state(name, server) == "ONLINE"
                }
                for name in names
            }

    def needs_reload(self, table: str) -> bool | None:
        with self._call("needs_reload"):
            fake_table = self._table(table)
            if not self._dialect.tells_what_to_reload:
                return None
            return any(
                fake_table.held[name] != self._loaded(table, output)
                for name, output in fake_table.segments.items()
            )

    def reload_segment(self, table: str, name: str) -> str:
        with self._call("reload_segment"):
            fake_table = self._table(table)
            if name not in fake_table.segments:
                raise PinotNotFound(f"no segment {name}")
            if name not in fake_table.stuck:
                fake_table.held[name] = self._loaded(table, fake_table.segments[name])
            job = str(uuid.uuid4())
            if not self._forgets_jobs:
                self._jobs[job] = self._reloads_slowly.pop(name, 0)
            return job

    def ask_if_reloaded(self, job: str) -> bool:
        with self._call("ask_if_reloaded"):
            if job not in self._jobs:
                raise PinotNotFound(f"no job {job}")
            self._jobs[job] -= 1
            return self._jobs[job] <= 0

    def _loaded(self, table: str, output: Output) -> HeldSegment:
        fake_table = self._table(table)
        before = fake_table.held.get(output.segment)
        return loaded_with(self._schemas.get(table, {}), fake_table.config, output.rows, before)

    def require_server_queries(self) -> None:
        with self._call("require_server_queries"):
            if self.unaskable is not None:
                raise self.unaskable

    def query_server(self, server: str, sql: str, segments: Sequence[str]) -> DataTable:
        if not segments:
            raise ValueError("no segment is named")
        if server not in SERVERS:
            raise PinotNotFound(f"no instance {server}")
        with self._call("query_server"):
            if server in self._stopped:
                raise _unanswered(server)
            named = re.search(r'FROM "?(\w+?)_OFFLINE"?', sql)
            assert named is not None, sql
            fake_table = self._table(named[1])
            held = [
                name
                for name in segments
                if name in fake_table.segments and fake_table.state(name, server) == "ONLINE"
            ]
            if len(held) < len(segments):
                raise PinotError(f"{server} answered with error 235", why="segments are missing")
            return self.answer(sql, [fake_table.segments[name] for name in held])

    def version(self) -> str:
        with self._call("version"):
            return self._dialect.version

    def table_bytes(self, table: str) -> int:
        with self._call("table_bytes"):
            return sum(o.tar_bytes for o in self._table(table).segments.values()) * len(SERVERS)

    # --- push and delete -------------------------------------------------------------------------

    def table_servers(self, table: str) -> Sequence[str]:
        with self._call("table_servers"):
            assigned = self._table(table).config.get("instanceAssignmentConfigMap", {}).get("OFFLINE", {})
            return SERVERS[
                : assigned.get("replicaGroupPartitionConfig", {}).get("numInstances", len(SERVERS))
            ]

    def server_versions(self, table: str) -> Mapping[str, str]:
        with self._call("server_versions"):
            self._table(table)
            return dict.fromkeys(SERVERS, self._dialect.server_version)

    def server_disks(self, servers: Collection[str]) -> Mapping[str, ServerDisk | PinotError]:
        with self._call("server_disks"):
            return {}

    def push(
        self,
        table: str,
        outputs: Sequence[Output],
        *,
        staged: StagedObjects,
        mode: PushMode | None = None,
        before_upload: Callable[[], None] = lambda: None,
    ) -> PushReport:
        with self._call("push"):
            fake_table = self._table(table)
            for output in outputs:
                there = fake_table.segments.get(output.segment)
                if there is not None and there.crc != output.crc:
                    raise PushRefused(f"{output.segment} already exists with other content")
            halves, self._halves = self._halves, False
            new = [output for output in outputs if output.segment not in fake_table.segments]
            if new:
                before_upload()
            for number, output in enumerate(new):
                if output.segment in self._refused:
                    raise PushRefused(f"{output.segment} was refused", why=self._refused[output.segment])
                metadata = _metadata(output, staged.read(output.metadata_uri), next(self._clock))
                fake_table.metadata[output.segment] = metadata
                if halves and number >= len(new) // 2:
                    continue
                fake_table.segments[output.segment] = output
                fake_table.held[output.segment] = self._loaded(table, output)
                fake_table.loading[output.segment] = self._slow.pop(output.segment, 0)
                self._tell_brokers(table)
            if halves and new:
                _lost()
            return PushReport(
                pushed=tuple(output.segment for output in new),
                skipped=tuple(o.segment for o in outputs if o not in new),
                mode=(mode or PushMode.METADATA) if new else None,
                fallback=None,
                calls=self._dialect.uploads(len(new)),
                seconds=0.0,
            )

    def delete_segments(self, table: str, names: Collection[str]) -> None:
        if not names:
            raise ValueError("the list of segments to delete is empty")
        with self._call("delete_segments"):
            locked = self._table(table).lineage.locked().intersection(names)
            if locked and self._dialect.locks_deletes:
                raise PinotError("the delete was refused", why=f"{sorted(locked)} are in a live entry")
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
            return self._start(table, segments_from, segments_to, give_way_to_nobody)

    def force_start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        self._check_names(segments_from, segments_to)
        with self._call("force_start_replace_segments"):
            return self._start(table, segments_from, segments_to, give_way_to_force)

    def end_replace_segments(self, table: str, entry_id: str) -> None:
        with self._call("end_replace_segments"):
            self._end(table, entry_id, frozenset())

    def narrow_and_end(self, table: str, entry_id: str, segments_to: Collection[str]) -> None:
        """End with a body: only these of the entry's outputs stay in it."""
        self._end(table, entry_id, frozenset(segments_to))

    def revert_replace_segments(self, table: str, entry_id: str) -> None:
        with self._call("revert_replace_segments"):
            entry = self._table(table).entries.get(entry_id)
            if entry is not None and entry.state is LineageState.IN_PROGRESS:
                raise self._refused_revert(table, entry_id)
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
            fake_table = self._table(table)
            self._load(table, ())
            return frozenset(s for s in fake_table.routing.get(broker, ()) if fake_table.is_online(s))

    def broker_rows(self, broker: str, table: str) -> int:
        with self._call("broker_rows"):
            fake_table = self._table(table)
            routed = [s for s in fake_table.routing.get(broker, ()) if s in fake_table.segments]
            if not all(fake_table.is_online(s) for s in routed):
                raise PinotError("a segment that the query needs is not ONLINE")
            return sum(fake_table.segments[s].rows for s in routed)

    def query_broker(self, broker: str, sql: str) -> QueryResult:
        with self._call("query_broker"):
            named = re.search(r'FROM "?(\w+?)_OFFLINE"?', sql)
            assert named is not None, sql
            fake_table = self._table(named[1])
            routed = sorted(s for s in fake_table.routing.get(broker, ()) if s in fake_table.segments)
            if not routed:
                raise NoResult(f"broker {broker} answered without a result")
            if not all(fake_table.is_online(s) for s in routed):
                raise PinotError("a segment that the query needs is not ONLINE")
            return self.broker_answer(sql, [fake_table.segments[name] for name in routed])

    def rebuild_routing(self, broker: str, table: str) -> None:
        with self._call("rebuild_routing"):
            self._table(table).routing[broker] = self._table(table).visible

    def settle_brokers(self, table: str, *, seconds: float) -> None:
        with self._call("settle_brokers"):
            self._table(table).routing |= dict.fromkeys(BROKERS, self._table(table).visible)

    # --- schema and table config -----------------------------------------------------------------

    def get_schema(self, name: str) -> JsonObject | None:
        with self._call("get_schema"):
            return self._schemas.get(name)

    def put_schema(self, schema: JsonMapping) -> None:
        with self._call("put_schema"):
            name = schema["schemaName"]
            if not is_compatible(schema, self._schemas.get(name, {}), self._dialect):
                raise PinotError(f"New schema: {name} is not backward-compatible with the existing schema")
            self._schemas[name] = dict(schema)

    def replace_schema(self, schema: JsonMapping) -> None:
        with self._call("replace_schema"):
            self._schemas[schema["schemaName"]] = dict(schema)

    def delete_schema(self, name: str) -> None:
        with self._call("delete_schema"):
            if self._schemas.pop(name, None) is None:
                raise PinotNotFound(f"no schema {name}")

    def validate_table(self, schema: JsonMapping, config: JsonMapping) -> None:
        with self._call("validate_table"):
            name = raw_name(config)
            if schema.get("schemaName") != name:
                raise PinotError(f"'tableName': {name} must be equal to 'schemaName' from 'schema'")
            if "__" in name:
                raise PinotError("'tableName' cannot contain double underscore ('__')")
            columns = {
                field["name"] for fields in schema.values() if isinstance(fields, list) for field in fields
            }
            time = config.get("segmentsConfig", {}).get("timeColumnName")
            if time is not None and time not in columns:
                raise PinotError(f"the time column {time} is not in the schema")

    def get_table_config(self, table: str) -> JsonObject | None:
        with self._call("get_table_config"):
            return self._tables[table].config if table in self._tables else None

    def get_realtime_config(self, table: str) -> JsonObject | None:
        with self._call("get_realtime_config"):
            return self.realtime.get(table)

    def fixed_time_boundary_ms(self, table: str) -> int | None:
        with self._call("fixed_time_boundary_ms"):
            return self._table(table).fixed_boundary_ms

    def create_table(self, config: JsonMapping) -> None:
        with self._call("create_table"):
            name = raw_name(config)
            if name in self._tables:
                raise PinotError(f"table {name} exists")
            if "__" in name:
                raise PinotError("'tableName' cannot contain double underscore ('__')")
            self._check_dictionaries(config)
            self._tables[name] = FakeTable({**config, "tableName": f"{name}_OFFLINE"})

    def update_table(self, config: JsonMapping) -> None:
        with self._call("update_table"):
            name = raw_name(config)
            self._check_dictionaries(config)
            self._table(name).config = {**config, "tableName": f"{name}_OFFLINE"}

    def delete_table(self, table: str, retention: str | None = None) -> None:
        with self._call("delete_table"):
            self._table(table)
            del self._tables[table]

    # --- inside ----------------------------------------------------------------------------------

    def _check_dictionaries(self, config: JsonMapping) -> None:
        indexing = config.get("tableIndexConfig", {})
        raw = {*indexing.get("noDictionaryColumns", ())}
        for column in indexing.get("invertedIndexColumns", ()):
            if self._dialect.needs_dictionaries and column in raw:
                raise PinotError(f"Cannot create inverted index on column: {column} without dictionary")

    @contextmanager
    def _call(self, method: str) -> Iterator[None]:
        self.calls.append(method)
        _run_next(self._before, method)
        yield
        _run_next(self._after, method)

    def _table(self, table: str) -> FakeTable:
        if table not in self._tables:
            raise PinotNotFound(f"no table {table}")
        return self._tables[table]

    def _put(self, table: FakeTable, entry: LineageEntry) -> None:
        table.entries[entry.id] = replace(entry, timestamp_ms=next(self._clock))

    def _check_names(self, segments_from: Collection[str], segments_to: Collection[str]) -> None:
        if not segments_from and not segments_to:
            raise ValueError("a replacement of nothing by nothing")
        if any("," in name or not name for name in (*segments_from, *segments_to)):
            raise ValueError("a name that the lineage node would split in two")

    def _start(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str], give_way: GiveWay
    ) -> str:
        """Check what is visible, once; then try to write until nobody wrote in between, and delete what *any*
        of the tries wanted to delete (docs/design/lineage.md#race-deletion-list)."""
        fake_table = self._table(table)
        if not segments_to and (refusal := self._dialect.empty_outputs_refused):
            raise PinotError(refusal)
        if not fake_table.visible.issuperset(segments_from) or not fake_table.visible.isdisjoint(segments_to):
            raise refused_start(fake_table, segments_from, segments_to)
        doomed = set[str]()
        while True:
            had_node, before = fake_table.has_node, dict(fake_table.entries)
            after, more = give_way(fake_table, segments_from, segments_to, next(self._clock))
            doomed |= more
            _run_next(self._before, "the write of the lineage")
            if fake_table.entries == before or not had_node:  # the first write of a node checks no version
                break
        fake_table.entries, fake_table.has_node = after, True
        names = frozenset(segments_from), frozenset(segments_to)
        entry = LineageEntry(str(uuid.uuid4()), *names, LineageState.IN_PROGRESS, 0)
        self._put(fake_table, entry)
        self._delete(table, doomed)
        if doomed and self._dialect.forced_start_waits and self.hurried:
            _lost()
        return entry.id

    def _end(self, table: str, entry_id: str, narrowed: frozenset[str]) -> None:
        fake_table = self._table(table)
        entry = fake_table.entries.get(entry_id)
        if entry is not None and entry.state is LineageState.COMPLETED:
            return
        reasons = why_not_end(fake_table.lineage, fake_table.segments, entry_id)
        if entry is None or entry.state is LineageState.REVERTED:
            raise SwitchConflict("the end was refused", why="; ".join(reasons))
        names = narrowed or entry.segments_to
        if not names <= entry.segments_to or not names <= fake_table.segments.keys():
            raise SwitchConflict("the end was refused", why="; ".join(reasons))
        fake_table.ending[entry_id] = names
        self._load(table, ())
        if entry_id in fake_table.ending:
            # Pinot waits on its own; the caller's deadline is over long before.
            _lost()

    def _revert(self, table: str, entry_id: str) -> None:
        fake_table = self._table(table)
        entry = fake_table.entries.get(entry_id)
        if entry is None or entry.state is LineageState.REVERTED:
            raise self._refused_revert(table, entry_id)
        for other in fake_table.entries.values():
            if other.state is not LineageState.REVERTED and other.segments_from & entry.segments_to:
                raise self._refused_revert(table, entry_id)
        if entry.state is LineageState.COMPLETED and not entry.segments_from <= fake_table.segments.keys():
            raise self._refused_revert(table, entry_id)
        self._put(fake_table, replace(entry, state=LineageState.REVERTED))
        fake_table.ending.pop(entry_id, None)
        self._delete(table, entry.segments_to)

    def _refused_revert(self, table: str, entry_id: str) -> SwitchConflict:
        fake_table = self._table(table)
        reasons = why_not_revert(fake_table.lineage, fake_table.segments, entry_id)
        return SwitchConflict("the revert was refused", why="; ".join(reasons))

    def _delete(self, table: str, names: Collection[str]) -> None:
        without(self._table(table), names)
        self._tell_brokers(table)

    def _load(self, table: str, looked_at: Collection[str]) -> None:
        """One look at some segments; ends that only waited for them happen now."""
        fake_table = self._table(table)
        fake_table.loading.subtract(name for name in looked_at if fake_table.loading[name] > 0)
        for entry_id, names in tuple(fake_table.ending.items()):
            entry = fake_table.entries.get(entry_id)
            if entry is None or entry.state is not LineageState.IN_PROGRESS:
                del fake_table.ending[entry_id]  # somebody else was faster
            elif all(fake_table.is_online(name) for name in names):
                del fake_table.ending[entry_id]
                self._put(fake_table, replace(entry, segments_to=names, state=LineageState.COMPLETED))
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


def _unanswered(server: str) -> PinotUnreachable:
    return PinotUnreachable(f"{server} did not answer", why="connection refused")


def _unreachable() -> None:
    raise PinotUnreachable("no connection")


def _metadata(output: Output, metadata_tar: bytes, now_ms: int) -> SegmentMetadata:
    return SegmentMetadata(
        segment=output.segment,
        crc=output.crc,
        total_docs=output.rows,
        custom=_custom_map(metadata_tar),
        download_url=f"http://127.0.0.1:9000/segments/{output.segment}",
        start_ms=output.start_ms,
        end_ms=output.end_ms,
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
