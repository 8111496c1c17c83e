"""A stand-in for Google Cloud Storage: its XML protocol is S3's but for the conditional write and the keys.

No emulator of the registries speaks that protocol whole. So this is moto's S3, told what a GCS client says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import make_server

# moto shows nothing to somebody who signs nothing.
_SIGNED = (
    "AWS4-HMAC-SHA256 Credential=gcs/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
)


class _AsS3:
    """WSGI: the write that only a free name may take, in S3's words, by somebody who may."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        if environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None) == "0":
            environ["HTTP_IF_NONE_MATCH"] = "*"
        environ["HTTP_AUTHORIZATION"] = _SIGNED
        return self._app(environ, start)


@contextmanager
def gcs_server() -> Iterator[str]:
    """A server on loopback; its URL."""
    app = _AsS3(create_backend_app("s3"))
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def key_file(folder: Path) -> Path:
    """A service account that needs no token, as emulators want it."""
    path = folder / "key.json"
    path.write_text(
        json.dumps({"disable_oauth": True, "client_email": "", "private_key": "", "private_key_id": ""})
    )
    return path
