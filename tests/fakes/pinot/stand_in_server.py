"""A stand-in for a Pinot server: it fetches and reads the segments that a real controller assigns to it.

It reads what it fetched with `tar` and `gzip`, whole, so a damaged tar does not load; it answers the
controller and `pinot_assets.pinot` over HTTP with what is in the segment. It does not index and not query.
"""

from __future__ import annotations

import io
import json
import struct
import tarfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import httpx
from fakes.pinot.participant import Participant
from fakes.pinot.releases import PINOT_1_5
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from pinot_assets.core.json_object import JsonObject


@dataclass(frozen=True, slots=True)
class Loaded:
    """A segment as its files tell it.

    :ivar crc: of `creation.meta`.
    :ivar rows: `segment.total.docs` of `metadata.properties`.
    :ivar size: of all its files, in bytes.
    """

    crc: int
    rows: int
    size: int


class StandInServer:
    """One server, in a Helix cluster. Close it, or use it in a `with`.

    :ivar segments: what it holds: table with type → segment → what was read.
    """

    def __init__(self, zookeeper: str, cluster: str, port: int) -> None:
        """:param port: for its name only; its HTTP door is at a free port of loopback."""
        self.segments: dict[str, dict[str, Loaded]] = {}
        self._held: dict[str, threading.Event] = {}
        self._store = f"/{cluster}/PROPERTYSTORE/SEGMENTS"
        self._client = KazooClient(zookeeper, timeout=30)
        self._client.start(timeout=15)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self._participant = Participant(
            zookeeper,
            cluster,
            f"Server_127.0.0.1_{port}",
            ("DefaultTenant_OFFLINE", "DefaultTenant_REALTIME"),
            self._move,
            adminPort=str(self._http.server_address[1]),
            pinotVersion=PINOT_1_5.server_version,
        )

    @property
    def name(self) -> str:
        """Of the instance."""
        return self._participant.name

    def close(self) -> None:
        """Leave the cluster and stop answering."""
        self._participant.close()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        self._client.stop()
        self._client.close()

    def __enter__(self) -> StandInServer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def hold(self, segment: str) -> Iterator[None]:
        """Do not load that segment, nor any after it, before the block ends."""
        self._held[segment] = threading.Event()
        try:
            yield
        finally:
            self._held.pop(segment).set()

    def _move(self, table: str, segment: str, state: str) -> str:
        held = self.segments.setdefault(table, {})
        if state == "ONLINE":
            if segment in self._held:
                self._held[segment].wait()
            try:
                held[segment] = _fetch(self._download_url(table, segment))
            except NoNodeError:
                return "ERROR"  # dropped before it was fetched
            except (httpx.HTTPError, OSError, EOFError, zlib.error, tarfile.TarError, KeyError):
                return "ERROR"  # cannot be fetched, or not read
        else:
            held.pop(segment, None)
        return state

    def _download_url(self, table: str, segment: str) -> str:
        content, _ = self._client.get(f"{self._store}/{table}/{segment}")
        return str(json.loads(content)["simpleFields"]["segment.download.url"])

    def answer(self, path: list[str]) -> JsonObject | str | None:
        """What Pinot's server says at that path, None where it says 404."""
        match path:
            case ["health", "readiness"]:
                return "OK"
            case ["appconfigs"]:
                return {"pinotConfig": {"pinot.server.instance.segment.store.uri": "file:///store"}}
            case ["tables", table, "segments", "crc"]:
                return {name: str(one.crc) for name, one in self.segments.get(table, {}).items()}
            case ["tables", table, "segments", segment, "metadata"]:
                one = self.segments.get(table, {}).get(segment)
                return {"segmentName": segment, "crc": one.crc, "totalDocs": one.rows} if one else None
            case ["table" | "tables", table, "size"]:
                held = self.segments.get(table, {})
                sizes = [{"segmentName": name, "diskSizeInBytes": one.size} for name, one in held.items()]
                total = sum(one.size for one in held.values())
                return {"tableName": table, "diskSizeInBytes": total, "segments": sizes}
        return None


def _fetch(url: str) -> Loaded:
    reply = httpx.get(url, timeout=10, trust_env=False, verify=False)  # no https here
    reply.raise_for_status()
    files: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(reply.content), mode="r:gz") as tar:
        for member in tar:
            if (content := tar.extractfile(member)) is not None:
                files[member.name.rpartition("/")[2]] = content.read()
    (crc,) = struct.unpack(">q", files["creation.meta"][:8])
    lines = files["metadata.properties"].decode().splitlines()
    properties = dict(line.split(" = ", 1) for line in lines if " = " in line)
    return Loaded(crc, int(properties["segment.total.docs"]), sum(map(len, files.values())))


def _handler(server: StandInServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0].strip("/").split("/")
            found = server.answer([unquote(part) for part in path])
            body = json.dumps({"error": "not found"} if found is None else found).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
