"""What a `FakeRealtime` answers to those who only ask: controller, servers and brokers."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx
from fakes.realtime.memory import CLUSTER, TABLE, FakeNode, FakeRealtime, FakeServer

from pinot_assets.core.json_object import JsonObject


def answer(pinot: FakeRealtime, host: str, path: str, params: httpx.QueryParams) -> httpx.Response:
    if host.startswith("host"):
        return _of_server(pinot, next(s for s in pinot.servers.values() if host == f"host{s.number}"), path)
    if host.startswith("broker"):
        return ok({"pinotConfig": pinot.broker_config})
    raw = TABLE.removesuffix("_REALTIME")
    match path.strip("/").split("/"):
        case ["tables"]:
            return ok({"tables": [raw]})
        case ["tables", name] if name == raw:
            return ok({"REALTIME": pinot.config})
        case ["tables", name, "instances"] if name == TABLE:
            holding = {server for states in pinot.ideal.values() for server in states}
            told = list(pinot.servers) if pinot.older(1, 5) else sorted(holding)
            return ok({"server": [{"tableType": "realtime", "instances": told}]})
        case ["tenants", _] if params["tableType"] == "REALTIME":
            return ok({"RealtimeServerInstances": list(pinot.servers)})
        case ["tables", name, "consumingSegmentsInfo"] if name != TABLE:
            return httpx.Response(500, json={"error": f"Ideal state does not exist for table: {name}"})
        case ["tables", _, "consumingSegmentsInfo"]:
            return ok({"_segmentToConsumingInfoMap": _consuming_info(pinot)})
        case ["tables", "forceCommitStatus", job] if job in pinot.jobs and not pinot.older(1, 0):
            done = [n for n in pinot.jobs[job] if pinot.nodes[n].fields["segment.realtime.status"] == "DONE"]
            return ok({"segmentsYetToBeCommitted": sorted(set(pinot.jobs[job]) - set(done))})
        case ["version"]:
            return ok({"pinot-controller": f"{pinot.version}-abc"})
        case ["appconfigs"]:
            lower = {key.lower(): value for key, value in pinot.controller_config.items()}
            return ok({"pinotConfig": lower, "jvmConfig": {"environment": {"SECRET": "x"}}})
        case ["cluster", "info"]:
            return ok({"clusterName": CLUSTER})
        case ["cluster", "configs"]:
            return ok(pinot.cluster_config)
        case ["instances", name] if name in pinot.servers:
            server = pinot.servers[name]
            instance = {"hostName": f"host{server.number}", "enabled": server.enabled}
            # Pinot leaves out the other port, and says -1 where this one is not set.
            return ok({"instanceName": name, **instance, "adminPort": server.ports.get("adminPort", -1)})
        case ["v2", "brokers", "tables", name] if name == raw:
            return ok([{"host": broker, "port": 8099} for broker in pinot.brokers])
        case ["zk", verb]:
            return _zookeeper(pinot, verb, params["path"].removeprefix(f"/{CLUSTER}/"))
    return httpx.Response(404, json={"error": f"not here: {path}"})


def _of_server(pinot: FakeRealtime, server: FakeServer, path: str) -> httpx.Response:
    if server.ready is None or not server.alive:
        raise httpx.ConnectError("refused")
    if path == "/health/readiness":
        return httpx.Response(200, text="OK") if server.ready else httpx.Response(503, text="STARTING")
    if path == "/reingestSegment/jobs" and not pinot.older(1, 4):
        return ok([{"jobId": "j", "segmentName": name} for name in server.reingested])
    match path.strip("/").split("/"):
        case ["tables", _, "segments", segment, "metadata"] if _holds(pinot, server, segment):
            crc = pinot.nodes[segment].fields["segment.crc"]
            return ok({"segmentName": segment, "crc": crc, "totalDocs": 100})
    return ok({"pinotConfig": server.config}) if path == "/appconfigs" else httpx.Response(404)


def query(pinot: FakeRealtime, broker: str) -> httpx.Response:
    rows = pinot.rows[broker] if broker in pinot.rows else pinot.all_rows()
    columns = {"columnNames": ["$segmentName", "count(*)"], "columnDataTypes": ["STRING", "LONG"]}
    table = {"dataSchema": columns, "rows": [[name, count] for name, count in rows.items()]}
    return ok({"resultTable": table, "numServersQueried": 2, "numServersResponded": 2, "exceptions": []})


def _consuming_info(pinot: FakeRealtime) -> JsonObject:
    return {
        segment: [
            {
                "serverName": server,
                "consumerState": state,
                "lastConsumedTimestamp": pinot.now_ms - 1000,
                "partitionToOffsetMap": {"0": str(offset)},
            }
            | ({} if pinot.version.startswith("0.") else _offset_info(offset, lag))
            for server, (state, offset, lag) in servers.items()
        ]
        for segment, servers in pinot.consuming.items()
    }


def _zookeeper(pinot: FakeRealtime, verb: str, path: str) -> httpx.Response:
    segments = f"PROPERTYSTORE/SEGMENTS/{TABLE}"
    match verb, path.split("/"):
        case "get", ["IDEALSTATES", name] if name == TABLE:
            return ok(record(TABLE, simple=pinot.ideal_fields, maps=pinot.ideal))
        case "get", ["EXTERNALVIEW", name] if name == TABLE:
            return ok(record(TABLE, maps=pinot.external))
        case "get", [*_, "PAUSELESS_DEBUG_METADATA", name] if name == TABLE and not pinot.older(1, 4):
            return ok(record(TABLE, lists={"committingSegments": pinot.committing}))
        case "get", ["CONFIGS", "PARTICIPANT", name] if name in pinot.servers:
            ports = {key: str(port) for key, port in pinot.servers[name].ports.items()}
            return ok(record(name, simple=ports))
        case "get", ["INSTANCES", name, "HISTORY"]:
            since = pinot.servers[name].offline_since
            return ok(record(name, simple={"LAST_OFFLINE_TIME": str(-1 if since is None else since)}))
        case "getChildren", ["INSTANCES", name, "MESSAGES"]:
            return ok([_message(segment) for segment in pinot.servers[name].messages])
        case "lsl", ["LIVEINSTANCES"]:
            alive = {name: s.live_since for name, s in pinot.servers.items() if s.live_since is not None}
            return ok({name: _stat(since, since, 0) for name, since in alive.items()})
        case "getChildren", _ if path == segments:
            return ok([record(name, simple=node.fields) for name, node in pinot.nodes.items()])
        case "lsl", _ if path == segments:
            return ok({name: _stat_of(node) for name, node in pinot.nodes.items()})
        case "get" | "stat", [*_, name] if path.startswith(segments) and name in pinot.nodes:
            node = pinot.nodes[name]
            return ok(_stat_of(node) if verb == "stat" else record(name, simple=node.fields))
    return httpx.Response(404, json={"error": f"ZKPath {path} does not exist"})


def ok(value: object) -> httpx.Response:
    """An answer with JSON."""
    return httpx.Response(200, text=json.dumps(value))


def record(name: str, **fields: Mapping[str, object]) -> JsonObject:
    """A node's content, as Helix writes it.

    :param fields: of the kinds `simple`, `lists` and `maps`.
    """
    simple, lists, maps = (fields.get(kind, {}) for kind in ("simple", "lists", "maps"))
    return {"id": name, "simpleFields": simple, "listFields": lists, "mapFields": maps}


def _message(segment: str) -> JsonObject:
    fields = {"RESOURCE_NAME": TABLE, "PARTITION_NAME": segment, "MSG_TYPE": "STATE_TRANSITION"}
    return record("m", simple=fields)


def _offset_info(offset: int, lag_ms: int | None) -> JsonObject:
    lag = "UNKNOWN" if lag_ms is None else str(lag_ms)
    return {
        "partitionOffsetInfo": {"currentOffsetsMap": {"0": str(offset)}, "availabilityLagMsMap": {"0": lag}}
    }


def _stat_of(node: FakeNode) -> dict[str, int]:
    return _stat(node.created_ms, node.modified_ms, node.version)


def _stat(created: int, modified: int, version: int) -> dict[str, int]:
    return {"ctime": created, "mtime": modified, "version": version}


def _holds(pinot: FakeRealtime, server: FakeServer, segment: str) -> bool:
    states = pinot.external.get(segment, {})
    return any(states.get(name) == "ONLINE" for name, one in pinot.servers.items() if one is server)
