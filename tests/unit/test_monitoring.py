"""deploy/prometheus and deploy/grafana name only metrics and labels that there are, and all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import combinations

import promql_parser
import pytest
import yaml
from fakes.monitoring.catalogue import FAMILIES
from fakes.monitoring.every_metric import every_sample, run_steps
from fakes.project import ROOT

from pinot_assets.core.json_object import JsonObject
from pinot_assets.metrics.pushing import run_samples

DASHBOARD: JsonObject = json.loads((ROOT / "deploy" / "grafana" / "pinot-assets.json").read_text())
RULES = [
    rule
    for group in yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
GUIDE = (ROOT / "docs" / "guides" / "metrics.md").read_text()

LABELS = {family.name: set(family.labels) for family in FAMILIES}
NOT_SHOWN = {"pinot_assets_build_info"}
"""It says of which version the collector is, and with an alert that there is one."""
(SCRAPED_AS,) = re.findall(r"^  - job_name: (.+)\n    scrape_interval", GUIDE, re.MULTILINE)
"""What the guide has Prometheus call the endpoint."""
UNITS = {"s": "_seconds", "bytes": "_bytes"}


def panels() -> list[JsonObject]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def targets() -> Iterator[tuple[JsonObject, JsonObject]]:
    for panel in panels():
        for target in panel["targets"]:
            yield panel, target


def selectors(text: str) -> list[promql_parser.VectorSelector]:
    """Every metric that an expression asks for; its grammar is Prometheus' own."""
    found: list[promql_parser.VectorSelector] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.MatrixSelector):
            found.append(node.vector_selector)
        elif isinstance(node, promql_parser.VectorSelector):
            found.append(node)

    promql_parser.walk(promql_parser.parse(text), pre_visit=visit)
    assert found, text
    return found


@cache
def exported() -> dict[str, dict[str, set[str]]]:
    """What the code exports of the fakes: name → label → its values."""
    found: dict[str, dict[str, set[str]]] = {}
    for sample in every_sample():
        labels = found.setdefault(sample.family.name, {name: set() for name in sample.family.labels})
        for name, value in zip(sample.family.labels, sample.labels, strict=True):
            labels[name].add(value)
    return found


def assert_there(text: str) -> None:
    for selector in selectors(text):
        if selector.name == "up":  # Prometheus' own, of what it scrapes
            assert [(m.name, m.value) for m in selector.matchers.matchers] == [("job", SCRAPED_AS)]
            continue
        assert selector.name in exported(), f"{selector.name} in {text}"
        for matcher in selector.matchers.matchers:
            values = exported()[selector.name].get(matcher.name)
            assert values is not None, f"{selector.name} has no label {matcher.name}: {text}"
            if matcher.op is promql_parser.MatchOp.Equal:
                assert matcher.value in values, f"{selector.name} has never {matcher.name}={matcher.value}"


def test_the_code_exports_every_metric_of_the_catalogue() -> None:
    assert exported().keys() == LABELS.keys()


# --- alerts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_is_of_what_is_exported(rule: JsonObject) -> None:
    assert_there(rule["expr"])
    known = set.union(*(LABELS.get(selector.name, {"instance"}) for selector in selectors(rule["expr"])))
    said = " ".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", said)) <= known
    assert {*re.findall(r"\| (\w+)", said)} <= {"humanize", "humanizeDuration"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_how_bad_it_is_and_where_to_read_on(rule: JsonObject) -> None:
    assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert re.fullmatch(r"\d+[mh]", rule["for"])
    assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"operations.md#{rule['alert'].lower()}"


def test_no_alert_is_of_what_a_gateway_would_keep_though_it_is_true_no_more() -> None:
    """Of what runs push, only the newest run's success calls anybody."""
    pushed = {sample.family.name for sample in run_samples("t", run_steps(), 1.0)}
    asked = {selector.name for rule in RULES for selector in selectors(rule["expr"])}
    assert pushed & asked == {"pinot_assets_run_success"}


def test_no_alert_has_the_name_of_another() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("wrong", ["pinot_assets_tables_on_fire == 1", 'pinot_assets_up{segment="s"} == 1'])
def test_what_is_not_exported_is_noticed(wrong: str) -> None:
    with pytest.raises(AssertionError):
        assert_there(wrong)


def test_the_guide_lists_every_metric() -> None:
    told = re.findall(r"^\| `(pinot_assets_[a-z_]+)` \| ([^|]*) \| ([^|]*) \|$", GUIDE, re.MULTILINE)
    assert told == [
        (family.name, ", ".join(f"`{label}`" for label in family.labels), family.help) for family in FAMILIES
    ]


# --- the dashboard ---------------------------------------------------------------------------------


def test_every_expression_of_the_dashboard_is_of_what_is_exported() -> None:
    for panel, target in targets():
        assert_there(target["expr"])
        for selector in selectors(target["expr"]):
            (table,) = (m for m in selector.matchers.matchers if m.name == "table")
            assert table.value == "$table", panel["title"]
            legend = {*re.findall(r"{{(\w+)}}", target["legendFormat"])}
            if panel["type"] in ("timeseries", "state-timeline"):  # each line has a name of its own
                assert legend == LABELS[selector.name], panel["title"]
    for annotation in DASHBOARD["annotations"]["list"]:
        if not annotation.get("builtIn"):
            assert_there(annotation["expr"])


def test_every_metric_is_in_the_dashboard_or_listed_as_not() -> None:
    shown = {selector.name for _, target in targets() for selector in selectors(target["expr"])}
    assert shown == LABELS.keys() - NOT_SHOWN


def test_a_panel_has_the_unit_of_its_numbers() -> None:
    for panel, target in targets():
        names = {selector.name for selector in selectors(target["expr"])}
        ends = [end for unit, end in UNITS.items() if panel["fieldConfig"]["defaults"]["unit"] == unit]
        for end in UNITS.values():
            assert any(name.endswith(end) for name in names) <= (end in ends), panel["title"]


def test_the_dashboard_is_built_as_grafana_wants_it() -> None:
    assert DASHBOARD["schemaVersion"] == 39
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", DASHBOARD["uid"])
    assert "id" not in DASHBOARD, "an id is of one Grafana"
    assert DASHBOARD.keys() >= {"title", "tags", "time", "refresh", "templating", "annotations", "panels"}
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Overview", "Sessions", "Files", "Audit", "REALTIME", "Collector"]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in panels():
        assert panel["type"] in ("stat", "timeseries", "state-timeline", "table")
        assert panel["title"]
        assert panel["fieldConfig"].keys() == {"defaults", "overrides"}
        assert "options" in panel
        for part in (panel, *panel["targets"]):
            assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))


def test_its_panels_lie_in_the_grid_and_on_no_other() -> None:
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    for place in places:
        assert place["x"] + place["w"] <= 24
    for one, two in combinations(places, 2):
        beside = one["x"] + one["w"] <= two["x"] or two["x"] + two["w"] <= one["x"]
        above = one["y"] + one["h"] <= two["y"] or two["y"] + two["h"] <= one["y"]
        assert beside or above


def test_its_variables_are_the_data_source_and_the_table() -> None:
    source, table = DASHBOARD["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    assert (table["name"], table["type"]) == ("table", "query")
    assert table["multi"]
    assert table["includeAll"]
    asked = re.fullmatch(r"label_values\((.*), table\)", table["query"]["query"])
    assert asked is not None
    (names,) = re.findall(r'__name__=~"(.*)"', asked[1])
    assert set(names.split("|")) <= exported().keys()
