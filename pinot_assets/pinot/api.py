"""What the rest of the project may ask of Pinot.

One protocol with two implementations: `pinot_assets.pinot.http_client.HttpPinotClient` (HTTP) and the
in-memory fake of the tests. One contract suite (`tests/contract/test_pinot.py`) holds both to the same
promises, so a test against the fake means something. Every `table` is a raw table name; OFFLINE is implied.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotError
from pinot_assets.pinot.client.broker import QueryResult
from pinot_assets.pinot.client.data_table import DataTable
from pinot_assets.pinot.lineage import Lineage, Replicas, SegmentMetadata
from pinot_assets.snapshot.receipt import Output


class StagedObjects(Protocol):
    """What a push reads of the staging area, by URI."""

    def read(self, uri: str) -> bytes:
        """A small object."""

    def fetch_tar(self, output: Output, path: Path) -> None:
        """Copy a segment's tar into a file.

        :raises SnapshotCorrupt: it is not what was staged.
        """


@dataclass(frozen=True, slots=True)
class ServerDisk:
    """The disk of a server's data directory, in bytes, as the server last measured it."""

    total: int
    used: int


class PushMode(Enum):
    """How a segment's tar gets into Pinot's deep store."""

    METADATA = "metadata"
    """Pinot copies it from where it was staged; the controller is sent metadata only, of many segments at
    once where it takes that."""

    TAR = "tar"
    """The whole tar is sent: for a staging area that the controller cannot reach."""


