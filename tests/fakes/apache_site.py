"""Apache's two release sites on loopback, failing as a test says, and distributions of Pinot for them."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import re
import socket
import struct
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fakes.listening import listening

MAIN = "org/apache/pinot/tools/admin/PinotAdministrator.class"
_BLOCK = 1 << 18


def pinot_jar(version: str | None, java: int = 11) -> bytes:
    """A jar with the head of Pinot's main class, and with Maven's word on its version."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as jar:
        jar.writestr(MAIN, struct.pack(">IHH", 0xCAFEBABE, 0, java + 44) + b"the rest")
        if version is not None:
            name = "META-INF/maven/org.apache.pinot/pinot-tools/pom.properties"
            jar.writestr(name, f"artifactId=pinot-tools\ngroupId=org.apache.pinot\nversion={version}\n")
    return packed.getvalue()


def files_of(release: str, java: int = 11) -> dict[str, bytes]:
    """What Apache's distribution has, on a small scale: path below its folder → content."""
    return {
        "LICENSE": b"of Apache",
        "bin/pinot-admin.sh": b"#!/bin/sh\n",
        f"lib/pinot-all-{release}-jar-with-dependencies.jar": pinot_jar(release, java),
        f"plugins/pinot-file-system/pinot-s3/pinot-s3-{release}-shaded.jar": b"PK a plug-in",
        f"plugins-external/pinot-batch-ingestion/spark-{release}-shaded.jar": b"PK for Spark",
        "examples/batch/readme.md": b"#",
    }


def packed(release: str, files: Mapping[str, bytes]) -> bytes:
    """The archive of these files, as Apache names it; a name that begins with / is outside of its folder."""
    archive = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=archive, mode="wb", compresslevel=1, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for name, content in files.items():
            path = name[1:] if name.startswith("/") else f"apache-pinot-{release}-bin/{name}"
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


@dataclass
class ApacheSite:
    """Both sites; what they serve, and how they fail.

    :ivar files: path of the URL → content, or the file that has it.
    :ivar asked: path and `Range` of each request.
    :ivar breaks: the next answers with an archive end after so many bytes.
    :ivar more: added to the length that an archive's answer says.
    :ivar trailing: sent after the rest of an archive, and counted in its length.
    :ivar rest_from: where the rest of an archive begins, whatever was asked for.
    :ivar tag: entity tag of all files; without one, there is the time of the last change.
    :ivar redirects: path → where it leads.
    :ivar statuses: path → what is answered there.
    :ivar goes_on: an answer with an archive waits for it after `holds_after` bytes.
    """

    url: str
    files: dict[str, bytes | Path] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    more: int = 0
    trailing: bytes = b""
    rest_from: int | None = None
    tag: str = '"1"'
    dated: str = "Mon, 01 Jun 2026 00:00:00 GMT"
    redirects: dict[str, str] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    goes_on: threading.Event = field(default_factory=threading.Event)
    holds_after: int | None = None

    @property
    def sites(self) -> tuple[str, str]:
        """Their addresses, in the order in which they are asked."""
        return f"{self.url}/pinot", f"{self.url}/dist/pinot"

    def publish(self, release: str, content: bytes | Path, below: str = "/pinot") -> str:
        """Put an archive there, and its SHA-512 as `sha512sum` writes it; return the archive's path."""
        name = f"apache-pinot-{release}-bin.tar.gz"
        path = f"{below}/apache-pinot-{release}/{name}"
        whole = content.read_bytes() if isinstance(content, Path) else content
        self.files[path] = content
        self.files[f"{path}.sha512"] = f"{hashlib.sha512(whole).hexdigest()}  {name}\n".encode()
        return path

    @property
    def archives(self) -> list[str]:
        """The `Range` of each request for an archive."""
        return [wanted for path, wanted in self.asked if path.endswith(".tar.gz")]


@contextmanager
def apache_site() -> Iterator[ApacheSite]:
    """One that listens."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            site.asked.append((self.path, wanted))
            if (there := site.redirects.get(self.path)) is not None:
                self._say(302, {"Location": there, "Content-Length": "0"})
                return
            if (status := site.statuses.get(self.path)) is not None:
                self._say(status, {"Content-Length": "0"})
                return
            if (content := site.files.get(self.path)) is None:
                self._say(404, {"Content-Length": "0"})
                return
            size = content.stat().st_size if isinstance(content, Path) else len(content)
            about = {"ETag": site.tag} if site.tag else {"Last-Modified": site.dated} if site.dated else {}
            start = 0
            if (ranged := re.fullmatch(r"bytes=(\d+)-", wanted)) and self._is_same():
                start = int(ranged[1]) if site.rest_from is None else site.rest_from
                if start >= size:
                    self._say(416, {"Content-Range": f"bytes */{size}", "Content-Length": "0"})
                    return
                about["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
            if self.path.endswith(".tar.gz"):
                extra = site.trailing if start else b""
                length = size - start + site.more + len(extra)
                self._say(206 if start else 200, about | {"Content-Length": str(length)})
                self._archive(content, start, size)
                self.wfile.write(extra)
            else:
                self._say(200, about | {"Content-Length": str(size)})
                self._send(content, 0, size)

        def _is_same(self) -> bool:
            return self.headers.get("If-Range") in (site.tag or None, site.dated or None)

        def _say(self, status: int, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def _archive(self, content: bytes | Path, start: int, size: int) -> None:
            if site.holds_after is not None:
                self._send(content, start, start + site.holds_after)
                site.goes_on.wait(60)
                start += site.holds_after
            if site.breaks:
                self._send(content, start, start + site.breaks.pop(0))
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self._send(content, start, size)

        def _send(self, content: bytes | Path, start: int, end: int) -> None:
            if isinstance(content, bytes):
                self.wfile.write(content[start:end])
                return
            with content.open("rb") as file:
                file.seek(start)
                while start < end and (block := file.read(min(_BLOCK, end - start))):
                    self.wfile.write(block)
                    start += len(block)

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                self.close_connection = True  # who asked has gone

        def log_message(self, format: str, *args: object) -> None:
            pass

    with listening(Handler) as port:
        site = ApacheSite(f"http://127.0.0.1:{port}")
        try:
            yield site
        finally:
            site.goes_on.set()
