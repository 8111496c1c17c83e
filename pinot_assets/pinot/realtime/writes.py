"""What changes a REALTIME table: one thin method for each call of Pinot, none of which waits for its effect.

A 200 says that Pinot has taken the order, never that it is done: read the table again. An answer that was
lost raises `SwitchStateUnknown`: it may have happened, or still may. Releases are those whose source has the
call (0.11.0 to 1.5.1); an older one refuses with `PinotNotFound`, or 405. Every `table` is the name with
`_REALTIME`. Source: docs/design/realtime.md#s6 to #s9.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pinot_assets.core.json_object import JsonMapping
from pinot_assets.pinot.client.helix_nodes import Node, Nodes
from pinot_assets.pinot.client.http import CallKind, HttpCall
from pinot_assets.pinot.client.tables import quoted

VALIDATION: Final = "RealtimeSegmentValidationManager"

SEGMENT_LEVEL: Final = {"runSegmentLevelValidation": "true"}
"""Runs the daily part of the validation manager too: missing uploads, the list of committing segments."""

NAMES_A_CALL: Final = 50
"""Segment names that one URL is given."""


class RealtimeWrites(Nodes):
    """The writing half of `RealtimePinot`. Errors of every method: `PinotError` and its subclasses."""

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
        path, seconds = f"/tables/{quoted(table)}/forceCommit", self.connection.timeouts.call
        told = self._door.send_json(HttpCall("POST", path, CallKind.WRITE, seconds)) or {}  # empty before 1.0
        return told.get("forceCommitJobId")

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
            params = {"segmentNames": names[start : start + NAMES_A_CALL], **force}
            self._door.send(
                HttpCall("POST", path, CallKind.WRITE, self.connection.timeouts.call, params=params)
            )

    def reset_replica(self, table: str, segment: str, server: str) -> None:
        """Take one server's copy to OFFLINE and back, which loads or consumes it again. 0.11 on.

        Nothing happens to a copy that the external view has as OFFLINE or not at all. Without a server Pinot
        would reset the healthy copies as well, so there is no such method here.
        """
        path = f"/segments/{quoted(table)}/{quoted(segment)}/reset"
        self._write("POST", path, targetInstance=server)

    # --- servers ---------------------------------------------------------------------------------------

    def server_uploads(self, admin_url: str, table: str, segment: str, seconds: float) -> str:
        """Have a server upload its copy into its own segment store; returns the URL. 0.11 on.

        The segment's node is not written: see `write_segment`. The file is `<segment>.tmp.<uuid>` there,
        before 1.3 `<segment><uuid>`, and nothing moves it to another name.

        :param seconds: how long it may take.
        """
        path = f"/segments/{quoted(table)}/{quoted(segment)}/upload"
        return self._doors.at(admin_url).send(HttpCall("POST", path, CallKind.WRITE, seconds)).strip()

    def server_crc(self, admin_url: str, table: str, segment: str) -> str:
        """CRC of a server's own copy; replicas that built it by themselves may have others. 0.11 on."""
        path = f"/tables/{quoted(table)}/segments/{quoted(segment)}/metadata"
        call = HttpCall("GET", path, CallKind.READ, self.connection.timeouts.call)
        return str(self._doors.at(admin_url).send_json(call)["crc"])

    def server_uploads_committed(
        self, admin_url: str, table: str, segment: str, seconds: float
    ) -> Mapping[str, str]:
        """Like `server_uploads`; returns the fields that the node should have, status DONE. 1.4 on.

        A copy that is not sealed is refused (`PinotNotFound`).
        """
        path = f"/segments/{quoted(table)}/{quoted(segment)}/uploadCommittedSegment"
        told = self._doors.at(admin_url).send_json(HttpCall("POST", path, CallKind.WRITE, seconds))
        return {str(key): str(value) for key, value in (told.get("simpleFields") or {}).items()}

    def reingest(self, admin_url: str, segment: str) -> str:
        """Have a server read a COMMITTING segment from the stream again; returns the job's id. 1.4 on.

        It commits what the stream still holds: offsets that have expired are left out without an error, so
        look at the stream's earliest offset before. Refused: 400 where the node has a URL, even an empty
        one; 409 where it runs already. Needs a segment store.
        """
        call = HttpCall(
            "POST", f"/reingestSegment/{quoted(segment)}", CallKind.WRITE, self.connection.timeouts.call
        )
        return str(self._doors.at(admin_url).send_json(call)["jobId"])

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
        call = HttpCall("DELETE", path, CallKind.READ, self.connection.timeouts.call, params=params)
        return _values(self._door.send_json(call))

    def delete_from(self, table: str, segments: Collection[str]) -> None:
        """Delete these segments and every later one of their partitions. 1.4 on.

        Pinot wants the table pauseless and paused for it.

        :raises ValueError: no segments.
        """
        path = f"/deleteSegmentsFromSequenceNum/{quoted(table)}"
        # Left out, dryRun means false, whatever its help text says.
        params = {"segments": sorted(_some(segments)), "dryRun": "false"}
        self._door.send(
            HttpCall("DELETE", path, CallKind.WRITE, self.connection.timeouts.call, params=params)
        )

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
        params = {"type": "REALTIME", **params}
        return _values(
            self._door.send_json(HttpCall("POST", path, kind, self.connection.timeouts.call, params=params))
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
