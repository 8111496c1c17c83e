"""What Pinot says of a REALTIME table: one method for each question, 0.11.0 to 1.5.1.

Nearly all of it comes from ZooKeeper through the controller: ideal state and external view, the segments'
nodes with the time when they were written (the clock of Pinot's 300 s rule), pending messages, live
instances. That is the same in every release, and says more than the calls made for it: `pauseStatus` does
not show paused topics, `pauselessDebugInfo` leaves out names that should not be in its list. Every `table`
is the name with `_REALTIME`. Source: docs/design/realtime.md#s4 to #s9.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.pinot.client.app_config import AppConfig
from pinot_assets.pinot.client.broker import Broker
from pinot_assets.pinot.client.helix_nodes import Node, Nodes, Stat
from pinot_assets.pinot.client.http import CallKind, HttpCall, NotReady, quoted


class RealtimeReads(Nodes):
    """The reading half of `RealtimePinot`. Errors of every method: `PinotError` and its subclasses."""

    # --- the table ---------------------------------------------------------------------------------

    def realtime_tables(self) -> tuple[str, ...]:
        """Names of all REALTIME tables, with their type, sorted."""
        names = self._get("/tables", type="realtime")["tables"]
        return tuple(sorted(f"{str(name).removesuffix('_REALTIME')}_REALTIME" for name in names))

    def table_config(self, table: str) -> JsonObject | None:
        """The table's config as JSON values, None where there is no such table."""
        return self.get_realtime_config(table.removesuffix("_REALTIME"))

    def ideal_state(self, table: str) -> Node | None:
        """The ideal state: `maps` has segment → server → state, `simple` whether the table is paused."""
        return self.node(f"IDEALSTATES/{table}")

    def external_view(self, table: str) -> Mapping[str, Mapping[str, str]]:
        """Segment → server → state, as far as servers report one."""
        node = self.node(f"EXTERNALVIEW/{table}")
        return node.maps if node is not None else {}

    def segment_nodes(self, table: str) -> Mapping[str, Mapping[str, str]]:
        """The fields of every segment's node, by name."""
        return {node.id: node.simple for node in self.children(_segments(table))}

    def segment_stats(self, table: str) -> Mapping[str, Stat]:
        """When every segment's node was written, by name."""
        return self.child_stats(_segments(table))

    def segment_node(self, table: str, segment: str) -> Node:
        """One segment's node with its version, to be written back with `write_segment`.

        :raises PinotNotFound: there is none.
        """
        return self.versioned_node(f"{_segments(table)}/{segment}")

    def committing_listed(self, table: str) -> frozenset[str]:
        """Names in the list of committing segments, as it stands; empty before 1.4."""
        node = self.node(f"PROPERTYSTORE/PAUSELESS_DEBUG_METADATA/{table}")
        return frozenset(node.lists.get("committingSegments", ()) if node is not None else ())

    def pending_messages(self, table: str, server: str) -> frozenset[str]:
        """Segments of the table about which a state transition waits for that server: a message is of one,
        or of a batch."""
        return frozenset(
            segment
            for message in self.children(f"INSTANCES/{server}/MESSAGES")
            if message.simple.get("RESOURCE_NAME") == table
            for segment in message.lists.get("PARTITION_NAME") or [message.simple.get("PARTITION_NAME", "")]
            if segment
        )

    # --- consumption -------------------------------------------------------------------------------

    def consuming_segments(self, table: str) -> Mapping[str, list[JsonObject]]:
        """What the servers say of their consuming segments: segment → one entry for each server.

        Keys: `serverName`, `consumerState`, `lastConsumedTimestamp`, `partitionToOffsetMap`, and from 1.0 on
        `partitionOffsetInfo`. Servers that do not answer are left out.
        """
        answer = self._get(f"/tables/{quoted(table)}/consumingSegmentsInfo")
        # Named as the field of the Java class is, underscore and all.
        by_segment = answer.get("_segmentToConsumingInfoMap", answer.get("segmentToConsumingInfoMap"))
        return by_segment or {}

    def rebalance_status(self, job: str) -> JsonMapping:
        """How a rebalance stands. 1.0 on."""
        value: JsonMapping = self._get(f"/rebalanceStatus/{quoted(job)}")
        return value

    # --- servers -----------------------------------------------------------------------------------

    def live_since(self) -> Mapping[str, int]:
        """Instances that live → since when, epoch milliseconds."""
        return {name: stat.created_ms for name, stat in self.child_stats("LIVEINSTANCES").items()}

    def offline_since(self, server: str) -> int | None:
        """When an instance that does not live was last seen; None where Helix does not say."""
        node = self.node(f"INSTANCES/{server}/HISTORY")
        since = int(node.simple.get("LAST_OFFLINE_TIME", -1)) if node is not None else -1
        return since if since >= 0 else None

    def instance(self, name: str) -> JsonObject:
        """One instance: `hostName`, `adminPort`, and `adminHttpsPort`, which Pinot's own answer leaves out.

        :raises PinotNotFound: there is none of that name.
        """
        fields, config = super().instance(name), self.node(f"CONFIGS/PARTICIPANT/{name}")
        port = config.simple.get("adminHttpsPort") if config is not None else None
        return fields if port is None else {**fields, "adminHttpsPort": port}

    def admin_url(self, instance: JsonMapping) -> str | None:
        """Address of a server's admin endpoint, None where it names none; where it speaks both schemes, the
        controller's.

        :param instance: as `instance` returns it.
        """
        host = str(instance["hostName"]).removeprefix("Server_")
        ports = {"http": instance.get("adminPort"), "https": instance.get("adminHttpsPort")}
        known = {scheme: port for scheme, value in ports.items() if (port := int(value or -1)) > 0}
        scheme = self._scheme if self._scheme in known else next(iter(known), None)
        return f"{scheme}://{host}:{known[scheme]}" if scheme is not None else None

    def ask_if_ready(self, admin_url: str) -> bool:
        """Whether a server says that it serves; False while it is STARTING.

        :raises PinotUnreachable: nobody answers there.
        """
        try:
            self._clients.at(admin_url).send(HttpCall("GET", "/health/readiness", CallKind.READ))
        except NotReady:
            return False
        return True

    # --- what is set -------------------------------------------------------------------------------

    def controller_config(self) -> AppConfig:
        """Settings of the controller that answers."""
        return AppConfig.from_json(self._get("/appconfigs"))

    def config_at(self, url: str) -> AppConfig:
        """Settings of the server (admin address) or broker at that address."""
        return AppConfig.from_json(self._clients.at(url).get_json("/appconfigs"))

    def cluster_config(self) -> AppConfig:
        """Settings of the cluster."""
        return AppConfig.of(self._get("/cluster/configs") or {})

    # --- brokers -----------------------------------------------------------------------------------

    def brokers_of(self, table: str) -> tuple[str, ...]:
        """Addresses of the brokers that answer for the table; the connection's own list comes first."""
        try:
            return self._brokers(table.removesuffix("_REALTIME"), "REALTIME")
        except PinotNotFound as error:
            raise PinotError("no broker is online for the table", why=error.why) from None

    def answered_rows(self, broker: str, table: str) -> Mapping[str, int]:
        """Rows that a query finds now, by segment; superseded rows of upsert tables count.

        :raises PinotError: no whole answer.
        """
        ideal = self.ideal_state(table)
        sql = f'SELECT $segmentName, COUNT(*) FROM "{table}" GROUP BY $segmentName'
        there = len(ideal.maps) if ideal is not None else 0
        counts = Broker(broker, self._clients).of_segments(sql, there, {"skipUpsert": "true"})
        return {str(segment): int(rows) for segment, rows in counts}


