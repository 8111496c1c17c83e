"""A bucket that lists a given number of objects: pages of ListObjectsV2 over HTTP on 127.0.0.1.

Started by `serving`, as a process of its own, so that what it works is not counted as the client's.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BUCKET, PREFIX, PAGE = "lake", "events", 1000

_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    f"<Name>{BUCKET}</Name><Prefix>{PREFIX}/</Prefix><MaxKeys>{PAGE}</MaxKeys>"
)


def key(number: int) -> str:
    """Of one object: a thousand of them share a folder."""
    return f"{PREFIX}/day={number // PAGE:05}/part-{number:08}-c000.snappy.parquet"


def etag(number: int) -> str:
    """Of one object, without quotes."""
    return md5(str(number).encode(), usedforsecurity=False).hexdigest()


def size(number: int) -> int:
    """Of one object, in bytes."""
    return 1_000_000 + number


def modified(number: int) -> int:
    """When one object was written, in seconds since the epoch."""
    return 1_767_225_600 + number % 60  # 2026-01-01


class _Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    count = 0

    def do_GET(self) -> None:
        """One page; the token is the number of its first object."""
        query = parse_qs(urlsplit(self.path).query)
        start = int(query["continuation-token"][0]) if "continuation-token" in query else _behind(query)
        body = _page(start, self.count).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Be silent."""


def _behind(query: dict[str, list[str]]) -> int:
    """The number of the first object behind `start-after`, which must be an object's key."""
    after = query.get("start-after", [""])[0]
    if not after:
        return 0
    number = int(after.rpartition("part-")[2][:8])
    assert key(number) == after
    return number + 1


def _page(start: int, count: int) -> str:
    end = min(start + PAGE, count)
    contents = "".join(
        f"<Contents><Key>{key(n)}</Key><LastModified>2026-01-01T00:00:{n % 60:02}.000Z</LastModified>"
        f"<ETag>&quot;{etag(n)}&quot;</ETag><Size>{size(n)}</Size><StorageClass>STANDARD</StorageClass>"
        "</Contents>"
        for n in range(start, end)
    )
    more = f"<NextContinuationToken>{end}</NextContinuationToken>" if end < count else ""
    truncated = str(end < count).lower()
    return (
        f"{_HEAD}<KeyCount>{end - start}</KeyCount><IsTruncated>{truncated}</IsTruncated>"
        f"{more}{contents}</ListBucketResult>"
    )


@contextmanager
def serving(count: int) -> Iterator[str]:
    """The endpoint of a bucket with so many objects."""
    with subprocess.Popen(
        [sys.executable, __file__, str(count)], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def main() -> None:
    """Serve until ended; the port is the only line on stdout."""
    _Pages.count = int(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Pages)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
