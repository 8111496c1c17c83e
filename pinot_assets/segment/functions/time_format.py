"""How to read the table's time column: `DateTimeFormatSpec`, as far as it is reproduced here.

Only patterns whose parsing is certain are accepted; Joda's full pattern language is not imitated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

_UNITS_MS = {"MILLISECONDS": 1, "SECONDS": 1_000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}
_UTC_ZONES = {"UTC", "GMT", "Etc/UTC", "Etc/GMT"}
_ZONE = re.compile(r"^(.+)( tz[ ]*\((.+)\))[ ]*")

VALID_FROM_MS = int(datetime(1971, 1, 1, tzinfo=UTC).timestamp()) * 1000
VALID_TO_MS = int(datetime(2071, 1, 1, tzinfo=UTC).timestamp()) * 1000

# Joda pattern → strptime format. Fields have a fixed width, so a text can be read in only one way.
PATTERNS = {
    "yyyy": "%Y",
    "yyyy-MM": "%Y-%m",
    "yyyyMM": "%Y%m",
    "yyyy-MM-dd": "%Y-%m-%d",
    "yyyyMMdd": "%Y%m%d",
    "yyyy/MM/dd": "%Y/%m/%d",
    "yyyyMMddHH": "%Y%m%d%H",
    "yyyyMMddHHmm": "%Y%m%d%H%M",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S",
    "yyyy-MM-dd HH": "%Y-%m-%d %H",
    "yyyy-MM-dd HH:mm": "%Y-%m-%d %H:%M",
    "yyyy-MM-dd HH:mm:ss": "%Y-%m-%d %H:%M:%S",
    "yyyy-MM-dd HH:mm:ss.SSS": "%Y-%m-%d %H:%M:%S.%f",
    "yyyy-MM-dd'T'HH:mm:ss": "%Y-%m-%dT%H:%M:%S",
    "yyyy-MM-dd'T'HH:mm:ss'Z'": "%Y-%m-%dT%H:%M:%SZ",
    "yyyy-MM-dd'T'HH:mm:ss.SSS": "%Y-%m-%dT%H:%M:%S.%f",
    "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'": "%Y-%m-%dT%H:%M:%S.%fZ",
}


class TimeFormatKind(StrEnum):
    """The three time formats that Pinot knows."""

    EPOCH = "EPOCH"
    TIMESTAMP = "TIMESTAMP"
    SIMPLE_DATE_FORMAT = "SIMPLE_DATE_FORMAT"


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """A time column's format.

    :ivar kind: EPOCH, TIMESTAMP or SIMPLE_DATE_FORMAT.
    :ivar unit: the unit of the segment's start and end time, named as Java's `TimeUnit`.
    :ivar size: how many units one step of an EPOCH value is.
    :ivar pattern: Joda pattern of a SIMPLE_DATE_FORMAT, a key of `PATTERNS`.
    """

    kind: TimeFormatKind
    unit: str = "MILLISECONDS"
    size: int = 1
    pattern: str = ""

    @property
    def unit_ms(self) -> int:
        """Return the milliseconds of one unit."""
        return _UNITS_MS[self.unit]

    def bound(self, value: int | str) -> int:
        """Return a column minimum or maximum as segment start or end, in `unit` (`BaseSegmentCreator`).

        An EPOCH value is used as stored, without its `size`.

        :raises ValueError: the text does not fit the pattern.
        """
        return parse_date(str(value), self.pattern) if self.pattern else int(value)

    def to_ms(self, text: str) -> int:
        """Return a value in epoch milliseconds (`DateTimeFormatSpec.fromFormatToMillis`).

        :raises ValueError: the text is no value of this format.
        """
        return parse_date(text, self.pattern) if self.pattern else int(text) * self.size * self.unit_ms

    def from_ms(self, ms: int) -> str:
        """Return an instant in this format, as text (`DateTimeFormatSpec.fromMillisToFormat`).

        :param ms: milliseconds since the epoch, not negative.
        """
        if not self.pattern:
            return str(ms // self.unit_ms // self.size)
        moment = datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)
        # %Y does not pad and %f has six digits; Joda pads years and writes three digits.
        layout = PATTERNS[self.pattern].replace("%Y", f"{moment.year:04d}")
        return moment.strftime(layout.replace("%f", f"{ms % 1000:03d}"))


def parse_date(text: str, pattern: str) -> int:
    """Return the epoch milliseconds of a text in UTC.

    :param pattern: a key of `PATTERNS`.
    :raises ValueError: the text does not fit the pattern exactly.
    """
    shape = re.sub(r"[yMdHmsS]", r"\\d", re.escape(pattern.replace("'T'", "\1").replace("'Z'", "\2")))
    if not re.fullmatch(shape.replace("\1", "T").replace("\2", "Z"), text, re.ASCII):
        raise ValueError(f"{text!r} does not fit {pattern}")
    moment = datetime.strptime(text, PATTERNS[pattern]).replace(tzinfo=UTC)
    return int(moment.replace(microsecond=0).timestamp()) * 1000 + moment.microsecond // 1000


def parse_format(text: str) -> TimeFormat:
    """Read a `format` of a DATE_TIME field, in colon or pipe spelling.

    :raises ValueError: not a format of Pinot, or one that is not supported; the text says which.
    """
    size, unit, kind, pattern = _colon(text) if text[:1].isdigit() else _pipe(text)
    if kind not in TimeFormatKind.__members__:
        raise ValueError(f"unknown time format {kind}")
    if kind == TimeFormatKind.TIMESTAMP:
        return TimeFormat(TimeFormatKind.TIMESTAMP)
    if kind == TimeFormatKind.SIMPLE_DATE_FORMAT:
        return _simple_date(pattern)
    if not size.isdecimal() or int(size) < 1:
        raise ValueError(f"size {size} is not a positive number")
    if unit not in _UNITS_MS:
        raise ValueError(f"time unit {unit} is not supported")
    return TimeFormat(TimeFormatKind.EPOCH, unit, int(size))


_Parts = tuple[str, str, str, str | None]


def _colon(text: str) -> _Parts:
    """Split `size:unit:format(:pattern)`."""
    parts = text.split(":", 3)
    if len(parts) < 3:
        raise ValueError("must be size:timeUnit:timeFormat(:pattern)")
    return parts[0], parts[1], parts[2], parts[3] if len(parts) == 4 else None


def _pipe(text: str) -> _Parts:
    """Split `EPOCH(|unit(|size))`, `SIMPLE_DATE_FORMAT(|pattern(|zone))` or `TIMESTAMP`."""
    kind, *rest = text.split("|", 2)
    if kind == TimeFormatKind.EPOCH:
        unit, size, *_ = [*rest, *["MILLISECONDS", "1"][len(rest) :]]
        return size, unit, kind, None
    zone = f" tz({rest[1]})" if len(rest) > 1 else ""
    return "1", "MILLISECONDS", kind, rest[0] + zone if rest else None


def _simple_date(pattern: str | None) -> TimeFormat:
    zone = "UTC"
    if pattern is not None and (match := _ZONE.match(pattern)):
        pattern, zone = match[1].strip(), match[3].strip()
    if zone not in _UTC_ZONES:
        raise ValueError(f"time zone {zone} is not supported, only UTC")
    if pattern not in PATTERNS:
        raise ValueError(f"date pattern {pattern} is not supported; supported are {', '.join(PATTERNS)}")
    return TimeFormat(TimeFormatKind.SIMPLE_DATE_FORMAT, pattern=pattern)
