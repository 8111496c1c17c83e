"""What each release of Pinot lacks, and for how long it keeps what."""

from __future__ import annotations

import itertools

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.pinot import versions
from pinot_assets.pinot.versions import (
    TRAITS,
    brokers_keep_all_groups,
    entry_renewed_ms,
    oldest_server,
    release,
    replaced_segments_kept_ms,
    takes_batches,
    takes_empty_outputs,
    takes_over_half_uploads,
    traits_of,
    way_back_ms,
)

HOUR = 3_600_000
RELEASES = ("0.11.0", "0.12.1", "1.0.0", "1.5.1", "1.5.2", "1.6.0")


def table(kind: str = "REFRESH", **periods: str) -> JsonObject:
    return {
        "ingestionConfig": {"batchIngestionConfig": {"segmentIngestionType": kind}},
        "segmentsConfig": periods,
    }


@pytest.mark.parametrize("text", ["", "unknown"])
def test_a_controller_without_a_version_is_taken_for_the_one_that_was_measured(text: str) -> None:
    assert release(text) == release("1.5.1")


def test_a_replacement_by_nothing() -> None:
    assert [takes_empty_outputs(v) for v in RELEASES] == [False, False, True, True, True, True]


@pytest.mark.parametrize(
    ("version", "config", "hours"),
    [
        ("1.5.1", table(), 24),
        ("1.5.1", table("APPEND"), 0),
        ("1.5.1", table(replacedSegmentsRetentionPeriod="7d"), 24),
        ("0.11.0", table("APPEND", replacedSegmentsRetentionPeriod="7d"), 0),
        ("1.6.0", table(), 24),
        ("1.6.0", table("APPEND"), 4),
        ("1.6.0", table(replacedSegmentsRetentionPeriod="0d"), 0),
        ("1.6.0", table(replacedSegmentsRetentionPeriod="7d"), 168),
        ("1.6.0", table("APPEND", replacedSegmentsRetentionPeriod="6h"), 6),
        ("1.6.0", table(replacedSegmentsRetentionPeriod="soon"), 24),
    ],
)
def test_how_long_what_was_replaced_is_kept(version: str, config: JsonObject, hours: int) -> None:
    assert replaced_segments_kept_ms(version, config) == hours * HOUR


def test_the_way_back_stays_clear_of_pinots_clean_up() -> None:
    assert way_back_ms("1.5.1", table()) == 20 * HOUR
    assert way_back_ms("1.6.0", table(replacedSegmentsRetentionPeriod="6h")) == 5 * HOUR
    assert way_back_ms("1.6.0", table(replacedSegmentsRetentionPeriod="0d")) == 0
    assert way_back_ms("1.5.1", table("APPEND")) == 0


@pytest.mark.parametrize(
    ("version", "period", "renewed"),
    [
        ("1.5.1", None, 20),
        ("1.5.1", "2h", 20),
        ("1.6.0", None, 20),
        ("1.6.0", "2h", 1),
        ("1.6.0", "1d", 12),
        ("1.6.0", "7d", 20),
    ],
)
def test_an_entry_is_renewed_at_half_of_what_the_table_says(
    version: str, period: str | None, renewed: int
) -> None:
    config = table(lineageEntryCleanupRetentionPeriod=period) if period else table()
    assert entry_renewed_ms(version, config) == renewed * HOUR


@pytest.mark.parametrize("version", RELEASES)
def test_a_release_has_each_topic_once(version: str) -> None:
    topics = [trait.topic for trait in traits_of(version)]
    assert len(topics) == len(set(topics))


def test_batches_came_with_1_3() -> None:
    assert [takes_batches(v) for v in RELEASES] == [False, False, False, True, True, True]
    assert [takes_batches(v) for v in ("1.2.0", "1.3.0")] == [False, True]


def test_brokers_keep_all_groups_for_having_from_1_1_on() -> None:
    for version, whole in (("0.11.0", False), ("1.0.0", False), ("1.1.0", True), ("1.5.1", True)):
        assert brokers_keep_all_groups(version) == whole
        assert ("HAVING" in {trait.topic for trait in traits_of(version)}) != whole


def test_half_uploads_are_taken_over_from_0_12_on() -> None:
    assert [takes_over_half_uploads(v) for v in RELEASES] == [False, True, True, True, True, True]


@pytest.mark.parametrize(
    ("named", "oldest"),
    [
        (["1.5.1-5a1b", "1.6.0-SNAPSHOT-210c"], "1.5.1"),
        (["1.10.0", "1.6.0"], "1.6.0"),
        (["1.6.0"], "1.6.0"),
        (["1.6.0", ""], "0.11"),
        (["1.6.0", "unknown"], "0.11"),
        ([], "0.11"),
        (["2"], "2.0"),
        (["1.6.0rc1"], "1.6.0"),
    ],
)
def test_the_oldest_server_decides_and_one_that_names_no_release_is_old(
    named: list[str], oldest: str
) -> None:
    assert oldest_server(named) == oldest


def test_the_sheet_changes_where_pinot_did() -> None:
    sheets = [frozenset(traits_of(v)) for v in RELEASES]
    assert [one == other for one, other in itertools.pairwise(sheets)] == [False, False, False, True, False]
    assert set(TRAITS) == frozenset().union(*sheets)


def test_the_functions_and_the_sheet_agree() -> None:
    """A row that says otherwise than what the code does would be worse than none."""
    for version in RELEASES:
        said = {trait.topic: trait.pinot for trait in traits_of(version)}
        assert ("removing files only" in said) != takes_empty_outputs(version)
        unknown = "is not known" in said["revert after a switch"]
        assert unknown != versions.honours_lineage_settings(version)
        assert ("is not known" in said["open entries"]) == unknown
