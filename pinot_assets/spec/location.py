"""Directories as URIs: `file:///…` or `s3://bucket/prefix`, without a trailing slash."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

SCHEMES: Final = ("file", "s3")
"""Object stores that can be listed so far."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


class BadLocation(ValueError):
    """The text is no usable directory; the message says why and never repeats the text."""


def normalise_location(text: str, base: Path) -> str:
    """One spelling for one directory.

    :param text: a URI, or a path on the local disk, relative to `base`.
    :param base: directory of the file in which the text is written.
    :raises BadLocation: unknown scheme, no bucket, a query, `..` in an object key.
    """
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _local(text, base)
    name = scheme.group(1).lower()
    if name not in SCHEMES:
        raise BadLocation(f"the scheme {name}:// is not supported, only {' and '.join(SCHEMES)}")
    rest = text[scheme.end() :]
    if name == "file":
        return _local(_file_path(rest), base)
    if not rest.startswith("//"):
        raise BadLocation("an S3 URI looks like s3://bucket/prefix")
    bucket, _, key = rest[2:].partition("/")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", bucket):
        raise BadLocation("an S3 URI looks like s3://bucket/prefix, and this names no valid bucket")
    steps = [step for step in key.split("/") if step]
    if ".." in steps or "." in steps:
        raise BadLocation("an object key knows no . and .. steps")
    return "/".join([f"s3://{bucket}", *steps])


def is_within(inner: str, outer: str) -> bool:
    """Whether one normalised directory is the other or lies below it."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def _file_path(rest: str) -> str:
    if not rest.startswith("//"):
        path = rest  # file:/data, the form Java prints
    else:
        host, slash, tail = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise BadLocation("a file URI has three slashes: file:///data")
        path = slash + tail
    if not path.startswith("/"):
        raise BadLocation("a file URI has three slashes: file:///data")
    return unquote(path)


def _local(path: str, base: Path) -> str:
    if "\0" in path:
        raise BadLocation("a path cannot hold a null character")
    if not path.strip():
        raise BadLocation("the path is empty")
    # Not resolve(): a symbolic link that is switched later must not change the identity of the files.
    full = os.path.abspath(base.absolute() / os.path.expanduser(path))
    return "file://" + quote(full)
