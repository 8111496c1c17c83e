from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from pinot_assets.table_spec.blocks.dagster import DagsterSettings


def settings(folder, block):
    return folder.load(change=lambda whole: whole.update(dagster=block)).dagster


def problems(folder, block):
    return folder.problems(change=lambda whole: whole.update(dagster=block))


def test_a_spec_without_the_block_has_the_defaults(folder):
    assert folder.load().dagster == DagsterSettings()
    assert settings(folder, {}) == DagsterSettings()
    assert (folder.load().dagster.automation, folder.load().dagster.health_interval_sec) == (False, 600)


@pytest.mark.parametrize(
    ("block", "attribute", "value"),
    [
        ({"group": "air/traffic"}, "group", "air/traffic"),
        ({"owners": ["team:data", "a.b@example.com"]}, "owners", ("team:data", "a.b@example.com")),
        ({"tags": {"example/tier": "gold", "on": True}}, "tags", {"example/tier": "gold", "on": "true"}),
        ({"description": " Flights.\n"}, "description", "Flights."),
        ({"automation": "true"}, "automation", True),
        ({"freshnessHours": 26}, "freshness_hours", 26.0),
        ({"freshnessHours": "0.5"}, "freshness_hours", 0.5),
        ({"healthIntervalSec": "60"}, "health_interval_sec", 60),
    ],
)
def test_keys_and_their_values(folder, block, attribute, value):
    assert getattr(settings(folder, block), attribute) == value


def test_tag_values_keep_their_digits(folder):
    file = folder.spec()
    file.write_text(file.read_text() + "dagster:\n  tags:\n    version: 0.10\n")
    (spec,) = folder.check()[0]
    assert spec.dagster.tags == {"version": "0.10"}


@pytest.mark.parametrize(
    ("block", "key", "reason"),
    [
        (["group"], "dagster", "not a mapping"),
        ({"gruop": "x"}, "dagster.gruop", "not a key"),
        ({"group": "air traffic"}, "dagster.group", "not a group name"),
        ({"group": "air/"}, "dagster.group", "not a group name"),
        ({"group": None}, "dagster.group", "no value"),
        ({"group": ["x"]}, "dagster.group", "single value"),
        ({"group": "${GROUP}"}, "dagster.group", "environment"),
        ({"owners": "team:data"}, "dagster.owners", "not a list"),
        ({"owners": ["team:data", "data"]}, "dagster.owners[1]", "team:<name>"),
        ({"owners": ["team:"]}, "dagster.owners[0]", "team:<name>"),
        ({"tags": ["gold"]}, "dagster.tags", "not a mapping"),
        ({"tags": {"dagster/kind/s3": ""}}, "dagster.tags", "Dagster's own"),
        ({"tags": {"a b": "c"}}, "dagster.tags", "a b is not a tag"),
        ({"tags": {"a": "two words"}}, "dagster.tags", "value of a"),
        ({"tags": {"a": {"b": "c"}}}, "dagster.tags.a", "single value"),
        ({"description": " "}, "dagster.description", "empty"),
        ({"automation": "yes"}, "dagster.automation", "neither true nor false"),
        ({"freshnessHours": 0}, "dagster.freshnessHours", "less than a minute"),
        ({"freshnessHours": "soon"}, "dagster.freshnessHours", "hours"),
        ({"healthIntervalSec": 0}, "dagster.healthIntervalSec", "above 0"),
    ],
)
def test_what_is_refused(folder, block, key, reason):
    (problem,) = problems(folder, block)
    assert problem.key == key
    assert reason in problem.reason


def test_everything_wrong_is_shown_at_once_with_its_line(folder):
    file = folder.spec(change=lambda w: w.update(dagster={"group": "a b", "owners": ["x"], "tag": "y"}))
    lines = file.read_text().splitlines()
    found = {p.key: lines[p.line - 1].strip() for p in folder.check()[1]}
    assert found == {"dagster.group": "group: a b", "dagster.owners[0]": "- x", "dagster.tag": "tag: y"}


WORDS = [
    "a",
    "a_b",
    "a-b",
    "a.b",
    "a/b",
    "a//b",
    "/a",
    "a b",
    "ä",
    "team:x",
    "team:",
    "x@y.example",
    "x@y",
    "",
]
WORDS += ["a" * 63, "a" * 64, "n/" + "a" * 63, "n/" + "a" * 64, "a\n", "x@y.co\n", "a/b/c", "x%y@z.museum"]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("key", ["group", "owners", "tag key", "tag value"])
def test_the_rules_are_dagsters(folder, key, word):
    """What passes here never stops the code location; what Dagster takes is not refused (line ends apart)."""
    as_block = {
        "group": {"group": word},
        "owners": {"owners": [word]},
        "tag key": {"tags": {word: "x"}},
        "tag value": {"tags": {"x": word}},
    }[key]
    as_spec = {
        "group": {"group_name": word},
        "owners": {"owners": [word]},
        "tag key": {"tags": {word: "x"}},
        "tag value": {"tags": {"x": word}},
    }[key]
    try:
        dg.Definitions(assets=[dg.AssetSpec("a", **as_spec)]).resolve_all_asset_specs()
        taken = not word.endswith("\n")
    except dg.DagsterInvalidDefinitionError:
        taken = False
    assert (problems(folder, as_block) == []) is taken


@pytest.mark.parametrize("hours", ["0.0166", "0.0167", "0.02", "999999"])
def test_freshness_windows_are_those_that_dagster_takes(folder, hours):
    try:
        dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=float(hours)))
        taken = True
    except Exception:  # Dagster's own check error, which is no public class
        taken = False
    assert (problems(folder, {"freshnessHours": hours}) == []) is taken
