"""The protocol by which the rest of the project talks to Pinot.

It has two implementations: `pinot_assets.pinot.http_client.HttpPinotClient` (HTTP) and the in-memory fake of
the tests. Both have to pass one contract suite (`tests/contract/test_pinot.py`), so a test against the fake
shows what Pinot would do. Every `table` is a raw table name; the calls mean its OFFLINE table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotError
from pinot_assets.pinot.held_segment import HeldSegment
from pinot_assets.pinot.lineage import Lineage, Replicas, SegmentMetadata
from pinot_assets.snapshot.receipt import Output

if TYPE_CHECKING:  # the protocol does without the HTTP client
    from pinot_assets.pinot.client.broker import QueryResult
    from pinot_assets.pinot.client.data_table import DataTable


class StagedObjects(Protocol):
    """Reads built files from the staging area, by URI; a push needs no more of it."""

    def read(self, uri: str) -> bytes:
        """Return the content of a small object."""

    def fetch_tar(self, output: Output, path: Path) -> None:
        """Copy a segment's tar into a file.

        :raises SnapshotCorrupt: the tar differs from what was staged.
        """


@dataclass(frozen=True, slots=True)
class ServerDisk:
    """The disk of a server's data directory, in bytes, as the server last measured it."""

    total: int
    used: int


class PushMode(Enum):
    """How a segment's tar gets into Pinot's deep store."""

    METADATA = "metadata"
    """Pinot copies the tar from the staging area. We send the controller only metadata, of many segments in
    one call if its release can do that."""

    TAR = "tar"
    """We send the controller the whole tar, because it cannot reach the staging area."""


@dataclass(frozen=True, slots=True)
class PushReport:
    """What a push did.

    :ivar pushed: names that this call uploaded and then saw in Pinot (rule R8).
    :ivar skipped: names that were there already with the same CRC.
    :ivar mode: the mode that worked; pass it on to the next batch, which then needs no trial. None if
        nothing was sent.
    :ivar fallback: why the push changed from METADATA to TAR, None if it did not.
    :ivar calls: number of uploads that were sent, failed ones included.
    :ivar seconds: wall time of the whole call.
    """

    pushed: tuple[str, ...]
    skipped: tuple[str, ...]
    mode: PushMode | None
    fallback: str | None
    calls: int
    seconds: float

    def then(self, later: PushReport) -> PushReport:
        """Return this report and a later one as the report of one push."""
        return PushReport(
            self.pushed + later.pushed,
            self.skipped + later.skipped,
            later.mode or self.mode,
            self.fallback or later.fallback,
            self.calls + later.calls,
            self.seconds + later.seconds,
        )


