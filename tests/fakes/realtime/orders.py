"""What the writing calls do to a `FakeRealtime`: what a Pinot does to its ZooKeeper in the end, at once."""

from __future__ import annotations

import json

import httpx
from fakes.realtime.answers import ok
from fakes.realtime.memory import MINUTE_MS, NOW_MS, TABLE, FakeRealtime, FakeServer

from pinot_assets.core.json_object import JsonObject

STATUS = "segment.realtime.status"
URL = "segment.download.url"
_WINDOW_MS = 5 * MINUTE_MS


_SINCE = {
    "pauseTopicConsumption": (1, 5, 404),
    "resumeTopicConsumption": (1, 5, 404),
    "uploadFromServerToDeepstore": (1, 5, 405),
    "deleteSegmentsFromSequenceNum": (1, 4, 404),
    "uploadCommittedSegment": (1, 4, 404),
    "reingestSegment": (1, 4, 404),
}
"""Part of a path → the release that has it, and how an older one refuses."""


def order(pinot: FakeRealtime, request: httpx.Request, path: str) -> httpx.Response:
    """Carry out a writing call."""
    params = request.url.params
    parts = path.strip("/").split("/")
    for part in parts:
        major, minor, status = _SINCE.get(part, (0, 0, 0))
        if pinot.older(major, minor):
            return httpx.Response(status, json={"error": f"HTTP {status}"})
    if not _is_the_table(parts, params):
        return httpx.Response(404, json={"error": "Table not found!"})
    if request.url.host.startswith("host"):
        number = int(request.url.host.removeprefix("host"))
        name, server = next((n, s) for n, s in pinot.servers.items() if s.number == number)
        return _at_server(pinot, name, server, parts)
    body = json.loads(request.content or "null")
    match request.method, parts:
        case "POST", ["tables", _, "pauseConsumption"]:
            return _pause(pinot, params.get("comment"))
        case "POST", ["tables", _, "resumeConsumption"]:
            pinot.ideal_fields = {}
            return _validate(pinot, {})
        case "POST", ["tables", _, "pauseTopicConsumption" | "resumeTopicConsumption" as verb]:
            return _topics(pinot, verb, [int(one) for one in params["topicIndices"].split(",")])
        case "POST", ["tables", _, "forceCommit"]:
            return _force_commit(pinot, params.get("segments"))
        case "POST", ["tables", _, "rebalance"]:
            return _balanced(pinot, params)
        case "GET" | "POST", ["periodictask", "run"]:
            if request.method == "POST" and pinot.older(1, 4):
                return httpx.Response(405, json={"error": "HTTP 405 Method Not Allowed"})
            return _validate(pinot, body or {})
        case "POST", ["segments", _, "uploadFromServerToDeepstore"]:
            names = params.get_list("segmentNames")
            for name in names:
                _upload(pinot, name, forced=params.get("forceMode") == "true")
            return ok({"status": f"Successfully queued {len(names)} segment(s)"})
        case "POST", ["segments", _, name, "reset"]:
            return _reset(pinot, name, params["targetInstance"])
        case "POST", ["segments", _, "delete"]:
            return _delete(pinot, body)
        case "DELETE", ["deleteSegmentsFromSequenceNum", _]:
            return _delete_from(pinot, params.get_list("segments"), params.get("dryRun") == "true")
        case "PUT", ["tables", _]:
            pinot.config = body
            return ok({"status": "updated"})
        case "PUT", ["zk", "put"]:
            return _write_node(pinot, params["path"], int(params["expectedVersion"]), body)
    return httpx.Response(404, json={"error": f"not here: {request.method} {path}"})


_OF_A_TABLE = ("tables", "segments", "deleteSegmentsFromSequenceNum")


def _is_the_table(parts: list[str], params: httpx.QueryParams) -> bool:
    name = parts[1] if parts[0] in _OF_A_TABLE else params.get("tableName", TABLE)
    return name.removesuffix("_REALTIME") == TABLE.removesuffix("_REALTIME")


def _balanced(pinot: FakeRealtime, params: httpx.QueryParams) -> httpx.Response:
    """It moves nothing."""
    reassigned = pinot.older(1, 0) and params.get("reassignInstances") == "true"
    answer: JsonObject = {"status": "DONE" if reassigned else "NO_OP", "description": "already balanced"}
    answer["segmentAssignment"] = pinot.ideal
    if not pinot.older(1, 0):
        answer["jobId"] = "r1"
    if not pinot.older(1, 4) and params.get("preChecks") == "true":
        answer["preChecksResult"] = {"isMinimizeDataMovement": {"preCheckStatus": "PASS", "message": ""}}
    return ok(answer)


def _touch(pinot: FakeRealtime, name: str, **fields: str) -> None:
    node = pinot.nodes[name]
    node.fields |= fields
    node.version += 1
    node.modified_ms = pinot.now_ms


