"""The command, and quantities as people write them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pinot_assets.cli.main import app
from pinot_assets.errors import PinotAssetsError
from pinot_assets.sizing.quantities import (
    QuantityError,
    of_bytes,
    of_seconds,
    parse_count,
    parse_duration,
    parse_size,
)

SMALL = ["simulate", "--tables", "5", "--servers", "5", "--msg-rate", "5k", "--for", "14h"]


def run(*more: str) -> str:
    result = CliRunner().invoke(app, [*SMALL, *more])
    if result.exception is not None:
        raise result.exception
    return result.output


def test_it_tells_figures_assumptions_and_last_the_ratio() -> None:
    lines = run("--outage", "2h").strip().splitlines()
    assert lines[-1].startswith("controller traffic ratio (upload through controller / bypass): ")
    assert float(lines[-1].rpartition(" ")[2].replace(",", "")) > 10
    assert "What this assumes:" in lines


def test_json_for_other_programs() -> None:
    told = json.loads(run("--json", "--outage", "0"))
    assert told["controllerTrafficRatio"] > 10
    assert set(told["ways"]) == {"controller", "bypass", "pauseless"}
    assert told["assumes"]


def test_page_and_plots(tmp_path: Path) -> None:
    run("--html", str(tmp_path / "new" / "day.html"), "--plots", str(tmp_path / "plots"), "--format", "png")
    assert (tmp_path / "new" / "day.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert len(list((tmp_path / "plots").iterdir())) == 4


@pytest.mark.parametrize("option", ["--html", "--plots"])
def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, option: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PinotAssetsError, match="cannot be written"):
        run(option, str(tmp_path / "file" / "below"))


def test_segments_without_end_are_refused() -> None:
    with pytest.raises(PinotAssetsError, match="too many commits"):
        run("--flush-rows", "1")


@pytest.mark.parametrize(
    ("option", "value", "hint"),
    [
        ("--msg-rate", "fast", "100k"),
        ("--outage", "2", "with its unit"),
        ("--outage", "2 hours", "with its unit"),
        ("--flush-size", "200Mio", "500MB"),
        ("--outage-kind", "sulks", "refuses or hangs"),
        ("--format", "gif", "svg or png"),
    ],
)
def test_wrong_quantities_are_refused_with_a_hint(option: str, value: str, hint: str) -> None:
    with pytest.raises(QuantityError) as refused:
        run(option, value)
    assert option in str(refused.value)
    assert value in str(refused.value)
    assert hint in str(refused.value)


@pytest.mark.parametrize(
    "option",
    ["--msg-rate", "--row-size", "--build-rate", "--read-rate", "--flush-size", "--store-rate"],
)
def test_nothing_of_it_is_refused(option: str) -> None:
    with pytest.raises(QuantityError, match=f"{option} '0' is zero"):
        run(option, "0")


@pytest.mark.parametrize("option", ["--for", "--flush-time", "--kept", "--upload-timeout"])
def test_no_time_is_refused(option: str) -> None:
    with pytest.raises(QuantityError, match=f"{option} '0s' is zero"):
        run(option, "0s")


def test_segments_of_an_instant_are_refused() -> None:
    with pytest.raises(PinotAssetsError, match="--flush-time 1m"):
        run("--flush-time", "1ms")


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simpy", None)
    with pytest.raises(PinotAssetsError, match=r"pip install 'pinot-assets\[simulate\]'"):
        run()


@pytest.mark.parametrize(
    ("text", "value"),
    [("1500", 1_500), ("100k", 100_000), ("2.5M", 2_500_000), ("100k/s", 100_000), ("1,500", 1_500)],
)
def test_counts(text: str, value: float) -> None:
    assert parse_count(text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("800", 800), ("1KB", 1_024), ("500MB", 500 * 2**20), ("1.5g", 1.5 * 2**30)]
)
def test_sizes(text: str, value: float) -> None:
    assert parse_size(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("90s", 90), ("15m", 900), ("2h", 7_200), ("1h30m", 5_400), ("1d", 86_400), ("250ms", 0.25)],
)
def test_durations(text: str, value: float) -> None:
    assert parse_duration(text) == value


@pytest.mark.parametrize("parse", [parse_count, parse_size, parse_duration])
@pytest.mark.parametrize("text", ["", "k", "-1k", "1 2", "1x", "2hh"])
def test_nonsense_is_refused(parse, text: str) -> None:
    with pytest.raises(QuantityError, match="cannot be read"):
        parse(text)


def test_for_people() -> None:
    assert [of_bytes(0), of_bytes(1_536), of_bytes(3 * 2**40)] == ["0 B", "1.5 KB", "3.00 TB"]
    assert [of_seconds(0.25), of_seconds(90), of_seconds(600), of_seconds(7_200)] == [
        "250 ms",
        "90.0 s",
        "10 min",
        "2.0 h",
    ]
