"""The one door to the terminal: what is printed there may come from file names, Pinot or ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from pinot_assets.printable import visible


class Terminal(Console):
    """A console on which nothing but rich itself steers."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """See `Console.render`; everything that is shown passes here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))