# --- consumption ---------------------------------------------------------------------------------------


def _pause(pinot: FakeRealtime, comment: str | None) -> httpx.Response:
    if pinot.older(1, 3):
        pinot.ideal_fields["isTablePaused"] = "true"
    else:
        pause_state = {"paused": True, "reasonCode": "ADMINISTRATIVE", "timeInMillis": str(pinot.now_ms)}
        pinot.ideal_fields["pauseState"] = json.dumps({**pause_state, "comment": comment})
    commit(pinot, _consuming(pinot), followed=False)
    return ok({"pauseFlag": True})


def _topics(pinot: FakeRealtime, verb: str, topics: list[int]) -> httpx.Response:
    pause_state: JsonObject = json.loads(pinot.ideal_fields.get("pauseState", '{"paused": false}'))
    before = set(pause_state.get("indexOfInactiveTopics", ()))
    after = before | set(topics) if verb.startswith("pause") else before - set(topics)
    pinot.ideal_fields["pauseState"] = json.dumps({**pause_state, "indexOfInactiveTopics": sorted(after)})
    return ok({})


def _force_commit(pinot: FakeRealtime, named: str | None) -> httpx.Response:
    names = named.split(",") if named and not pinot.older(1, 1) else _consuming(pinot)
    job = f"job{len(pinot.jobs)}"
    pinot.jobs[job] = names
    commit(pinot, names, followed=True)
    return httpx.Response(200) if pinot.older(1, 0) else ok({"forceCommitJobId": job})


def _consuming(pinot: FakeRealtime) -> list[str]:
    return [name for name, node in pinot.nodes.items() if node.fields[STATUS] == "IN_PROGRESS"]


def commit(pinot: FakeRealtime, names: list[str], *, followed: bool) -> None:
    for name in names:
        ends = [offset for _, offset, _ in pinot.consuming.pop(name, {}).values()]
        start = int(pinot.nodes[name].fields["segment.realtime.startOffset"])
        end = max(ends, default=start)
        url = f"s3://b/d/clicks/{name}" if pinot.store_up else ""
        done = {STATUS: "DONE", URL: url, "segment.total.docs": str(end - start)}
        if not pinot.older(1, 3):
            done["segment.size.in.bytes"] = "1000"
        _touch(pinot, name, **done, **{"segment.realtime.endOffset": str(end), "segment.crc": "1"})
        for states in (pinot.ideal[name], pinot.external[name]):
            states |= {server: "ONLINE" for server, state in states.items() if state == "CONSUMING"}
        if followed:
            _follow(pinot, name, end)


def _follow(pinot: FakeRealtime, name: str, start: int) -> None:
    _, partition, sequence, _ = name.split("__")
    pinot.segment(
        int(partition), int(sequence) + 1, "IN_PROGRESS", start=start, end=start, age_ms=0,
        states={s: "CONSUMING" for s, server in pinot.servers.items() if server.alive},
    )  # fmt: skip


# --- the validation manager ----------------------------------------------------------------------------


def _validate(pinot: FakeRealtime, properties: dict[str, str]) -> httpx.Response:
    pause_state = json.loads(pinot.ideal_fields.get("pauseState", "{}"))
    if not pause_state.get("paused") and pinot.ideal_fields.get("isTablePaused") != "true":
        _ensure_consuming(pinot)
    if properties.get("runSegmentLevelValidation") == "true":
        pinot.committing[:] = [n for n, node in pinot.nodes.items() if node.fields[STATUS] == "COMMITTING"]
        for name in list(pinot.nodes):
            _upload(pinot, name, forced=False)
    return ok({"taskId": "t", "isSuccessful": True})


def _ensure_consuming(pinot: FakeRealtime) -> None:
    newest: dict[str, str] = {}
    for name in pinot.nodes:
        partition, sequence = name.split("__")[1:3]
        if partition not in newest or int(newest[partition].split("__")[2]) < int(sequence):
            newest[partition] = name
    for name in newest.values():
        node = pinot.nodes[name]
        if node.fields[STATUS] != "IN_PROGRESS" and set(pinot.ideal[name].values()) == {"ONLINE"}:
            _follow(pinot, name, int(node.fields["segment.realtime.endOffset"]))


def _online(pinot: FakeRealtime, name: str) -> list[str]:
    states = pinot.external.get(name, {})
    return [s for s, state in states.items() if state == "ONLINE" and pinot.servers[s].alive]


def _upload(pinot: FakeRealtime, name: str, *, forced: bool) -> None:
    node = pinot.nodes[name]
    if not _online(pinot, name) or not pinot.store_up:
        return
    if not forced and pinot.now_ms - node.modified_ms < _WINDOW_MS:
        return
    if forced or node.fields[STATUS] == "COMMITTING" or node.fields.get(URL) == "":
        start, end = (int(node.fields[f"segment.realtime.{which}Offset"]) for which in ("start", "end"))
        fields = {STATUS: "DONE", URL: f"s3://b/d/clicks/{name}", "segment.total.docs": str(end - start)}
        _touch(pinot, name, **fields, **{"segment.crc": "1"})
        if name in pinot.committing:
            pinot.committing.remove(name)


