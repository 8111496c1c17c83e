"""The table of the audit demo, its audit blocks, and what is done to a tar on its way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast
from urllib.parse import unquote, urlsplit

from demos.steps import TABLE
from pinot_assets.pinot import PinotClient, PushReport
from pinot_assets.segment import rename_tar
from pinot_assets.settings.environment import tables_directory
from pinot_assets.snapshot.receipt import Output
from pinot_assets.table_spec.yaml.writer import dumped

BY_FILE: Final = [{"check": "row_change", "of": "file", "min": "-20%"}]
"""Tier 1: a file that is written again does not lose more than a fifth of its rows."""
BY_SERVERS: Final = [
    {
        "sql": f"SELECT month, day, COUNT(*) FROM {TABLE} GROUP BY month, day",
        "expect": "after >= 0.8 * live",
    }
]
"""Tier 3: nor does any day, asked of the servers."""
BY_SHADOW: Final = [
    {
        "sql": f"SELECT month, day, DISTINCTCOUNT(tailnum) FROM {TABLE} GROUP BY month, day",
        "expect": "after >= 0.8 * live",
        "via": "shadow",
    }
]
"""Tier 3: nor do a fifth of the aircraft of any day stay away, which only a broker can count."""


def write_spec(folder: Path, audit: Sequence[dict[str, str]]) -> None:
    """The sample table with this `audit:` block; none where it is empty."""
    name = f"{TABLE}.yaml"
    text = (tables_directory() / name).read_text()
    block = dumped({"audit": list(audit)}) if audit else ""
    (folder / name).write_text(f"{text}\n{block}")


def wrong_on_the_way(pinot: PinotClient, other: Path) -> PinotClient:
    """A Pinot to which another tar comes than the one that lies in the staging area.

    While a push is under way another segment's tar stands in the place of each, under its name; before and
    after it, everything is as it was built. Every other call goes on as it is.

    :param pinot: the real one.
    :param other: the tar that stands there instead.
    """
    return cast(PinotClient, _WrongOnTheWay(pinot, other))


class _WrongOnTheWay:
    """It has the methods of `PinotClient` by passing on whatever it is asked for."""

    def __init__(self, pinot: PinotClient, other: Path) -> None:
        self._pinot = pinot
        self._other = other

    def __getattr__(self, name: str) -> object:
        return getattr(self._pinot, name)

    def push(self, table: str, outputs: Sequence[Output], **options: object) -> PushReport:
        """The push, of the wrong tars."""
        tars = {output.segment: tar_of(output) for output in outputs}
        built = {tar: tar.read_bytes() for tar in tars.values()}
        push: Callable[..., PushReport] = self._pinot.push
        try:
            for name, tar in tars.items():
                rename_tar(self._other, tar, name=name)
            return push(table, outputs, **options)
        finally:
            for tar, content in built.items():
                tar.write_bytes(content)


def tar_of(output: Output) -> Path:
    """Where the tar lies on this machine."""
    return Path(unquote(urlsplit(output.tar_uri).path))
