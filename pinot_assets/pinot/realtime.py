"""Reads and changes REALTIME tables in Pinot, one method for each question or call, 0.11.0 to 1.5.1.

Nearly all reads come from ZooKeeper through the controller: ideal state and external view, the segments'
nodes with the time of their last write (from which Pinot counts its 300 s), pending messages, live instances.
The nodes are the same in every release and show more than Pinot's own calls: `pauseStatus` does not show
paused topics, `pauselessDebugInfo` leaves out names that should not be in its list. Every `table`
is the name with `_REALTIME`. Source: docs/design/realtime.md#s4 to #s9.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pinot_assets.core.json_object import JsonMapping, JsonObject
from pinot_assets.core.untrusted import typed
from pinot_assets.errors import PinotError, PinotNotFound
from pinot_assets.pinot.client.app_config import AppConfig
from pinot_assets.pinot.client.broker import Broker
from pinot_assets.pinot.client.helix_nodes import Node, Nodes, Stat
from pinot_assets.pinot.client.http import CallKind, HttpCall, NotReady, quoted


class RealtimeReads(Nodes):
    """The reads of `RealtimePinot`. Every method raises `PinotError` or one of its subclasses."""

    # --- the table ---------------------------------------------------------------------------------

    def realtime_tables(self) -> tuple[str, ...]:
        """Return the names of all REALTIME tables, with `_REALTIME`, sorted."""
        names = self._get("/tables", type="realtime")["tables"]
        return tuple(sorted(f"{str(name).removesuffix('_REALTIME')}_REALTIME" for name in names))

    def table_config(self, table: str) -> JsonObject | None:
        """Return the table's config as JSON values, None if there is no such table."""
        return self.get_realtime_config(table.removesuffix("_REALTIME"))

    def ideal_state(self, table: str) -> Node | None:
        """Return the ideal state: `maps` is segment → server → state, `simple` shows whether it is paused."""
        return self.node(f"IDEALSTATES/{table}")

    def external_view(self, table: str) -> Mapping[str, Mapping[str, str]]:
        """Return segment → server → state, for the servers that report one."""
        node = self.node(f"EXTERNALVIEW/{table}")
        return node.maps if node is not None else {}

    def segment_nodes(self, table: str) -> Mapping[str, Mapping[str, str]]:
        """Return the fields of every segment's node, by segment name."""
        return {node.id: node.simple for node in self.children(_segments(table))}

    def segment_stats(self, table: str) -> Mapping[str, Stat]:
        """Return when every segment's node was written, by segment name."""
        return self.child_stats(_segments(table))

    def segment_node(self, table: str, segment: str) -> Node:
        """Return one segment's node with its version, for a later `write_segment`.

        :raises PinotNotFound: there is no such node.
        """
        return self.versioned_node(f"{_segments(table)}/{segment}")

    def committing_listed(self, table: str) -> frozenset[str]:
        """Return the names in Pinot's list of committing segments, unchecked; none before 1.4."""
        node = self.node(f"PROPERTYSTORE/PAUSELESS_DEBUG_METADATA/{table}")
        return frozenset(node.lists.get("committingSegments", ()) if node is not None else ())

    def pending_messages(self, table: str, server: str) -> frozenset[str]:
        """Return the segments of the table for which a state transition waits for that server. A message
        concerns one segment or a batch of them."""
        return frozenset(
            segment
            for message in self.children(f"INSTANCES/{server}/MESSAGES")
            if message.simple.get("RESOURCE_NAME") == table
            for segment in message.lists.get("PARTITION_NAME") or [message.simple.get("PARTITION_NAME", "")]
            if segment
        )

    # --- consumption -------------------------------------------------------------------------------

    def consuming_segments(self, table: str) -> Mapping[str, list[JsonObject]]:
        """Return what the servers report about their consuming segments: segment → one entry for each server.

        Keys: `serverName`, `consumerState`, `lastConsumedTimestamp`, `partitionToOffsetMap`, and from 1.0 on
        `partitionOffsetInfo`. Servers that do not answer are left out.
        """
        answer = self._get(f"/tables/{quoted(table)}/consumingSegmentsInfo")
        # The key is the name of the field in Pinot's Java class, with its underscore.
        by_segment = answer.get("_segmentToConsumingInfoMap", answer.get("segmentToConsumingInfoMap"))
        return by_segment or {}

    def rebalance_status(self, job: str) -> JsonMapping:
        """Return the status of a rebalance job. 1.0 on."""
        return self._get(f"/rebalanceStatus/{quoted(job)}")

    # --- servers -----------------------------------------------------------------------------------

    def live_since(self) -> Mapping[str, int]:
        """Return the live instances, each with the time since when it is live, in epoch milliseconds."""
        return {name: stat.created_ms for name, stat in self.child_stats("LIVEINSTANCES").items()}

    def offline_since(self, server: str) -> int | None:
        """Return when an instance that is down went offline (epoch ms); None if Helix has no time."""
        node = self.node(f"INSTANCES/{server}/HISTORY")
        since = int(node.simple.get("LAST_OFFLINE_TIME", -1)) if node is not None else -1
        return since if since >= 0 else None

    def instance(self, name: str) -> JsonObject:
        """Return an instance: `hostName`, `adminPort`, and `adminHttpsPort`, which Pinot's answer leaves out.

        :raises PinotNotFound: there is no instance of that name.
        """
        fields, config = super().instance(name), self.node(f"CONFIGS/PARTICIPANT/{name}")
        port = config.simple.get("adminHttpsPort") if config is not None else None
        return fields if port is None else {**fields, "adminHttpsPort": port}

    def admin_url(self, instance: JsonMapping) -> str | None:
        """Return the address of a server's admin endpoint, None if it names no port. If it has a port for
        each scheme, the controller's scheme decides.

        :param instance: as `instance` returns it.
        """
        host = str(instance["hostName"]).removeprefix("Server_")
        ports = {"http": instance.get("adminPort"), "https": instance.get("adminHttpsPort")}
        known = {scheme: port for scheme, value in ports.items() if (port := int(value or -1)) > 0}
        scheme = self._scheme if self._scheme in known else next(iter(known), None)
        return f"{scheme}://{host}:{known[scheme]}" if scheme is not None else None

    def ask_if_ready(self, admin_url: str) -> bool:
        """Whether a server reports that it serves; False while it is STARTING.

        :raises PinotUnreachable: there is no answer from that address.
        """
        try:
            self._clients.at(admin_url).send(HttpCall("GET", "/health/readiness", CallKind.READ))
        except NotReady:
            return False
        return True

    # --- what is set -------------------------------------------------------------------------------

    def controller_config(self) -> AppConfig:
        """Return the settings of the controller that answers."""
        return AppConfig.from_json(self._get("/appconfigs"))

    def config_at(self, url: str) -> AppConfig:
        """Return the settings of the server (by its admin address) or broker at that address."""
        return AppConfig.from_json(self._clients.at(url).get_fields("/appconfigs"))

    def cluster_config(self) -> AppConfig:
        """Return the settings of the cluster."""
        return AppConfig.of(self._get("/cluster/configs"))

    # --- brokers -----------------------------------------------------------------------------------

    def brokers_of(self, table: str) -> tuple[str, ...]:
        """Return the addresses of the table's brokers: those of the connection if it lists any."""
        try:
            return self._brokers(table.removesuffix("_REALTIME"), "REALTIME")
        except PinotNotFound as error:
            raise PinotError("no broker is online for the table", why=error.why) from None

    def answered_rows(self, broker: str, table: str) -> Mapping[str, int]:
        """Return the rows that a query finds now, by segment; replaced rows of upsert tables count, too.

        :raises PinotError: the answer is not complete.
        """
        ideal = self.ideal_state(table)
        sql = f'SELECT $segmentName, COUNT(*) FROM "{table}" GROUP BY $segmentName'
        there = len(ideal.maps) if ideal is not None else 0
        counts = Broker(broker, self._clients).of_segments(sql, there, {"skipUpsert": "true"})
        return {str(segment): typed(rows, int) for segment, rows in counts}


