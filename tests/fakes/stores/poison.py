"""Bodies that a stored object may have after somebody else wrote it.

What is no such thing at all, and whatever is wrong in one place of a right one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

NO_OBJECT = {
    "empty": b"",
    "blank": b" \n",
    "no JSON": b"{",
    "no UTF-8": b"\xff\xfe{}",
    "null": b"null",
    "a list": b"[]",
    "a number": b"7",
    "a text": b'"{}"',
    "nothing in it": b"{}",
    "deep": b"[" * 100_000,
    "deep and whole": b"[" * 500 + b"]" * 500,
    "deep objects": b'{"a":' * 50_000,
    "a number of 5,000 digits": b"1" * 5000,
    "NUL": b"\0" * 100,
}
"""Bodies that are wrong whatever they should be."""

WRONG: tuple[object, ...] = (
    None,
    True,
    -1,
    2**80,
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    "../../../etc/passwd",
    "file:///etc/passwd",
    "s3://elsewhere/key",
    "a\0b",
    [],
    [None],
    {},
    {"x": None},
)
"""What may stand in the place of any value."""


def poisoned(golden: bytes) -> Iterator[tuple[str, bytes]]:
    """Every body that differs from a right JSON text in one value, each with what was done; texts that are
    JSON themselves are gone into."""
    for path, value in _changed(json.loads(golden)):
        yield path, json.dumps(value).encode()


def _changed(value: object) -> Iterator[tuple[str, object]]:
    for wrong in WRONG:
        yield f" = {wrong!r}", wrong
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f".{key} left out", {k: v for k, v in value.items() if k != key}
            for path, changed in _changed(inner):
                yield f".{key}{path}", {**value, key: changed}
        yield ".unknown added", {**value, "unknown": 1}
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            for path, changed in _changed(inner):
                yield f"[{n}]{path}", [*value[:n], changed, *value[n + 1 :]]
    elif isinstance(value, str) and value.startswith(("{", "[")):
        for path, changed in _changed(json.loads(value)):
            yield f"→{path}", json.dumps(changed)
