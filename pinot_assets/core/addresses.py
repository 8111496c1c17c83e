"""Addresses as identities: what is one service, and what can only be this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

S3_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables that say where S3 is; the first one that is set counts."""
_PORTS: Final = {"http": 80, "https": 443}
_SERVICES: Final = {
    **_PORTS,
    "kafka": 9092,
    "zookeeper": 2181,
    "pulsar": 6650,
    "pulsar+ssl": 6651,
    "hdfs": 8020,
}
"""What a table config can let Pinot talk to, and the usual port of each."""
_READ_DIFFERENTLY: Final = re.compile(r"[\x00-\x20\x7f\\]")
"""Of `https://one.example\\@other.example` each of two clients takes another one for the host."""


def origin_of(url: str) -> str | None:
    """`scheme://host:port` of a URL in lower case, the usual port written out; None of any other text.

    None, too, of a URL in which clients could find different hosts: one with a user, a backslash or a blank.
    """
    return _origin(url, _PORTS)


def s3_endpoint(environ: Mapping[str, str]) -> str | None:
    """Where S3 is, as AWS' own variables say it; None for AWS itself."""
    return next((environ[name] for name in S3_ENDPOINTS if environ.get(name)), None)


def service_of(url: str) -> str | None:
    """`origin_of` for the schemes of streams and file systems as well: `kafka://host:9092`."""
    return _origin(url, _SERVICES)


def _origin(url: str, ports: Mapping[str, int]) -> str | None:
    if _READ_DIFFERENTLY.search(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in ports or not host or "@" in parts.netloc:
        return None
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port or ports[parts.scheme]}"


def is_loopback(host: str) -> bool:
    """Whether a host can only be this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def may_be_loopback(host: str) -> bool:
    """Whether a host may be this machine: also `*.localhost`, and addresses such as 0.0.0.0."""
    try:
        return is_loopback(host) or ip_address(host).is_unspecified
    except ValueError:
        return host.endswith(".localhost")