def _segments(table: str) -> str:
    return f"PROPERTYSTORE/SEGMENTS/{table}"


VALIDATION: Final = "RealtimeSegmentValidationManager"

SEGMENT_LEVEL: Final = {"runSegmentLevelValidation": "true"}
"""Makes the validation manager run its daily part, too: missing uploads, the list of committing segments."""

NAMES_A_CALL: Final = 50
"""Number of segment names that we put into one URL."""


class RealtimePinot(RealtimeReads):
    """One Pinot cluster, for REALTIME tables. Thread-safe; close it, or use it in a `with`.

    A method that changes a table is one call of Pinot and does not wait for its effect. A 200 means that
    Pinot accepted the order, not that it is done: read the table again. If the answer is lost, the method
    raises `SwitchStateUnknown`: the change may have happened, or still may. "1.4 on" names the first release
    whose source has the call (0.11.0 to 1.5.1); an older one refuses with `PinotNotFound`, or 405.
    """

    # --- consumption -----------------------------------------------------------------------------

    def pause(self, table: str, comment: str = "") -> None:
        """Pause the table and commit what it consumes. 0.11 on; Pinot keeps the comment from 1.3 on.

        Pinot refuses this in the same cases as `force_commit`.
        """
        self._write("POST", f"/tables/{quoted(table)}/pauseConsumption", **_comment(comment))

    def resume(self, table: str, comment: str = "") -> None:
        """End the table's pause and run its validation; each partition continues at its offset. 0.11 on."""
        self._write("POST", f"/tables/{quoted(table)}/resumeConsumption", **_comment(comment))

    def force_commit(self, table: str) -> str | None:
        """Make the servers commit what they consume; return the job's id, None before 1.0. 0.11 on.

        Pinot refuses (500) partial upsert and out-of-order tables while the consistency mode is RESTRICTED.
        """
        call = HttpCall("POST", f"/tables/{quoted(table)}/forceCommit", CallKind.WRITE)
        job: str | None = self._client.send_fields(call).get("forceCommitJobId")  # empty before 1.0
        return job

    # --- the controller's own repair -----------------------------------------------------------------

    def run_validation(self, table: str) -> None:
        """Run the validation manager's hourly part for the table. 0.11 on.

        On 0.11 to 1.3 this also runs the daily part if a day is over; there is no other call for it.
        """
        self._write("GET", "/periodictask/run", **_validation(table))

    def run_validation_with(self, table: str, properties: Mapping[str, str]) -> None:
        """Run the validation with properties, such as `SEGMENT_LEVEL`. 1.4 on; 405 before."""
        self._write("POST", "/periodictask/run", body=dict(properties), **_validation(table))

    def upload_to_deep_store(self, table: str, segments: Collection[str]) -> None:
        """Make a server upload segments that only servers have (peer download). 1.5.0 on.

        Pinot only queues this. It silently drops a segment that is too young (300 s since the write of its
        node, pauseless tables), that retention will delete soon, or that has a copy in the deep store.

        :raises ValueError: no segments are named; Pinot would do nothing and answer 200.
        """
        self._upload(table, segments, {})

    def force_upload_to_deep_store(self, table: str, segments: Collection[str]) -> None:
        """Like `upload_to_deep_store`, but of any age, and also segments that have a copy. 1.5.0 on."""
        self._upload(table, segments, {"forceMode": "true"})

    def _upload(self, table: str, segments: Collection[str], force: Mapping[str, str]) -> None:
        path = f"/segments/{quoted(table)}/uploadFromServerToDeepstore"
        names = sorted(_some(segments))
        for start in range(0, len(names), NAMES_A_CALL):
            self._write("POST", path, segmentNames=names[start : start + NAMES_A_CALL], **force)

    def reset_replica(self, table: str, segment: str, server: str) -> None:
        """Set one server's copy to OFFLINE and back, so that it loads or consumes it again. 0.11 on.

        It has no effect on a copy that the external view shows as OFFLINE or not at all. Without a server
        Pinot would also reset the healthy copies, so this method always needs one.
        """
        self._write("POST", f"/segments/{quoted(table)}/{quoted(segment)}/reset", targetInstance=server)

    # --- servers ---------------------------------------------------------------------------------------

    def server_uploads(self, admin_url: str, table: str, segment: str, seconds: float) -> str:
        """Make a server upload its copy into its own segment store; return the URL. 0.11 on.

        It does not write the segment's node: see `write_segment`. The file there is `<segment>.tmp.<uuid>`,
        before 1.3 `<segment><uuid>`, and it keeps that name.

        :param seconds: the deadline of the call.
        """
        path = f"/segments/{quoted(table)}/{quoted(segment)}/upload"
        return self._clients.at(admin_url).send(HttpCall("POST", path, CallKind.WRITE, seconds)).strip()

    def server_crc(self, admin_url: str, table: str, segment: str) -> str:
        """Return the CRC of a server's copy; replicas that were built separately may differ. 0.11 on."""
        path = f"/tables/{quoted(table)}/segments/{quoted(segment)}/metadata"
        return str(self._clients.at(admin_url).get_fields(path)["crc"])

    def server_uploads_committed(
        self, admin_url: str, table: str, segment: str, seconds: float
    ) -> Mapping[str, str]:
        """Like `server_uploads`, but return the fields that the node should have, status DONE. 1.4 on.

        The server refuses a copy that is not sealed (`PinotNotFound`).
        """
        path = f"/segments/{quoted(table)}/{quoted(segment)}/uploadCommittedSegment"
        node = self._clients.at(admin_url).send_fields(HttpCall("POST", path, CallKind.WRITE, seconds))
        return {str(key): str(value) for key, value in (node.get("simpleFields") or {}).items()}

    def reingest(self, admin_url: str, segment: str) -> str:
        """Make a server read a COMMITTING segment from the stream again; return the job's id. 1.4 on.

        It commits what the stream still has and leaves out expired offsets without an error, so read the
        stream's earliest offset before. Pinot refuses with 400 if the node has a URL, even an empty one; with
        409 if the job runs already. It needs a segment store.
        """
        call = HttpCall("POST", f"/reingestSegment/{quoted(segment)}", CallKind.WRITE)
        return str(self._clients.at(admin_url).send_fields(call)["jobId"])

    # --- nodes, segments, config -----------------------------------------------------------------------

    def write_segment(self, table: str, node: Node) -> None:
        """Write a segment's node, unless it was written after it was read. 0.11 on.

        :param node: a node of `segment_node`, changed by `with_fields`.
        :raises PinotError: also if the node was written in between (500): read it again.
        """
        self.put_node(f"PROPERTYSTORE/SEGMENTS/{table}/{node.id}", node)

    def preview_delete_from(self, table: str, segments: Collection[str]) -> JsonMapping:
        """Return what `delete_from` would delete: `partitions`, by number, with `segmentsToDelete`. 1.4 on.

        Pinot refuses this in the same cases as the deletion itself.
        """
        path = f"/deleteSegmentsFromSequenceNum/{quoted(table)}"
        params = {"segments": sorted(_some(segments)), "dryRun": "true"}
        return _values(self._client.send_json(HttpCall("DELETE", path, CallKind.READ, params=params)))

    def delete_from(self, table: str, segments: Collection[str]) -> None:
        """Delete these segments and every later one of their partitions. 1.4 on.

        Pinot requires that the table is pauseless and paused.

        :raises ValueError: no segments are named.
        """
        path = f"/deleteSegmentsFromSequenceNum/{quoted(table)}"
        # Without dryRun Pinot deletes, although its help text says otherwise.
        self._write("DELETE", path, segments=sorted(_some(segments)), dryRun="false")

    def update_realtime_config(self, config: JsonMapping) -> None:
        """Replace the table config. 0.11 on.

        :param config: the whole table config, as `table_config` returns it.
        """
        name = str(config["tableName"]).removesuffix("_REALTIME")
        self._write("PUT", f"/tables/{quoted(name)}", body=dict(config))

    # --- rebalance -------------------------------------------------------------------------------------

    def preview_rebalance(self, table: str, options: Mapping[str, str]) -> JsonMapping:
        """Return what a rebalance would do: `status`, `segmentAssignment`, 1.4 on `preChecksResult`. 0.11 on.

        :param options: Pinot's query parameters, e.g. `{"minAvailableReplicas": "1"}`.
        """
        return self._rebalance(CallKind.READ, table, {**options, "dryRun": "true", "preChecks": "true"})

    def rebalance(self, table: str, options: Mapping[str, str]) -> JsonMapping:
        """Start a rebalance, which the controller continues; from 1.0 on it has a `jobId`. 0.11 on."""
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
