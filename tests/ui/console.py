"""What a person does and reads in Dagster's pages, by the words that stand there."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

CODE_LOCATION = "pinot-assets"
RUN_MS = 420_000
"""For a run: it builds on Spark, on a machine that does other things too."""
_RUN_ID = re.compile("^[0-9a-f]{8}$")
_ENDED = re.compile("^(Success|Failure|Canceled)$")


class Console:
    """One browser tab.

    :param url: of the webserver.
    :param shots: folder that takes the screenshots.
    """

    def __init__(self, page: Page, url: str, shots: Path) -> None:
        self.page = page
        self.url = url
        self._shots = shots

    # --- pages ---

    def asset(self, key: str, view: str = "overview") -> None:
        """The page of an asset."""
        self.page.goto(f"{self.url}/assets/{key}?view={view}")

    def graph(self) -> None:
        """The lineage of all assets."""
        self.page.goto(f"{self.url}/asset-groups")

    def job(self, name: str, tab: str = "") -> None:
        """The page of a job."""
        self.page.goto(f"{self.url}/locations/{CODE_LOCATION}/jobs/{name}/{tab}")

    def sensor(self, name: str) -> None:
        """The page of a sensor."""
        self.page.goto(f"{self.url}/locations/{CODE_LOCATION}/sensors/{name}")

    def runs(self) -> None:
        """All runs, newest first."""
        self.page.goto(f"{self.url}/runs")

    # --- what a person does there ---

    def press(self, name: str) -> None:
        """A button, by a part of its name."""
        self.page.get_by_role("button", name=name).first.click()

    def launch(self, partition: str) -> None:
        """In the dialog that asks for partitions: choose one and launch."""
        dialog = self.page.locator(".dagster-dialog")
        dialog.get_by_text("Select a partition or create one").click()
        self.page.get_by_role("menuitem", name=partition).click()
        self.page.keyboard.press("Escape")
        dialog.get_by_role("button", name="Launch 1 run").click()

    def choose_partition(self, name: str) -> None:
        """In the launchpad: it then writes config and tags of this partition."""
        self.page.get_by_placeholder("Partition").click()
        self.page.get_by_role("menuitem", name=name).click()

    def show_tags(self) -> None:
        """Of the event on this page; Dagster remembers when they were asked for once."""
        button = self.page.get_by_role("button", name=re.compile("(Show|Hide) tags"))
        if "Show" in button.inner_text():
            button.click()

    def switch_on(self) -> None:
        """The sensor on this page."""
        switch = self.page.get_by_role("checkbox")
        self.page.locator("label").filter(has=switch).click()
        expect(switch).to_be_checked()

    def run(self) -> str:
        """Go to the run that was launched just now, and wait until it has ended; returns how."""
        launched = self.page.locator("[data-sonner-toast]").filter(has_text="Launched run")
        launched.get_by_text("View").click()
        self.page.mouse.move(0, 0)  # the notice stays as long as the mouse is on it
        return self.ended()

    def run_of_tick(self) -> str:
        """Go to the run that the sensor on this page started, and wait until it has ended; returns how."""
        link = self.page.locator("a").filter(has_text=_RUN_ID).first
        # The page draws its ticks anew all the time: a click may meet a link that is gone.
        self.page.goto(f"{self.url}{link.get_attribute('href')}")
        return self.ended()

    def ended(self) -> str:
        """Wait for the end of the run whose page this is; returns how it ended."""
        self.page.wait_for_url("**/runs/*")
        tag = self.page.get_by_text(_ENDED).first
        expect(tag).to_be_visible(timeout=RUN_MS)
        return tag.inner_text()

    # --- what the page says ---

    def says(self, *texts: str | re.Pattern[str]) -> None:
        """Wait until the page says all of it."""
        for text in texts:
            expect(self.page.get_by_text(text).first).to_be_visible()

    def says_not(self, text: str) -> None:
        """The page says no such thing once it has loaded all that it shows."""
        self.page.wait_for_load_state("networkidle")
        expect(self.page.get_by_text(text)).to_have_count(0)

    def logs(self, text: str, word: str) -> None:
        """The run whose page this is logged this line; only lines with that word of it are shown then."""
        self.page.get_by_placeholder("Filter…").fill(word)
        self.page.keyboard.press("Enter")
        self.says(text)

    def metadata(self, key: str) -> Locator:
        """The value of an entry in a table of metadata."""
        row = self.page.locator("tr").filter(has=self.page.get_by_text(key, exact=True))
        return row.locator("td").filter(has_text=re.compile(r"\S")).last

    def shot(self, name: str) -> None:
        """Keep what the page shows."""
        self.page.screenshot(path=self._shots / f"{name}.png", animations="disabled")
