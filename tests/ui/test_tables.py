"""Five tables in Dagster that the command line alone has driven: each page says what the table is."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.builder import InProcessBuilder
from fakes.tables import write_files, write_table
from playwright.sync_api import Page, expect
from ui.conftest import ROOT
from ui.console import Console

from pinot_assets.local import processes, ui
from pinot_assets.pinot import HttpPinotClient
from pinot_assets.session.driver import Driver
from pinot_assets.session.stores.clients import open_clients
from pinot_assets.settings.environment import load_settings
from pinot_assets.settings.local_stack import StackState
from pinot_assets.table_spec import TableSpec
from pinot_assets.table_spec.tables.apply import apply_plan, plan_apply

pytestmark = pytest.mark.timeout(1200)

SAYS = {
    "new_table": ("was never published", "pinot-assets run new_table"),
    "failed_table": ("failed: 1 of 1 file could not be built", "pinot-assets run failed_table"),
    "held_table": ("is held by a rollback", "pinot-assets resume held_table"),
    "behind_table": ("is behind its source", "pinot-assets run behind_table"),
    "fine_table": ("is published as the source has it", "queries see cp1-"),
}
"""What the page of each table says, and what of it a person types or reads next."""


def publish(spec: TableSpec) -> None:
    with (
        open_clients(spec, load_settings(), InProcessBuilder()) as clients,
        Driver(spec, clients, "pinot-assets test") as driver,
    ):
        driver.trigger()
        driver.audit()
        driver.publish()


def fail(spec: TableSpec) -> None:
    with (
        open_clients(spec, load_settings(), InProcessBuilder()) as clients,
        Driver(spec, clients, "pinot-assets test") as driver,
    ):
        driver.trigger()
        driver.audit()


def take_back(spec: TableSpec) -> None:
    with (
        open_clients(spec, load_settings(), InProcessBuilder()) as clients,
        Driver(spec, clients, "pinot-assets test") as driver,
    ):
        driver.rollback()


@pytest.fixture(scope="module")
def tables(stack: StackState, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder of the specs of five tables, each as its name says."""
    folder = tmp_path_factory.mktemp("five")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PINOT_CONTROLLER_URL", stack.controller_url)
        patch.setenv("PINOT_ZOOKEEPER", stack.zookeeper)
        patch.setenv("PINOT_ASSETS_TABLES", str(folder / "tables"))
        patch.setenv("DAGSTER_HOME", "")  # `start` sets it; this puts it back
        patch.setattr(ui, "PREFERRED_PORT", processes.free_port(()))
        with HttpPinotClient(load_settings().pinot) as pinot:
            specs = {}
            for name in SAYS:
                (folder / name).mkdir()
                spec = write_table(folder / name, name)
                text = spec.path.read_text()
                (folder / "tables").mkdir(exist_ok=True)
                (folder / "tables" / f"{name}.yaml").write_text(text)
                apply_plan(plan_apply(spec, pinot), pinot)
                specs[name] = spec
            end = time.monotonic() + 90
            while any(len(pinot.brokers(name)) < 2 for name in specs):
                assert time.monotonic() < end, "the brokers do not take the tables"
                time.sleep(0.1)
            for name in ("held_table", "behind_table", "fine_table"):
                write_files(folder / name, F1="a b")
                publish(specs[name])
            write_files(folder / "held_table", F2="c")
            publish(specs["held_table"])
            take_back(specs["held_table"])
            write_files(folder / "behind_table", F2="c")
            (folder / "failed_table" / "source" / "F1.csv").write_bytes(b"v\n\xff\xfe broken \xff\n")
            fail(specs["failed_table"])
            yield folder
            for name in specs:
                pinot.delete_table(name)
                pinot.delete_schema(name)


@pytest.fixture(scope="module")
def five(tables: Path, page: Page) -> Iterator[Console]:
    yield Console(page, ui.start(tables / "home", ROOT), ROOT / "docs" / "ui")
    ui.stop(tables / "home")


def test_each_table_says_what_it_is_without_anybody_having_run_anything(five: Console) -> None:
    for name, texts in SAYS.items():
        five.asset(name, "checks&checkDetail=status")
        for text in texts:
            # The sensor that only reads is on from the start; Dagster's first ticks take their time.
            expect(five.page.get_by_text(text).first).to_be_visible(timeout=240_000)
        if name == "failed_table":
            five.shot("status-failed")


def test_the_gate_that_shut_at_the_command_line_is_shown(five: Console) -> None:
    five.asset("failed_table/segments", "checks&checkDetail=consistent_push")
    five.says("Nothing is switched: nothing is published yet")


def test_one_page_has_a_line_for_each_table_that_is_not_up_to_date(five: Console) -> None:
    five.asset("pinot_assets/tables")
    five.says("5 tables: 1 failed, 1 held, 1 waiting, 1 not published, 1 up to date")
    five.says(*(text for name, (text, _) in SAYS.items() if name != "fine_table"))
    five.says_not("is published as the source has it")
    five.shot("tables")


def test_the_catalog_shows_the_difference_in_each_row(five: Console) -> None:
    five.page.goto(f'{five.url}/assets?asset-selection=kind:"table"')
    five.says(*SAYS)
    rows = {name: five.page.locator("[class*=rowGrid]").filter(has_text=name) for name in SAYS}
    for name in ("new_table", "failed_table"):
        expect(rows[name].get_by_text("Never materialized", exact=True)).to_be_visible()
    for name in ("held_table", "behind_table", "fine_table"):
        expect(rows[name].get_by_text("Materialized", exact=True)).to_be_visible()
    expect(rows["behind_table"].get_by_text("Upstream data")).to_be_visible()
    expect(rows["fine_table"].get_by_text("Upstream data")).to_have_count(0)
    five.shot("tables-catalog")


def test_the_graph_counts_other_states_in_each_closed_group(five: Console) -> None:
    five.graph()
    five.says(*SAYS)
    boxes = five.page.locator("[class*=collapsedGroupNodeBox]")
    counts = {}
    for name in SAYS:
        tags = boxes.filter(has_text=name).locator("[class*=baseTag]")
        expect(tags.first).to_be_visible()  # as soon as the group knows the states of all its assets
        colors = (re.search("background-([a-z]+)", tag.get_attribute("style") or "") for tag in tags.all())
        counts[name] = dict(zip((c and c[1] for c in colors), tags.all_inner_texts(), strict=True))
    assert counts == {
        "new_table": {"green": "1", "yellow": "4"},
        "failed_table": {"yellow": "3", "red": "2"},
        "held_table": {"green": "3", "yellow": "1", "red": "1"},
        "behind_table": {"green": "4", "yellow": "1"},
        "fine_table": {"green": "5"},
    }
    five.shot("tables-graph")


def test_the_page_of_the_table_that_is_behind_says_so_at_its_top(five: Console) -> None:
    five.asset("behind_table")
    five.says(re.compile(r"^Unsynced"))
    five.asset("fine_table")
    five.says("Latest materialization")
    five.says_not("Unsynced")
