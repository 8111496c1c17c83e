"""The controller's REST API about segments and their lineage. OFFLINE tables only.

Two traps are answered here. Up to 0.11 `GET /segments/{table}` reads the property store, which lists a
deleted segment for some seconds more, and what a failed upload left behind, so what is *in the table* is read
from the ideal state. And a lineage refusal may say nothing but "Failed to update the segment lineage", so the
reason is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from pinot_assets.core.json_object import JsonObject
from pinot_assets.core.untrusted import fields_of_json
from pinot_assets.errors import PinotError, PinotNotFound, SwitchConflict
from pinot_assets.pinot.client.http import CallKind, HttpCall
from pinot_assets.pinot.client.tables import TableCalls, quoted
from pinot_assets.pinot.lineage import Lineage, why_not_end, why_not_revert, why_not_start
from pinot_assets.pinot.segments import Replicas, SegmentMetadata


class Controller(TableCalls):
    """A client of one controller. Thread-safe; close it, or use it in a `with`.

    Errors of every method: see `pinot_assets.pinot.api.PinotClient`.
    """

    # --- segments --------------------------------------------------------------------------------

    def ideal_state(self, table: str) -> Replicas:
        """What Pinot wants: segment → instance → state."""
        return self._view(table, "idealstate")

    def external_view(self, table: str) -> Replicas:
        """What servers report: segment → instance → state; empty where there is no such table either."""
        try:
            return self._view(table, "externalview")
        except PinotNotFound:
            # A new table has none until its first segment is assigned.
            return {}

    def _view(self, table: str, view: str) -> Replicas:
        value: Replicas | None = self._get(f"/tables/{quoted(table)}/{view}", tableType="OFFLINE")["OFFLINE"]
        return value or {}

    def all_segments(self, table: str) -> frozenset[str]:
        """See `PinotClient.all_segments`."""
        return frozenset(self.ideal_state(table))

    def visible_segments(self, table: str) -> frozenset[str]:
        """See `PinotClient.visible_segments`."""
        # The lineage second: a segment pushed under an entry is never seen without that entry.
        segments = self.all_segments(table)
        return frozenset(self.lineage(table).visible(segments))

    def registered_segments(self, table: str) -> frozenset[str]:
        """Names with metadata in ZooKeeper: those in the table, and those of uploads that failed or are under
        way. Where ZooKeeper may not be listed, what Pinot's own listing shows (the left-overs up to 0.11)."""
        with suppress(PinotError):
            cluster = self._get("/cluster/info")["clusterName"]
            return frozenset(self._get("/zk/ls", path=f"/{cluster}/PROPERTYSTORE/SEGMENTS/{table}_OFFLINE"))
        listed = self._get(f"/segments/{quoted(table)}", type="OFFLINE")
        return frozenset(name for part in listed for name in part.get("OFFLINE", ()))

    def online_replicas(self, table: str, names: Collection[str]) -> Replicas:
        """See `PinotClient.online_replicas`."""
        ideal, external = self.ideal_state(table), self.external_view(table)
        return {
            name: {**dict.fromkeys(ideal.get(name, ()), "OFFLINE"), **external.get(name, {})}
            for name in names
        }

    def dropping_segments(self, table: str) -> frozenset[str]:
        """Names of what was deleted, of which servers still show a replica.

        :raises PinotNotFound: no such table.
        """
        external = self.external_view(table)
        # The ideal state second: what somebody adds in between is in both.
        return frozenset(external) - frozenset(self.ideal_state(table))

    def segment_crcs(self, table: str) -> dict[str, int]:
        """See `PinotClient.segment_crcs`."""
        crcs = self._get(f"/segments/{quoted(table)}/crc")
        # Of a segment in the ideal state whose metadata has gone there is none.
        return {name: int(crc) for name, crc in crcs.items() if crc not in (None, "null")}

    def segment_metadata(self, table: str, name: str) -> SegmentMetadata:
        """See `PinotClient.segment_metadata`."""
        value = self._get(f"/segments/{quoted(table)}_OFFLINE/{quoted(name)}/metadata")
        return SegmentMetadata(
            segment=name,
            crc=int(value["segment.crc"]),
            total_docs=int(value["segment.total.docs"]),
            custom=_custom(value.get("custom.map")),
            download_url=value.get("segment.download.url", ""),
            start_ms=_millis(value.get("segment.start.time")),
            end_ms=_millis(value.get("segment.end.time")),
            push_ms=_millis(value.get("segment.push.time")),
        )

    def delete_segments(self, table: str, names: Collection[str]) -> None:
        """See `PinotClient.delete_segments`."""
        if not names:
            raise ValueError("an empty list of segments to delete: Pinot would delete every segment")
        self._write("POST", f"/segments/{quoted(table)}_OFFLINE/delete", body=sorted(names))

    # --- lineage ---------------------------------------------------------------------------------

    def lineage(self, table: str) -> Lineage:
        """See `PinotClient.lineage`."""
        value = self._get(f"/segments/{quoted(table)}/lineage", type="OFFLINE")
        try:
            return Lineage() if value is None else Lineage.from_json(value)
        except ValueError as error:
            raise PinotError(f"the lineage of table {table} cannot be read", why=str(error)) from error

    def start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        """See `PinotClient.start_replace_segments`."""
        return self._start(table, segments_from, segments_to, {})

    def force_start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        """See `PinotClient.force_start_replace_segments`."""
        return self._start(table, segments_from, segments_to, {"forceCleanup": "true"})

    def _start(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str], force: dict[str, str]
    ) -> str:
        _check_names(segments_from, segments_to)
        body = {"segmentsFrom": sorted(segments_from), "segmentsTo": sorted(segments_to)}
        try:
            reply = self._replace(table, "startReplaceSegments", self.connection.timeouts.call, force, body)
        except SwitchConflict as refusal:
            raise _explained(
                refusal,
                lambda: why_not_start(
                    self.lineage(table), self.visible_segments(table), segments_from, segments_to
                ),
            ) from None
        return str(reply["segmentLineageEntryId"])

    def end_replace_segments(self, table: str, entry_id: str) -> None:
        """See `PinotClient.end_replace_segments`."""
        try:
            self._replace(
                table, "endReplaceSegments", self.connection.timeouts.end, {"segmentLineageEntryId": entry_id}
            )
        except SwitchConflict as refusal:
            raise _explained(
                refusal, lambda: why_not_end(self.lineage(table), self.all_segments(table), entry_id)
            ) from None

    def revert_replace_segments(self, table: str, entry_id: str) -> None:
        """See `PinotClient.revert_replace_segments`."""
        self._revert(table, {"segmentLineageEntryId": entry_id})

    def force_revert_replace_segments(self, table: str, entry_id: str) -> None:
        """See `PinotClient.force_revert_replace_segments`."""
        self._revert(table, {"segmentLineageEntryId": entry_id, "forceRevert": "true"})

    def _revert(self, table: str, params: dict[str, str]) -> None:
        entry_id = params["segmentLineageEntryId"]
        try:
            self._replace(table, "revertReplaceSegments", self.connection.timeouts.call, params)
        except SwitchConflict as refusal:
            raise _explained(
                refusal, lambda: why_not_revert(self.lineage(table), self.all_segments(table), entry_id)
            ) from None

    def _replace(
        self, table: str, call: str, deadline: float, params: Mapping[str, str], body: Any = None
    ) -> Any:
        path = f"/segments/{quoted(table)}/{call}"
        return self._door.send_json(
            HttpCall(
                "POST",
                path,
                CallKind.LINEAGE,
                deadline,
                params={"type": "OFFLINE", **params},
                json=body or {},
            )
        )


def _custom(text: str | None) -> JsonObject:
    """What a segment says of itself; nothing where that cannot be read: whoever needs it, misses it."""
    try:
        return fields_of_json(text or "{}")
    except (ValueError, TypeError):
        return {}


def _millis(text: str | None) -> int | None:
    value = int(text) if text else -1
    return value if value >= 0 else None


def _check_names(segments_from: Collection[str], segments_to: Collection[str]) -> None:
    if not segments_from and not segments_to:
        raise ValueError("a replacement of nothing by nothing")
    torn = sorted(name for name in {*segments_from, *segments_to} if "," in name or not name)
    if torn:
        raise ValueError(f"segment names that the lineage node would tear in two: {torn}")


def _explained(refusal: SwitchConflict, look: Callable[[], list[str]]) -> SwitchConflict:
    try:
        found = look()
    except PinotError:
        return refusal
    why = "; ".join([*found, f"Pinot says: {refusal.why}"])
    return SwitchConflict(refusal.what, why=why, hint=refusal.hint)