def _segments(table: str) -> str:
    return f"PROPERTYSTORE/SEGMENTS/{table}"


VALIDATION: Final = "RealtimeSegmentValidationManager"

SEGMENT_LEVEL: Final = {"runSegmentLevelValidation": "true"}
"""Runs the daily part of the validation manager too: missing uploads, the list of committing segments."""

NAMES_A_CALL: Final = 50
"""Segment names that one URL is given."""


class RealtimePinot(RealtimeReads):
    """One Pinot cluster, for REALTIME tables. Thread-safe; close it, or use it in a `with`.

    What changes a table: one thin method for each call of Pinot, none of which waits for its effect. A 200
    says that Pinot has taken the order, never that it is done: read the table again. An answer that was lost
    raises `SwitchStateUnknown`: it may have happened, or still may. Releases are those whose source has the
    call (0.11.0 to 1.5.1); an older one refuses with `PinotNotFound`, or 405.
    """

    # --- consumption -----------------------------------------------------------------------------

    def pause(self, table: str, comment: str = "") -> None:
        """Pause the table and commit what is being consumed. 0.11 on; the comment is kept from 1.3 on.

        Refused as `force_commit` is.
        """
        self._write("POST", f"/tables/{quoted(table)}/pauseConsumption", **_comment(comment))

    def resume(self, table: str, comment: str = "") -> None:
        """Clear the table's pause and run its validation; each partition goes on where it was. 0.11 on."""
        self._write("POST", f"/tables/{quoted(table)}/resumeConsumption", **_comment(comment))

    def force_commit(self, table: str) -> str | None:
        """Ask the servers to commit what they consume; returns the job's id, None before 1.0. 0.11 on.

        Refused (500) for partial upsert and out-of-order tables while the consistency mode is RESTRICTED.
        """
        call = HttpCall("POST", f"/tables/{quoted(table)}/forceCommit", CallKind.WRITE)
        return (self._client.send_json(call) or {}).get("forceCommitJobId")  # empty before 1.0

    # --- the controller's own repair -----------------------------------------------------------------

    def run_validation(self, table: str) -> None:
        """Run the validation manager's hourly part for the table. 0.11 on.

        On 0.11 to 1.3 the daily part runs along when its day is over, and there is no other way to it.
        """
        self._write("GET", "/periodictask/run", **_validation(table))

    def run_validation_with(self, table: str, properties: Mapping[str, str]) -> None:
        """Run it with properties, such as `SEGMENT_LEVEL`. 1.4 on; 405 before."""
        self._write("POST", "/periodictask/run", body=dict(properties), **_validation(table))

    def upload_to_deep_store(self, table: str, segments: Collection[str]) -> None:
        """Have peers-only segments uploaded by a server that serves them. 1.5.0 on.

        Only queued, and dropped without a word where the segment is too young (300 s since its node was
        written, pauseless tables), is about to leave the retention time, or has a copy.

        :raises ValueError: no segments, for which Pinot does nothing and says 200.
        """
        self._upload(table, segments, {})

    def force_upload_to_deep_store(self, table: str, segments: Collection[str]) -> None:
        """Like `upload_to_deep_store`, whatever their age, and also those that have a copy. 1.5.0 on."""
        self._upload(table, segments, {"forceMode": "true"})

    def _upload(self, table: str, segments: Collection[str], force: Mapping[str, str]) -> None:
        path = f"/segments/{quoted(table)}/uploadFromServerToDeepstore"
        names = sorted(_some(segments))
        for start in range(0, len(names), NAMES_A_CALL):
            self._write("POST", path, segmentNames=names[start : start + NAMES_A_CALL], **force)

    def reset_replica(self, table: str, segment: str, server: str) -> None:
        """Take one server's copy to OFFLINE and back, which loads or consumes it again. 0.11 on.

        Nothing happens to a copy that the external view has as OFFLINE or not at all. Without a server Pinot
        would reset the healthy copies as well, so there is no such method here.
        """
        self._write("POST", f"/segments/{quoted(table)}/{quoted(segment)}/reset", targetInstance=server)

    # --- servers ---------------------------------------------------------------------------------------

    def server_uploads(self, admin_url: str, table: str, segment: str, seconds: float) -> str:
        """Have a server upload its copy into its own segment store; returns the URL. 0.11 on.

        The segment's node is not written: see `write_segment`. The file is `<segment>.tmp.<uuid>` there,
        before 1.3 `<segment><uuid>`, and nothing moves it to another name.

        :param seconds: how long it may take.
        """
        path = f"/segments/{quoted(table)}/{quoted(segment)}/upload"
        return self._clients.at(admin_url).send(HttpCall("POST", path, CallKind.WRITE, seconds)).strip()

    def server_crc(self, admin_url: str, table: str, segment: str) -> str:
        """CRC of a server's own copy; replicas that built it by themselves may have others. 0.11 on."""
        path = f"/tables/{quoted(table)}/segments/{quoted(segment)}/metadata"
        return str(self._clients.at(admin_url).get_json(path)["crc"])

    def server_uploads_committed(
        self, admin_url: str, table: str, segment: str, seconds: float
    ) -> Mapping[str, str]:
        """Like `server_uploads`; returns the fields that the node should have, status DONE. 1.4 on.

        A copy that is not sealed is refused (`PinotNotFound`).
        """
        path = f"/segments/{quoted(table)}/{quoted(segment)}/uploadCommittedSegment"
        node = self._clients.at(admin_url).send_json(HttpCall("POST", path, CallKind.WRITE, seconds))
        return {str(key): str(value) for key, value in (node.get("simpleFields") or {}).items()}

    def reingest(self, admin_url: str, segment: str) -> str:
        """Have a server read a COMMITTING segment from the stream again; returns the job's id. 1.4 on.

        It commits what the stream still holds: offsets that have expired are left out without an error, so
        look at the stream's earliest offset before. Refused: 400 where the node has a URL, even an empty
        one; 409 where it runs already. Needs a segment store.
        """
        call = HttpCall("POST", f"/reingestSegment/{quoted(segment)}", CallKind.WRITE)
        return str(self._clients.at(admin_url).send_json(call)["jobId"])

    # --- nodes, segments, config -----------------------------------------------------------------------

    def write_segment(self, table: str, node: Node) -> None:
        """Write a segment's node, if nobody wrote it since it was read. 0.11 on.

        :param node: of `segment_node`, `with_fields`.
        :raises PinotError: also when it was written since (500): read it again.
        """
        self.put_node(f"PROPERTYSTORE/SEGMENTS/{table}/{node.id}", node)

    def preview_delete_from(self, table: str, segments: Collection[str]) -> JsonMapping:
        """What `delete_from` would delete: `partitions`, by number, with `segmentsToDelete`. 1.4 on.

        Refused as the deletion itself is.
        """
        path = f"/deleteSegmentsFromSequenceNum/{quoted(table)}"
        params = {"segments": sorted(_some(segments)), "dryRun": "true"}
        return _values(self._client.send_json(HttpCall("DELETE", path, CallKind.READ, params=params)))

    def delete_from(self, table: str, segments: Collection[str]) -> None:
        """Delete these segments and every later one of their partitions. 1.4 on.

        Pinot wants the table pauseless and paused for it.

        :raises ValueError: no segments.
        """
        path = f"/deleteSegmentsFromSequenceNum/{quoted(table)}"
        # Left out, dryRun means false, whatever its help text says.
        self._write("DELETE", path, segments=sorted(_some(segments)), dryRun="false")

    def update_realtime_config(self, config: JsonMapping) -> None:
        """Replace the table config. 0.11 on.

        :param config: the whole table config, as `table_config` returns it.
        """
        name = str(config["tableName"]).removesuffix("_REALTIME")
        self._write("PUT", f"/tables/{quoted(name)}", body=dict(config))

    # --- rebalance -------------------------------------------------------------------------------------

    def preview_rebalance(self, table: str, options: Mapping[str, str]) -> JsonMapping:
        """What a rebalance would do: `status`, `segmentAssignment`, from 1.4 on `preChecksResult`. 0.11 on.

        :param options: query parameters of Pinot, e.g. `{"minAvailableReplicas": "1"}`.
        """
        return self._rebalance(CallKind.READ, table, {**options, "dryRun": "true", "preChecks": "true"})

    def rebalance(self, table: str, options: Mapping[str, str]) -> JsonMapping:
        """Start a rebalance; it runs on in the controller, with a `jobId` from 1.0 on. 0.11 on."""
        return self._rebalance(CallKind.WRITE, table, {**options, "dryRun": "false"})

    def _rebalance(self, kind: CallKind, table: str, params: Mapping[str, str]) -> JsonMapping:
        path = f"/tables/{quoted(table)}/rebalance"
        return _values(
            self._client.send_json(HttpCall("POST", path, kind, params={"type": "REALTIME", **params}))
        )


def _values(reply: object) -> JsonMapping:
    return reply if isinstance(reply, dict) else {}


def _some(segments: Collection[str]) -> Collection[str]:
    if not segments:
        raise ValueError("no segments are named")
    return segments


def _comment(text: str) -> dict[str, str]:
    return {"comment": text} if text else {}


def _validation(table: str) -> dict[str, str]:
    return {"taskname": VALIDATION, "tableName": table.removesuffix("_REALTIME"), "type": "REALTIME"}