def _reset(pinot: FakeRealtime, name: str, server: str) -> httpx.Response:
    if name not in pinot.ideal:
        return httpx.Response(404, json={"error": f"Could not find segment: {name} in ideal state"})
    done = ok({"status": "Successfully reset"})
    states = pinot.external[name]
    if states.get(server) in ("OFFLINE", None) or not pinot.servers[server].alive:
        return done
    node = pinot.nodes[name]
    if node.fields[STATUS] == "IN_PROGRESS":
        states[server] = "CONSUMING"
    else:
        has_peers = (
            bool(_online(pinot, name)) and "peerSegmentDownloadScheme" in pinot.config["segmentsConfig"]
        )
        states[server] = "ONLINE" if node.fields.get(URL) or has_peers else "ERROR"
    return done


# --- servers, nodes, deletion --------------------------------------------------------------------------


def _at_server(pinot: FakeRealtime, name: str, server: FakeServer, parts: list[str]) -> httpx.Response:
    if parts[0] == "segments" and name in _online(pinot, parts[2]) and not pinot.store_up:
        return httpx.Response(500, json={"error": "Failed to upload"})
    match parts:
        case ["segments", _, segment, "upload"] if name in _online(pinot, segment):
            return httpx.Response(200, text=_uploaded(pinot, segment))
        case ["segments", _, segment, "upload"] if pinot.external.get(segment, {}).get(name) == "CONSUMING":
            return httpx.Response(500, json={"error": "Request failed."})
        case ["segments", _, segment, "uploadCommittedSegment"] if name in _online(pinot, segment):
            fields = {**pinot.nodes[segment].fields, STATUS: "DONE", URL: _uploaded(pinot, segment)}
            return ok({"id": segment, "simpleFields": fields})
        case ["reingestSegment", segment]:
            node = pinot.nodes[segment]
            if URL in node.fields:
                return httpx.Response(400, json={"error": "Download URL is already present"})
            partition, start = int(segment.split("__")[1]), int(node.fields["segment.realtime.startOffset"])
            end = int(node.fields["segment.realtime.endOffset"])
            rows = end - max(start, pinot.stream[partition][0])
            fields = {STATUS: "DONE", URL: f"s3://b/d/clicks/{segment}", "segment.total.docs": str(rows)}
            _touch(pinot, segment, **fields, **{"segment.crc": "2"})
            pinot.external[segment] = {s: "ONLINE" for s in pinot.ideal[segment] if pinot.servers[s].alive}
            return ok({"jobId": "j1", "segmentName": segment, "startTimeMs": NOW_MS})
    return httpx.Response(404, json={"error": "it does not have it"})


def _uploaded(pinot: FakeRealtime, segment: str) -> str:
    tmp = "" if pinot.older(1, 3) else ".tmp."
    return f"s3://b/d/clicks/{segment}{tmp}9d2a94bc-57c6-486d-8597-449de527b0ce"


def _write_node(pinot: FakeRealtime, path: str, version: int, body: JsonObject) -> httpx.Response:
    node = pinot.nodes[path.rpartition("/")[2]]
    if version not in (-1, node.version):
        return httpx.Response(500, json={"error": f"Failed to update path: {path}"})
    node.fields = body["simpleFields"]
    node.version += 1
    node.modified_ms = pinot.now_ms
    return ok({"status": "Successfully updated"})


def _delete(pinot: FakeRealtime, names: list[str]) -> httpx.Response:
    for name in names:
        for by_segment in (pinot.nodes, pinot.ideal, pinot.external, pinot.consuming):
            by_segment.pop(name, None)
    return ok({"status": "Deleted"})


def _delete_from(pinot: FakeRealtime, names: list[str], dry: bool) -> httpx.Response:
    first: dict[str, int] = {}
    for name in names:
        partition, sequence = name.split("__")[1:3]
        first[partition] = min(int(sequence), first.get(partition, int(sequence)))
    doomed: dict[str, list[str]] = {partition: [] for partition in first}
    for name in pinot.ideal:
        partition, sequence = name.split("__")[1:3]
        if partition in first and int(sequence) >= first[partition]:
            doomed[partition].append(name)
    if not json.loads(pinot.ideal_fields.get("pauseState", "{}")).get("paused"):
        return httpx.Response(500, json={"error": f"Table {TABLE} should be paused before deleting"})
    if not dry:
        _delete(pinot, [name for segments in doomed.values() for name in segments])
    partitions = {partition: {"segmentsToDelete": segments} for partition, segments in doomed.items()}
    return ok({"dryRun": dry, "partitions": partitions})
