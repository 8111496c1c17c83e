"""The documents of a JSON text, one after the other, as Python's parser finds them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from pinot_assets.core.json_object import JsonObject
from pinot_assets.ingest.formats.json_values import parsed

BLANKS: Final = re.compile(r"[ \t\r\n]*")


def members_of(text: str) -> Iterator[JsonObject]:
    """The documents of a text up to the first that is none."""
    position = 0
    while (position := BLANKS.match(text, position).end()) < len(text):  # type: ignore[union-attr]
        try:
            value, position = parsed(text, position)
        except (ValueError, RecursionError):
            return
        if not isinstance(value, dict):
            return
        yield value


def is_document(line: bytes) -> bool:
    """Whether a file's first line is a whole document, or broken rather than unfinished."""
    try:
        value, _ = parsed(line.decode(errors="surrogateescape").strip(), 0)
    except (ValueError, RecursionError):
        return not line.rstrip().endswith((b"{", b"[", b","))
    return isinstance(value, dict)


def key_pattern(name: str) -> re.Pattern[bytes]:
    """Finds a member's name, or what looks like it, as people write it: with and without escapes."""
    texts = {json.dumps(name), json.dumps(name, ensure_ascii=False)}
    return re.compile("|".join(re.escape(text) for text in sorted(texts)).encode())
