"""The release that segments are written for: the table spec's, or that of the table's oldest server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from pinot_assets.core.json_object import JsonObject
from pinot_assets.errors import PinotError, PinotUnreachable, UnsupportedFeature
from pinot_assets.session.checks.segment_target import segment_target

if TYPE_CHECKING:
    from pinot_assets.session.context.context import TriggerContext

GZIP: JsonObject = {"fieldConfigList": [{"name": "c", "encodingType": "RAW", "compressionCodec": "GZIP"}]}


def context(
    target: str, versions: Callable[[str], Mapping[str, str]], table: JsonObject | None = None
) -> tuple[TriggerContext, list[str]]:
    notes: list[str] = []
    made = SimpleNamespace(
        table="t",
        spec=SimpleNamespace(
            ingestion=SimpleNamespace(target=target),
            schema_json={"dimensionFieldSpecs": [{"name": "c", "dataType": "STRING"}]},
            table_json=table or {},
        ),
        pinot=SimpleNamespace(server_versions=versions),
        note=notes.append,
    )
    return cast("TriggerContext", made), notes


def refuse(error: PinotError) -> Callable[[str], Mapping[str, str]]:
    def versions(_: str) -> Mapping[str, str]:
        raise error

    return versions


@pytest.mark.parametrize(
    ("named", "target"),
    [
        ({"s1": "1.6.0-ab", "s2": "1.6.1-cd"}, "1.6.0"),
        ({"s1": "1.6.0-ab", "s2": "1.5.1-cd"}, "1.5.1"),
        ({"s1": "1.6.0-ab", "s2": ""}, "0.11"),
    ],
)
def test_auto_is_the_oldest_server(named: Mapping[str, str], target: str) -> None:
    run, notes = context("auto", lambda _: named)
    assert (segment_target(run), notes) == (target, [])


def test_a_release_asks_no_server() -> None:
    run, _ = context("1.5", refuse(PinotError("not asked")))
    assert segment_target(run) == "1.5"


def test_servers_that_may_not_be_asked_count_as_old_and_a_note_says_so() -> None:
    run, notes = context("auto", refuse(PinotError("403: forbidden")))
    assert segment_target(run) == "0.11"
    assert ["403: forbidden" in note and "set writeFor" in note for note in notes] == [True]


def test_a_run_says_so_if_the_table_has_no_servers() -> None:
    run, notes = context("auto", lambda _: {})
    assert segment_target(run) == "0.11"
    assert ["no server" in note and "set writeFor" in note for note in notes] == [True]


def test_no_answer_is_not_an_old_server() -> None:
    run, _ = context("auto", refuse(PinotUnreachable("no answer")))
    with pytest.raises(PinotUnreachable):
        segment_target(run)


def test_what_the_oldest_server_cannot_read_is_refused_before_anything_is_built() -> None:
    run, _ = context("auto", lambda _: {"s1": "1.1.0"}, GZIP)
    with pytest.raises(UnsupportedFeature, match=r"codec GZIP, which servers read since 1\.2 only"):
        segment_target(run)
    run, _ = context("auto", lambda _: {"s1": "1.4.0"}, GZIP)
    assert segment_target(run) == "1.4.0"
