from __future__ import annotations

import pytest

from pinot_assets.segment.functions.time_format import (
    PATTERNS,
    TimeFormat,
    TimeFormatKind,
    parse_date,
    parse_format,
)

MOMENT = 1_582_934_399_120  # 2020-02-28 23:59:59.120 UTC


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1:MILLISECONDS:EPOCH", TimeFormat(TimeFormatKind.EPOCH)),
        ("6:HOURS:EPOCH", TimeFormat(TimeFormatKind.EPOCH, "HOURS", 6)),
        ("EPOCH", TimeFormat(TimeFormatKind.EPOCH)),
        ("EPOCH|DAYS", TimeFormat(TimeFormatKind.EPOCH, "DAYS")),
        ("EPOCH|MINUTES|5", TimeFormat(TimeFormatKind.EPOCH, "MINUTES", 5)),
        ("TIMESTAMP", TimeFormat(TimeFormatKind.TIMESTAMP)),
        ("1:MILLISECONDS:TIMESTAMP", TimeFormat(TimeFormatKind.TIMESTAMP)),
        (
            "1:DAYS:SIMPLE_DATE_FORMAT:yyyy-MM-dd HH:mm",
            TimeFormat(TimeFormatKind.SIMPLE_DATE_FORMAT, pattern="yyyy-MM-dd HH:mm"),
        ),
        (
            "1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd tz(UTC)",
            TimeFormat(TimeFormatKind.SIMPLE_DATE_FORMAT, pattern="yyyyMMdd"),
        ),
        (
            "SIMPLE_DATE_FORMAT|yyyyMMdd|GMT",
            TimeFormat(TimeFormatKind.SIMPLE_DATE_FORMAT, pattern="yyyyMMdd"),
        ),
    ],
)
def test_formats(text: str, found: TimeFormat) -> None:
    assert parse_format(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1:DAYS",
        "0:DAYS:EPOCH",
        "EPOCH|WEEKS",
        "1:DAYS:WHEN",
        "SIMPLE_DATE_FORMAT",
        "SIMPLE_DATE_FORMAT|EEE",
        "SIMPLE_DATE_FORMAT|yyyyMMdd|America/Chicago",
        "1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd tz(CST)",
    ],
)
def test_other_formats_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"supported|must be|unknown|not a positive"):
        parse_format(text)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_reads_what_it_writes(pattern: str) -> None:
    written = TimeFormat(TimeFormatKind.SIMPLE_DATE_FORMAT, pattern=pattern).from_ms(MOMENT)
    read = parse_date(written, pattern)
    finest = next(
        ms
        for field, ms in (("S", 1), ("s", 1000), ("m", 60_000), ("H", 3_600_000), ("", 0))
        if field in pattern
    )
    assert read <= MOMENT
    assert not finest or MOMENT - read < finest
    assert TimeFormat(TimeFormatKind.SIMPLE_DATE_FORMAT, pattern=pattern).from_ms(read) == written


@pytest.mark.parametrize("text", ["2020-2-1", "20-02-01", "2020-02-30", "2020-02-01 ", "٢٠٢٠-02-01", "null"])
def test_texts_that_do_not_fit_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"does not fit|out of range"):
        parse_date(text, "yyyy-MM-dd")


def test_an_epoch_bound_is_taken_as_stored() -> None:
    six_hours = parse_format("6:HOURS:EPOCH")
    assert six_hours.bound(70_000) == 70_000
    assert six_hours.to_ms("70000") == 70_000 * 6 * 3_600_000
    assert six_hours.from_ms(70_000 * 6 * 3_600_000 + 1) == "70000"
