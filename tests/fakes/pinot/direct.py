"""What the contract suite does to a real Pinot past the port: time, others at work, calls that we never make.

The fake has methods of the same names.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection

import httpx
from fakes.waiting import until
from fakes.zookeeper.door import ZookeeperDoor
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot import LineageEntry
from pinot_assets.snapshot.receipt import Output

# After a pass wrote the lineage it takes the segments out of the ideal state: some milliseconds.
SETTLE_SECONDS = 0.3


class Inside:
    """Close it, or use it in a `with`.

    :param door: what the controller's writes pass, None where nothing can hold them up.
    """

    def __init__(
        self, zookeeper: str, cluster: str, controller_url: str, door: ZookeeperDoor | None = None
    ) -> None:
        self._nodes = f"/{cluster}/PROPERTYSTORE/SEGMENT_LINEAGE"
        self._ideal_states = f"/{cluster}/IDEALSTATES"
        self._segments = f"/{cluster}/PROPERTYSTORE/SEGMENTS"
        self._door = door
        self._zk = KazooClient(zookeeper, timeout=30)
        self._zk.start(timeout=15)
        self._http = httpx.Client(base_url=controller_url, timeout=30, trust_env=False)

    def close(self) -> None:
        self._http.close()
        self._zk.stop()
        self._zk.close()

    def __enter__(self) -> Inside:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def put_entry(self, table: str, entry: LineageEntry) -> None:
        """Write an entry into the lineage node, as another controller does."""
        path = self._path(table)
        self._zk.ensure_path(self._nodes)
        try:
            record: JsonObject = json.loads(self._zk.get(path)[0])
        except NoNodeError:
            record = {"id": f"{table}_OFFLINE", "simpleFields": {}, "mapFields": {}, "listFields": {}}
            self._zk.create(path, json.dumps(record).encode())
        names = [",".join(sorted(side)) for side in (entry.segments_from, entry.segments_to)]
        record["listFields"][entry.id] = [*names, entry.state.value, str(entry.timestamp_ms)]
        self._zk.set(path, json.dumps(record).encode())

    def fix_time_boundary(self, table: str, boundary_ms: int) -> None:
        """Set the time boundary in the ideal state, where `POST /tables/{table}/timeBoundary` puts it."""
        path = f"{self._ideal_states}/{table}_OFFLINE"
        record: JsonObject = json.loads(self._zk.get(path)[0])
        record["simpleFields"]["HYBRID_TABLE_TIME_BOUNDARY"] = str(boundary_ms)
        self._zk.set(path, json.dumps(record).encode())

    def leave_metadata(self, table: str, output: Output) -> None:
        """Put the metadata of a segment there, and nothing else of it: an upload that was cut short."""
        fields = {
            "segment.crc": str(output.crc),
            "segment.total.docs": str(output.rows),
            "segment.creation.time": "1700000000000",
            "segment.push.time": "1700000000000",
            "segment.index.version": "v3",
            "segment.download.url": "",
        }
        record = {"id": output.segment, "simpleFields": fields, "mapFields": {}, "listFields": {}}
        path = f"{self._segments}/{table}_OFFLINE/{output.segment}"
        self._zk.create(path, json.dumps(record).encode(), makepath=True)

    def run_retention(self, table: str) -> None:
        """One pass of Pinot's retention, which writes the lineage node whatever it finds; waits for it."""
        before = self._written(table)
        task = {"taskname": "RetentionManager", "tableName": table, "type": "OFFLINE"}
        self._http.get("/periodictask/run", params=task).raise_for_status()
        until(lambda: self._written(table) > before, 30)
        time.sleep(SETTLE_SECONDS)

    def listed_segments(self, table: str) -> set[str]:
        """Names in Pinot's own listing."""
        reply = self._http.get(f"/segments/{table}", params={"type": "OFFLINE"}).raise_for_status()
        return {name for part in reply.json() for name in part.get("OFFLINE", ())}

    def narrow_and_end(self, table: str, entry_id: str, segments_to: Collection[str]) -> None:
        """End with a body: only these of the entry's outputs stay in it."""
        self._http.post(
            f"/segments/{table}/endReplaceSegments",
            params={"type": "OFFLINE", "segmentLineageEntryId": entry_id},
            json={"segmentsTo": sorted(segments_to)},
        ).raise_for_status()

    def before_lineage_write(self, table: str, action: Callable[[], None]) -> None:
        """Do this when the next start has checked everything and is about to write. Not by asking the
        controller: it waits with that write, and all behind it."""
        assert self._door is not None
        self._door.before_write(self._path(table), action)

    def _path(self, table: str) -> str:
        return f"{self._nodes}/{table}_OFFLINE"

    def _written(self, table: str) -> int:
        """Grows with every write of the node."""
        return int(self._zk.get(self._path(table))[1].mzxid)
