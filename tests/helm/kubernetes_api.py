"""An API server of Kubernetes that only notes what it is asked: enough for Spark to ask for executors."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qs, urlsplit

from pinot_assets.core.json_object import JsonObject

DRIVER: Final = "run-pod"


@dataclass
class KubernetesApi:
    """What was asked: each as (verb of a Role, resource), and the pods that were to be created."""

    url: str = ""
    asked: set[tuple[str, str]] = field(default_factory=set)
    created: list[JsonObject] = field(default_factory=list)
    pods_came: threading.Event = field(default_factory=threading.Event)
    """Set once as many pods were to be created as the test waits for."""


@contextmanager
def kubernetes_api(executors: int) -> Iterator[KubernetesApi]:
    """Serve on loopback, until the block ends.

    :param executors: how many pods are to come.
    """
    api = KubernetesApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, document: JsonObject, status: int = 200) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def resource(self) -> tuple[str, str]:
            """Which kind, and which name of it."""
            parts = urlsplit(self.path).path.strip("/").split("/")
            kind, *rest = parts[parts.index("namespaces") + 2 :] if "namespaces" in parts else parts[-1:]
            return kind, "/".join(rest)

        def note(self, verb: str) -> None:
            api.asked.add((verb, self.resource()[0]))

        def do_GET(self) -> None:
            _, name = self.resource()
            if "watch" in parse_qs(urlsplit(self.path).query):
                self.note("watch")
                return self.watch()
            self.note("get" if name else "list")
            if name:
                return self.answer(pod(name))
            fields = parse_qs(urlsplit(self.path).query).get("fieldSelector", [])
            items = [pod(DRIVER)] if f"metadata.name={DRIVER}" in fields else []
            return self.answer({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

        def watch(self) -> None:
            """Open the WebSocket that Spark's client asks for, and never say anything on it."""
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", b64encode(sha1(key.encode()).digest()).decode())
            self.end_headers()
            while self.rfile.read1(1024):
                pass
            self.close_connection = True

        def do_POST(self) -> None:
            self.note("create")
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.resource()[0] == "pods":
                api.created.append(document)
                if len(api.created) == executors:
                    api.pods_came.set()
            self.answer(document, 201)

        def do_DELETE(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.note("delete" if self.resource()[1] else "deletecollection")
            self.answer({"kind": "Status", "status": "Success"})

        def do_PATCH(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.note("patch")
            self.answer(pod(self.resource()[1]))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


def pod(name: str) -> JsonObject:
    """Return a pod that runs."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "ingestion", "uid": "11111111-1111-1111-1111-111111111111"},
        "spec": {"containers": []},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
