"""A table of the model with everything around it as text, and back: what a release left at one moment.

It uses the model's own names alone, so that `lives.py` can run with the code of a release before.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
from dataclasses import asdict, replace

from fakes.stores.memory import _SPACES, MemoryObjectStore, _Space, open_memory
from model.world.specs import spec_of
from model.world.table import CLUSTER, MODES, START_MS, TABLE, ModelTable

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot import LineageEntry, LineageState, SegmentMetadata
from pinot_assets.snapshot.receipt import Output
from pinot_assets.source import Fingerprint
from pinot_assets.table_spec import TableSpec


def place(name: str) -> MemoryObjectStore:
    """An empty store at a place of that name, which stays the same from process to process."""
    uri, space = f"mem://{name}", _Space()
    _SPACES[uri] = space
    return open_memory(uri)


PLAIN = {"consistentPushEnabled": "false", "ingestionMode": "sync"}
PUSHES: dict[str, JsonObject] = {"plain": PLAIN, "atomic": {**PLAIN, "enableAtomicUpload": "true"}}
"""Modes of golden lives that are none of the model's: keys of the ingestion block."""


def _spec_of(options: JsonObject) -> TableSpec:
    """With the folders of the golden lives, whose sessions hold a fingerprint of them."""
    spec = spec_of(options)
    folders = {"input_dir_uri": "/model/source", "staging_uri": "/model/staging"}
    return replace(spec, ingestion=spec.ingestion.model_copy(update=folders))


def new_table(mode: str) -> ModelTable:
    """A table whose stores lie at places with names."""
    options = {"consistentPushMaxRetries": 3, **PUSHES.get(mode, {})}
    table = ModelTable(_spec_of, mode if mode in MODES else "sync", options)
    table.source, table.staging = place("golden-source"), place("golden-staging")
    table.zookeeper.nodes[f"/{CLUSTER}/PROPERTYSTORE"].made_ms = START_MS  # by that a cluster is known
    return table


Pool = dict[str, str]
"""Contents of objects by their hash: lives have most of them in common."""


def dump(table: ModelTable, mode: str, pool: Pool) -> JsonObject:
    """All that a driver finds."""
    fake_table = table.pinot._tables[TABLE]
    return {
        "mode": mode,
        "now_ms": table.now_ms,
        "nodes": {
            path: node.data.decode()
            for path, node in table.zookeeper.nodes.items()
            if not node.owner and path != "/"
        },
        "source": _objects(table.source, pool),
        "staging": _objects(table.staging, pool),
        "pinot": {
            "segments": [
                {key: value for key, value in asdict(output).items() if key != "kept"}
                for output in fake_table.segments.values()
            ],
            "metadata": [{**asdict(m), "custom": dict(m.custom)} for m in fake_table.metadata.values()],
            "entries": [_entry(entry) for entry in fake_table.entries.values()],
            "routing": {broker: sorted(names) for broker, names in fake_table.routing.items()},
            "hasNode": fake_table.has_node,
        },
    }


def load(values: JsonObject, pool: Pool) -> ModelTable:
    """Inverse of `dump`."""
    table = new_table(values["mode"])
    client = table.zookeeper.client()
    for path, text in values["nodes"].items():
        client.ensure_path(path)
        client.set(path, text.encode())
    _fill(table.source, values["source"], pool)
    _fill(table.staging, values["staging"], pool)
    fake_table, pinot = table.pinot._tables[TABLE], values["pinot"]
    fake_table.segments = {o["segment"]: Output(**o) for o in pinot["segments"]}
    # Until 0.2.0 the fake kept `push_ms`, too, which nothing reads.
    metadata = [{key: value for key, value in one.items() if key != "push_ms"} for one in pinot["metadata"]]
    fake_table.metadata = {m["segment"]: SegmentMetadata(**m) for m in metadata}
    for entry in pinot["entries"]:
        names = {key: frozenset(entry[key]) for key in ("segments_from", "segments_to")}
        state = LineageState(entry["state"])
        fake_table.entries[entry["id"]] = LineageEntry(**{**entry, **names, "state": state})
    fake_table.routing = {broker: frozenset(names) for broker, names in pinot["routing"].items()}
    fake_table.has_node = pinot["hasNode"]
    table.truth._sessions = table.truth.sessions  # which counts the retries of what it saw
    table.now_ms = values["now_ms"]
    table.pinot._clock = itertools.count(table.now_ms)
    return table


def nodes_of(table: ModelTable) -> dict[str, bytes]:
    """Our nodes, the pointer as ""."""
    path = f"/{CLUSTER}/PROPERTYSTORE/MINION_TASK_METADATA/{TABLE}_OFFLINE/FileIngestionTask/consistentPush"
    nodes = {p: node.data for p, node in table.zookeeper.nodes.items() if p.startswith(path)}
    return {p.removeprefix(path).strip("/"): data for p, data in nodes.items() if not p.endswith("/lease")}


def _objects(store: MemoryObjectStore, pool: Pool) -> JsonObject:
    entries = {}
    for info in store.list():
        data = store.read(info.key)
        sha256 = hashlib.sha256(data).hexdigest()
        pool[sha256] = base64.b64encode(data).decode()
        entries[info.key] = {"sha256": sha256, "at": info.fingerprint.mtime_us}
    return entries


def _fill(store: MemoryObjectStore, objects: JsonObject, pool: Pool) -> None:
    for key, entry in objects.items():
        data = base64.b64decode(pool[entry["sha256"]])
        store._objects[key] = data, Fingerprint(len(data), entry["at"])


def _entry(entry: LineageEntry) -> JsonObject:
    names = {key: sorted(getattr(entry, key)) for key in ("segments_from", "segments_to")}
    return {**asdict(entry), **names, "state": entry.state.value}
