"""One structured line for each decision of a run, through Python's logging.

The fields are in the record's attribute `decision`; `JsonLines` writes them as one JSON object a line.
Without a handler for `LOGGER`, nothing is written. Docs: docs/operations.md#logs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

LOG_FORMAT: Final = "PINOT_ASSETS_LOG_FORMAT"
LOGGER: Final = logging.getLogger("pinot_assets.decisions")


class LogFormat(StrEnum):
    """What a command that works on a table writes on standard error."""

    TEXT = "text"
    JSON = "json"


def log_decision(event: str, fields: Mapping[str, object]) -> None:
    """Log one decision.

    :param event: its kind: `step`, `effect`, `note`, `phase`, `file`.
    :param fields: values that JSON takes; empty ones are left out.
    """
    said = {"event": event} | {name: value for name, value in fields.items() if value not in ("", None)}
    text = " ".join(f"{name}={value}" for name, value in said.items())
    LOGGER.info("%s", text, extra={"decision": said})


class JsonLines(logging.Formatter):
    """Formats each record as one line of JSON: time (ISO 8601, UTC), level, and the fields or the message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        fields = getattr(record, "decision", None) or {"event": "log", "message": record.getMessage()}
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said = {"time": at.replace("+00:00", "Z"), "level": record.levelname.lower(), **fields}
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)
