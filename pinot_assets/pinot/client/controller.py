"""The controller's REST API for segments and their lineage. Segments of OFFLINE tables only.

It works around two traps. Up to 0.11 `GET /segments/{table}` reads the property store, which also lists
deleted segments for some seconds, and what a failed upload left; so we read the ideal state to know what is
*in the table*. And Pinot may refuse a lineage call with "Failed to update the segment lineage" alone; so we
look the reason up ourselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from pinot_assets.core.json_object import JsonObject, JsonValue
from pinot_assets.core.untrusted import fields_of_json, listed, typed
from pinot_assets.errors import PinotError, PinotNotFound, SwitchConflict
from pinot_assets.pinot.client.http import CallKind, HttpCall, quoted
from pinot_assets.pinot.client.table_calls import TableCalls
from pinot_assets.pinot.lineage import (
    Lineage,
    Replicas,
    SegmentMetadata,
    why_not_end,
    why_not_revert,
    why_not_start,
)


class Controller(TableCalls):
    """A client of one controller. Thread-safe; close it, or use it in a `with`.

    Errors of every method: see `pinot_assets.pinot.api.PinotClient`.
    """

    # --- segments --------------------------------------------------------------------------------

    def ideal_state(self, table: str) -> Replicas:
        """Return the state that Pinot wants: segment → instance → state."""
        return self._view(table, "idealstate")

    def external_view(self, table: str) -> Replicas:
        """Return what servers report: segment → instance → state; empty also if there is no such table."""
        try:
            return self._view(table, "externalview")
        except PinotNotFound:
            # A new table has no external view until Pinot assigns its first segment.
            return {}

    def _view(self, table: str, view: str) -> Replicas:
        value: Replicas | None = self._get(f"/tables/{quoted(table)}/{view}", tableType="OFFLINE")["OFFLINE"]
        return value or {}

    def all_segments(self, table: str) -> frozenset[str]:
        """See `PinotClient.all_segments`."""
        return frozenset(self.ideal_state(table))

    def visible_segments(self, table: str) -> frozenset[str]:
        """See `PinotClient.visible_segments`."""
        # The lineage is read second, so a segment pushed under an entry is never seen without that entry.
        segments = self.all_segments(table)
        return frozenset(self.lineage(table).visible(segments))

    def registered_segments(self, table: str) -> frozenset[str]:
        """Return the names with metadata in ZooKeeper: those in the table, and those of uploads that failed
        or still run. If ZooKeeper may not be listed: Pinot's own list, which has left-overs up to 0.11."""
        with suppress(PinotError):
            cluster = self._get("/cluster/info")["clusterName"]
            names = self._client.get_json("/zk/ls", path=f"/{cluster}/PROPERTYSTORE/SEGMENTS/{table}_OFFLINE")
            return frozenset(listed(names, str))
        parts = listed(self._client.get_json(f"/segments/{quoted(table)}", type="OFFLINE"), dict)
        return frozenset(name for part in parts for name in part.get("OFFLINE", ()))

    def online_replicas(self, table: str, names: Collection[str]) -> Replicas:
        """See `PinotClient.online_replicas`."""
        ideal, external = self.ideal_state(table), self.external_view(table)
        return {
            name: {**dict.fromkeys(ideal.get(name, ()), "OFFLINE"), **external.get(name, {})}
            for name in names
        }

    def dropping_segments(self, table: str) -> frozenset[str]:
        """Return the names of deleted segments of which servers still show a replica.

        :raises PinotNotFound: no such table.
        """
        external = self.external_view(table)
        # The ideal state is read second: a segment that somebody adds in between is in both.
        return frozenset(external) - frozenset(self.ideal_state(table))

    def segment_crcs(self, table: str) -> dict[str, int]:
        """See `PinotClient.segment_crcs`."""
        crcs = self._get(f"/segments/{quoted(table)}/crc")
        # A segment in the ideal state has no CRC if its metadata is gone.
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
        )

    def delete_segments(self, table: str, names: Collection[str]) -> None:
        """See `PinotClient.delete_segments`."""
        if not names:
            raise ValueError("the list of segments to delete is empty, and Pinot would delete every segment")
        self._write("POST", f"/segments/{quoted(table)}_OFFLINE/delete", body=sorted(names))

    # --- lineage ---------------------------------------------------------------------------------

    def lineage(self, table: str) -> Lineage:
        """See `PinotClient.lineage`."""
        value = self._client.get_json(f"/segments/{quoted(table)}/lineage", type="OFFLINE")
        try:
            return Lineage() if value is None else Lineage.from_json(typed(value, dict))
        except ValueError as error:
            raise PinotError(f"the lineage of table {table} cannot be read", why=str(error)) from error

    def start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        """See `PinotClient.start_replace_segments`."""
        return self._start(table, segments_from, segments_to)

    def force_start_replace_segments(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str]
    ) -> str:
        """See `PinotClient.force_start_replace_segments`."""
        return self._start(table, segments_from, segments_to, forceCleanup="true")

    def _start(
        self, table: str, segments_from: Collection[str], segments_to: Collection[str], **force: str
    ) -> str:
        _check_names(segments_from, segments_to)

        def why_not() -> list[str]:
            lineage, visible = self.lineage(table), self.visible_segments(table)
            return why_not_start(lineage, visible, segments_from, segments_to)

        body = {"segmentsFrom": sorted(segments_from), "segmentsTo": sorted(segments_to)}
        return str(
            self._replace(table, "startReplaceSegments", why_not, force, body=body)["segmentLineageEntryId"]
        )

    def end_replace_segments(self, table: str, entry_id: str) -> None:
        """See `PinotClient.end_replace_segments`."""

        def why_not() -> list[str]:
            return why_not_end(self.lineage(table), self.all_segments(table), entry_id)

        params, seconds = {"segmentLineageEntryId": entry_id}, self.connection.timeouts.end
        self._replace(table, "endReplaceSegments", why_not, params, deadline=seconds)

    def revert_replace_segments(self, table: str, entry_id: str) -> None:
        """See `PinotClient.revert_replace_segments`."""
        self._revert(table, entry_id)

    def force_revert_replace_segments(self, table: str, entry_id: str) -> None:
        """See `PinotClient.force_revert_replace_segments`."""
        self._revert(table, entry_id, forceRevert="true")

    def _revert(self, table: str, entry_id: str, **force: str) -> None:
        def why_not() -> list[str]:
            return why_not_revert(self.lineage(table), self.all_segments(table), entry_id)

        self._replace(table, "revertReplaceSegments", why_not, {"segmentLineageEntryId": entry_id, **force})

    def _replace(
        self,
        table: str,
        verb: str,
        why_not: Callable[[], list[str]],
        params: Mapping[str, str],
        *,
        deadline: float | None = None,
        body: JsonValue = None,
    ) -> JsonObject:
        """Start, end or revert a replacement; if Pinot refuses, `why_not` looks the reason up."""
        path, params = f"/segments/{quoted(table)}/{verb}", {"type": "OFFLINE", **params}
        call = HttpCall("POST", path, CallKind.LINEAGE, deadline, params=params, json=body or {})
        try:
            return self._client.send_fields(call)
        except SwitchConflict as refusal:
            try:
                why = "; ".join([*why_not(), f"Pinot answered: {refusal.why}"])
            except PinotError:
                raise refusal from None
            raise SwitchConflict(refusal.what, why=why, hint=refusal.hint) from None


def _custom(text: str | None) -> JsonObject:
    """Return a segment's custom map; empty if it cannot be read, so the fields are missing for the caller."""
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
    if torn := sorted(name for name in {*segments_from, *segments_to} if "," in name or not name):
        raise ValueError(f"segment names that the lineage node would split in two: {torn}")