class PinotClient(Protocol):
    """A Pinot cluster, seen from the session driver.

    Every method raises `PinotUnreachable` (no connection, so the call was not sent; a read: no answer),
    `PinotNotFound` (no such table or segment) or `PinotError` (Pinot refused for another reason). A call that
    changes something raises `SwitchStateUnknown` if it was sent and no answer came: read what happened.
    """

    # --- reads -----------------------------------------------------------------------------------

    def version(self) -> str:
        """Return the controller's version, such as `1.5.1`; see `pinot_assets.pinot.versions`."""

    def all_segments(self, table: str) -> frozenset[str]:
        """Return the names in the ideal state, hidden ones included.

        :raises PinotNotFound: no such table.
        """

    def visible_segments(self, table: str) -> frozenset[str]:
        """Return the names that queries see: the ideal state without the hidden segments.

        Source: docs/design/lineage.md#visibility.

        :raises PinotNotFound: no such table.
        """

    def online_replicas(self, table: str, names: Collection[str]) -> Replicas:
        """Return the state of each replica of each name, on every server in ideal state or external view.

        A server that the ideal state names and the external view does not counts as `OFFLINE`. A name that
        Pinot does not know has an empty mapping; its key is never missing.

        :raises PinotNotFound: no such table.
        """

    def segment_crcs(self, table: str) -> Mapping[str, int]:
        """Return the CRC of every segment in the ZooKeeper metadata.

        :raises PinotNotFound: no such table.
        """

    def segment_metadata(self, table: str, name: str) -> SegmentMetadata:
        """Return one segment's ZooKeeper metadata.

        :raises PinotNotFound: no such segment.
        """

    def crcs_on_servers(
        self, table: str, servers: Collection[str]
    ) -> Mapping[str, Mapping[str, int] | PinotError]:
        """Return the CRC of every loaded segment, hidden ones included: instance → segment → CRC. For a
        server that did not answer, its value is the error. One call for each server."""

    def rows_on_servers(
        self, table: str, names: Collection[str], servers: Collection[str]
    ) -> Mapping[str, Mapping[str, int]]:
        """Return the rows of each name as each of these servers loaded it: segment → instance → documents.

        Of these servers it asks only those that the ideal state names. A server that has not loaded the
        segment is left out of the answer: compare with `online_replicas`.
        """

    def held_segments(
        self, table: str, names: Collection[str], servers: Collection[str]
    ) -> Mapping[str, Mapping[str, HeldSegment]]:
        """Return what each of these servers holds of each name: segment → instance → columns and indexes.

        As `rows_on_servers`, but a server that does not answer is left out, too.
        """

    def needs_reload(self, table: str) -> bool | None:
        """Whether a server would change a segment if it loaded it again, by its own account; None from a
        release before 1.3, which has no such call."""

    def query_server(self, server: str, sql: str, segments: Sequence[str]) -> DataTable:
        """Return one server's answer about these of its segments, hidden ones included.

        :param server: the instance.
        :param sql: names the table with its type; LIMIT and ORDER BY apply to this server's rows only.
        :param segments: at least one.
        :raises PinotError: the server refused, lacks one of the segments, or sent an answer that cannot be
            read.
        """

    def require_server_queries(self) -> None:
        """Check that `query_server` can work with the connection's settings; this asks no server.

        :raises SpecError: verification of certificates is off, or the certificates cannot be read.
        """

    def table_bytes(self, table: str) -> int:
        """Return the bytes on all servers, every replica and hidden segment included, as the quota counts.

        :raises PinotNotFound: no such table.
        """

    def table_servers(self, table: str) -> Sequence[str]:
        """Return the instances to which Pinot may assign new segments of the table.

        :raises PinotNotFound: no such table.
        """

    def server_versions(self, table: str) -> Mapping[str, str]:
        """Return the release of each of the table's servers, as it named it at its start: `1.5.1-5a…`. It is
        empty for a server before 1.4, which names none.

        :raises PinotNotFound: no such table.
        """

    def server_disks(self, servers: Collection[str]) -> Mapping[str, ServerDisk | PinotError]:
        """Return the disk of each server, or the error of one that did not answer. Servers before Pinot 1.3
        do not have this call; they are left out."""

    # --- push and delete -------------------------------------------------------------------------

    def push(
        self,
        table: str,
        outputs: Sequence[Output],
        *,
        staged: StagedObjects,
        mode: PushMode | None = None,
        before_upload: Callable[[], None] = lambda: None,
    ) -> PushReport:
        """Upload staged segments, then read that ideal state and CRCs are as built (rule R8).

        Idempotent: a name that is there with the same CRC is skipped. Pinot copies every tar into its own
        deep store (rule R9). Names and CRCs are checked before the first upload. A call that raises may have
        uploaded some of the segments: call again.

        Where Pinot takes batches, all outputs go in one upload, which has one deadline: the caller decides
        how many go together. If a connection fails, the upload is sent again; if an answer was lost, only
        once Pinot shows no trace of the upload.

        :param staged: source of the metadata, and of whole tars in TAR mode.
        :param mode: None tries METADATA with the first segment and changes to TAR if the controller
            cannot reach the staging area.
        :param before_upload: called before every upload (a few that run at a time count as one); if it
            raises, the push ends (rule R2).
        :raises PushRefused: Pinot refused one (quota, time range, …), or a name is there with another CRC.
        :raises SwitchStateUnknown: an upload was sent, no answer came, and the segment did not appear.
        """

    def delete_segments(self, table: str, names: Collection[str]) -> None:
        """Delete these segments and ignore unknown names. On return the ideal state has none of them.

        :raises ValueError: `names` is empty (Pinot would delete *every* segment:
            docs/design/push.md#deleting-segments).
        """

    def reload_segment(self, table: str, name: str) -> str:
        """Make the servers of a segment load it again, now with the stored schema and table config.

        On return the servers only have the message: queries see the segment as before until it is loaded.

        :returns: the id of Pinot's job, for `ask_if_reloaded`.
        :raises PinotNotFound: no such segment.
        """

    def ask_if_reloaded(self, job: str) -> bool:
        """Whether every server of the job's segment has loaded it since the job was stored.

        Pinot 0.11 stores a job after its message to the servers: a server that is faster never counts.

        :raises PinotNotFound: no such job; Pinot keeps the newest hundred of a table.
        """

    # --- lineage ---------------------------------------------------------------------------------

    def lineage(self, table: str) -> Lineage:
        """Return all lineage entries, oldest first; none if the table has no lineage.

        :raises PinotNotFound: no such table.
        """

    def start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        """Open a lineage entry, which hides `segments_to` until it is ended, and return its id.

        Not idempotent: after `SwitchStateUnknown` look for an entry with exactly these names.

        :raises SwitchConflict: a source is missing or hidden, a target is visible, or another entry overlaps.
        :raises PinotError: `segments_to` is empty and Pinot is older than 1.0, which has no atomic delete.
        :raises ValueError: both sides are empty, or a name holds a comma (Pinot would split it).
        """

    def force_start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        """Open an entry with forceCleanup, which first reverts or removes overlapping IN_PROGRESS entries.

        Pinot deletes their other outputs. On a REFRESH table it also deletes the generation before
        `segments_from` (docs/design/lineage.md#forced-start). The call may hide or delete what another
        controller publishes at that time (docs/design/lineage.md#race-late-start and #race-deletion-list;
        `tests/contract/test_races.py`). Up to 0.11 Pinot writes the entry at once, but answers only when the
        servers have dropped the deleted segments (2 s to 20 minutes): expect `SwitchStateUnknown`, then read
        the lineage.
        """

    def end_replace_segments(self, table: str, entry_id: str) -> None:
        """End the replacement: outputs become visible, sources hidden. For a COMPLETED entry: no effect.

        Pinot waits (up to an hour) until each output is ONLINE on one server. It continues after the caller
        has given up: after `SwitchStateUnknown` read the entry.

        :raises SwitchConflict: no such entry, it is REVERTED, or an output is not in the table.
        """

    def revert_replace_segments(self, table: str, entry_id: str) -> None:
        """Undo a COMPLETED entry for good: sources become visible again, outputs are deleted.

        :raises SwitchConflict: no such entry, not COMPLETED, a source is gone, or a later entry builds on it.
        """

    def force_revert_replace_segments(self, table: str, entry_id: str) -> None:
        """Like `revert_replace_segments`, for IN_PROGRESS entries, too."""

    # --- brokers ---------------------------------------------------------------------------------

    def brokers(self, table: str) -> Sequence[str]:
        """Return the base URLs of the brokers that serve the table now."""

    def broker_visible_segments(self, broker: str, table: str) -> frozenset[str]:
        """Return the segments to which this broker routes queries; none if it has no routing of the table."""

    def broker_rows(self, broker: str, table: str) -> int:
        """Return COUNT(*) of the OFFLINE table at this broker; 0 if it has no routing of the table.

        :raises PinotError: the answer is not complete.
        """

    def query_broker(self, broker: str, sql: str) -> QueryResult:
        """Return a broker's complete answer, within the deadline of a query.

        :raises PinotError: the answer is not complete; its subclass `NoResult` if there is nothing to ask.
        """

    def rebuild_routing(self, broker: str, table: str) -> None:
        """Make this broker read lineage and ideal state again (rule R7). Idempotent."""

    def settle_brokers(self, table: str, *, seconds: float) -> None:
        """Wait until servers have dropped the deleted segments, then make every broker read the table again.

        If a broker still works on an older change when a replacement ends, it updates two lists one after
        the other, and a query in between gets only the segments in both (docs/operations.md, "Queries on
        their way"). So call this right before you end a replacement. Idempotent; a broker that does not
        answer is skipped.

        :param seconds: the longest wait for servers; after it the brokers are asked all the same.
        :raises PinotNotFound: no such table.
        """

    # --- schema and table config -----------------------------------------------------------------

    def get_schema(self, name: str) -> JsonObject | None:
        """Return the schema as Pinot stores it, None if there is none."""

    def put_schema(self, schema: JsonMapping) -> None:
        """Create the schema or update it in place.

        :raises PinotError: the change is not backward compatible, or the schema is malformed.
        """

    def replace_schema(self, schema: JsonMapping) -> None:
        """Put another schema in the place of one, also if it is not backward compatible.

        The caller makes sure that queries can live with segments of both. Before 1.0 Pinot has no call for
        it: the schema is deleted, and for a moment there is none.

        :raises PinotError: the new schema is malformed, or a REALTIME table uses the schema (before 1.0).
        """

    def delete_schema(self, name: str) -> None:
        """Delete a schema. The caller makes sure that no table uses it: 0.11.0 deletes it all the same.

        :raises PinotNotFound: there is no such schema.
        :raises PinotError: a table uses it (later releases).
        """

    def validate_table(self, schema: JsonMapping, config: JsonMapping) -> None:
        """Make Pinot check a schema together with a table config; both may be new. It changes nothing.

        It does not check whether the stored schema may become this one, nor whether the table exists.

        :raises PinotError: Pinot would refuse them.
        """

    def get_table_config(self, table: str) -> JsonObject | None:
        """Return the OFFLINE table config as Pinot stores it, None if there is none."""

    def get_realtime_config(self, table: str) -> JsonObject | None:
        """Return the config of the REALTIME table of that name; None if there is none (not hybrid)."""

    def fixed_time_boundary_ms(self, table: str) -> int | None:
        """Return the time boundary that somebody set for a hybrid table by hand (`POST
        /tables/{table}/timeBoundary`, since 0.12), in epoch ms; None if brokers follow the visible segments.

        It is in the ideal state. pinot-assets never sets it: Pinot takes the largest time of *all* OFFLINE
        segments, those of an open session included.

        :raises PinotError: the ideal state cannot be read.
        """

    def create_table(self, config: JsonMapping) -> None:
        """Create the table.

        :raises PinotError: it exists, Pinot refuses the config, or a table of that name was deleted a moment
            ago and a server still holds its segments.
        """

    def update_table(self, config: JsonMapping) -> None:
        """Replace the config of an existing table.

        :raises PinotNotFound: no such table.
        :raises PinotError: Pinot refuses the config.
        """

    def delete_table(self, table: str, retention: str | None = None) -> None:
        """Drop the OFFLINE table with its segments and its lineage.

        In the deep store it deletes only what lies in the table's own folder.

        :param retention: how long Pinot keeps the tars, `0d` for not at all; None: the controller's setting.
        :raises PinotNotFound: no such table.
        """