@dataclass(frozen=True, slots=True)
class PushReport:
    """What a push did.

    :ivar pushed: names uploaded by this call, confirmed by reading (rule R8).
    :ivar skipped: names that were there already with the same CRC.
    :ivar mode: the mode that worked; pass it on to the next batch to save the trial. None where nothing was
        sent.
    :ivar fallback: why METADATA was given up for TAR, None if it was not.
    :ivar calls: uploads that were sent, those that failed included.
    :ivar seconds: wall time of the whole call.
    """

    pushed: tuple[str, ...]
    skipped: tuple[str, ...]
    mode: PushMode | None
    fallback: str | None
    calls: int
    seconds: float

    def then(self, later: PushReport) -> PushReport:
        """Both as one push."""
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

    Errors, for every method: `PinotUnreachable` — no connection, so the call was not sent (for a read: no
    answer); `PinotNotFound` — no such table or segment; `PinotError` — anything else that Pinot
    refused. For a call that changes something: `SwitchStateUnknown` — sent, but no answer came: look first.
    """

    # --- what is there ---------------------------------------------------------------------------

    def version(self) -> str:
        """Version of the controller, `1.5.1`; `pinot_assets.pinot.versions` knows what it means."""

    def all_segments(self, table: str) -> frozenset[str]:
        """Names in the ideal state, those hidden by lineage included.

        :raises PinotNotFound: no such table.
        """

    def visible_segments(self, table: str) -> frozenset[str]:
        """Names that queries see: the ideal state less what lineage hides.

        Source: docs/design/lineage.md#visibility.

        :raises PinotNotFound: no such table.
        """

    def online_replicas(self, table: str, names: Collection[str]) -> Replicas:
        """State of each replica of each name: every server that the ideal state or the external view lists.

        A server that should have it and shows nothing yet counts as `OFFLINE`. A name that Pinot does not
        know has no replicas: an empty mapping, never a missing key.

        :raises PinotNotFound: no such table.
        """

    def segment_crcs(self, table: str) -> Mapping[str, int]:
        """CRC of every segment in the ZooKeeper metadata.

        :raises PinotNotFound: no such table.
        """

    def segment_metadata(self, table: str, name: str) -> SegmentMetadata:
        """One segment's ZooKeeper metadata.

        :raises PinotNotFound: no such segment.
        """

    def crcs_on_servers(
        self, table: str, servers: Collection[str]
    ) -> Mapping[str, Mapping[str, int] | PinotError]:
        """CRC of every segment as loaded, hidden ones included: instance → segment → CRC, or why that server
        did not answer. One call each, however many segments it has."""

    def rows_on_servers(
        self, table: str, names: Collection[str], servers: Collection[str]
    ) -> Mapping[str, Mapping[str, int]]:
        """Rows of each name as each of these servers loaded it: segment → instance → documents.

        Asks those of them that the ideal state names; one that has not loaded the segment is left out, so
        compare with `online_replicas`.
        """

    def query_server(self, server: str, sql: str, segments: Sequence[str]) -> DataTable:
        """One server's answer for these of its segments, those that lineage hides included.

        :param server: the instance.
        :param sql: names the table with its type; LIMIT and ORDER BY are the server's alone.
        :param segments: at least one.
        :raises PinotError: the server refused, does not have all of the segments, or answered what cannot be
            read.
        """

    def require_server_queries(self) -> None:
        """Look whether `query_server` has settings that it can work with; no server is asked.

        :raises SpecError: certificates are not to be verified, or cannot be read.
        """

    def table_bytes(self, table: str) -> int:
        """Size on all servers, every replica and hidden segments included, as the quota counts it.

        :raises PinotNotFound: no such table.
        """

    def table_servers(self, table: str) -> Sequence[str]:
        """Instances that new segments of the table may be assigned to.

        :raises PinotNotFound: no such table.
        """

    def server_disks(self, servers: Collection[str]) -> Mapping[str, ServerDisk | PinotError]:
        """Disk of each server that tells it, or why it did not answer; Pinot's servers do not before 1.3, and
        are then left out."""

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
        """Upload staged segments and confirm by reading that ideal state and CRC are as built (rule R8).

        Idempotent: a name already there with the same CRC is skipped. Pinot copies every tar into its own
        deep store (rule R9). Everything is checked before the first upload; a call that raises may have
        uploaded some of the segments: call again.

        Where Pinot takes batches, all outputs go in one upload, which has to be over within one deadline:
        the caller says how many go together. A connection that fails is tried again, an upload whose answer
        was lost only when Pinot shows no trace of it.

        :param staged: where metadata is read, and whole tars in TAR mode.
        :param mode: None tries METADATA with the first segment and falls back to TAR if the controller
            cannot reach the staging area.
        :param before_upload: called before every upload (a few at a time count as one); what it raises ends
            the push (rule R2).
        :raises PushRefused: Pinot refused one (quota, time range, …), or a name is there with another CRC.
        :raises SwitchStateUnknown: an upload was sent, no answer came, and it did not show up either.
        """

    def delete_segments(self, table: str, names: Collection[str]) -> None:
        """Delete these segments; names that do not exist are ignored. Out of the ideal state on return.

        :raises ValueError: `names` is empty (Pinot would delete *every* segment:
            docs/design/push.md#deleting-segments).
        """

    # --- lineage ---------------------------------------------------------------------------------

    def lineage(self, table: str) -> Lineage:
        """All replacement entries, oldest first; empty where the table has none.

        :raises PinotNotFound: no such table.
        """

    def start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        """Open an entry that hides `segments_to` until it is ended; returns its id.

        Not idempotent: after `SwitchStateUnknown` look for an entry with exactly these names.

        :raises SwitchConflict: a source is missing or hidden, a target is visible, or another entry overlaps.
        :raises PinotError: `segments_to` is empty and Pinot is older than 1.0, which has no atomic delete.
        :raises ValueError: both sides are empty, or a name holds a comma (it would be torn in two).
        """

    def force_start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        """The same with forceCleanup: overlapping IN_PROGRESS entries are reverted or removed first, their
        other outputs deleted; on a REFRESH table the generation before `segments_from` is deleted as well
        (docs/design/lineage.md#forced-start). What another controller publishes while the call is on its way
        may be hidden or deleted by it (docs/design/lineage.md#race-late-start and #race-deletion-list;
        `tests/contract/test_races.py`).

        Up to 0.11 the answer comes when the servers have dropped what is deleted (2 s at least, 20 minutes
        at most), while the entry is written at once: expect `SwitchStateUnknown` and read the lineage.
        """

    def end_replace_segments(self, table: str, entry_id: str) -> None:
        """Switch: outputs visible, sources hidden. Ending a COMPLETED entry again does nothing.

        Pinot waits (up to an hour) until each output is ONLINE on one server and goes on when the caller
        has long gone: after `SwitchStateUnknown` read the entry.

        :raises SwitchConflict: no such entry, it is REVERTED, or an output is not in the table.
        """

    def revert_replace_segments(self, table: str, entry_id: str) -> None:
        """Undo a COMPLETED entry: sources visible again, outputs deleted. There is no way back.

        :raises SwitchConflict: no such entry, not COMPLETED, a source is gone, or a later entry builds on it.
        """

    def force_revert_replace_segments(self, table: str, entry_id: str) -> None:
        """The same, and IN_PROGRESS entries too."""

    # --- brokers ---------------------------------------------------------------------------------

    def brokers(self, table: str) -> Sequence[str]:
        """Base URLs of the brokers that serve the table now."""

    def broker_visible_segments(self, broker: str, table: str) -> frozenset[str]:
        """Segments that this broker would send a query to; empty where it has no routing for the table."""

    def broker_rows(self, broker: str, table: str) -> int:
        """COUNT(*) of the OFFLINE table at this broker; 0 where it has no routing for the table.

        :raises PinotError: no whole answer.
        """

    def query_broker(self, broker: str, sql: str) -> QueryResult:
        """A broker's whole answer, under the deadline of a query.

        :raises PinotError: no whole answer; `NoResult` of it where there is nothing to ask.
        """

    def rebuild_routing(self, broker: str, table: str) -> None:
        """Have this broker read lineage and ideal state again (rule R7). Idempotent."""

    def settle_brokers(self, table: str, *, seconds: float) -> None:
        """Wait until servers have dropped what was deleted, then have every broker read the table anew.

        A broker that works on an older change while a replacement ends updates two lists one after the
        other, and a query in between gets the segments that both know (docs/operations.md, "Queries on
        their way"). Whoever ends a replacement calls this right before. Idempotent; a broker that does not
        answer is left out.

        :param seconds: how long servers are waited for; one that hangs for longer stops nobody.
        :raises PinotNotFound: no such table.
        """

    # --- schema and table config -----------------------------------------------------------------

    def get_schema(self, name: str) -> JsonObject | None:
        """The schema as Pinot holds it, None where there is none."""

    def put_schema(self, schema: JsonMapping) -> None:
        """Create the schema or update it in place.

        :raises PinotError: the change is not backward compatible, or the schema is malformed.
        """

    def delete_schema(self, name: str) -> None:
        """Delete a schema. The caller sees to it that no table uses it: 0.11.0 deletes it all the same.

        :raises PinotNotFound: there is none.
        :raises PinotError: a table uses it (later releases).
        """

    def validate_table(self, schema: JsonMapping, config: JsonMapping) -> None:
        """Let Pinot look at a schema together with a table config; neither need be there, nothing is changed.

        Whether a schema may become this one, and whether a table of the name is there, it does not look at.

        :raises PinotError: Pinot would refuse them.
        """

    def get_table_config(self, table: str) -> JsonObject | None:
        """The OFFLINE table config as Pinot holds it, None where there is none."""

    def get_realtime_config(self, table: str) -> JsonObject | None:
        """The config of the REALTIME table of the same name; None where there is none: not a hybrid table."""

    def create_table(self, config: JsonMapping) -> None:
        """Create the table.

        :raises PinotError: it exists, Pinot refuses the config, or one of that name was deleted a moment ago
            and a server still holds its segments.
        """

    def update_table(self, config: JsonMapping) -> None:
        """Replace the config of an existing table.

        :raises PinotNotFound: no such table.
        :raises PinotError: Pinot refuses the config.
        """

    def delete_table(self, table: str, retention: str | None = None) -> None:
        """Drop the OFFLINE table with its segments and its lineage.

        Of the deep store only what lies in the table's own folder is touched.

        :param retention: how long Pinot keeps the tars, `0d` for not at all; None: as its controller is set.
        :raises PinotNotFound: no such table.
        """
