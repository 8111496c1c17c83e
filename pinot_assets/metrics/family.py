"""Names of numbers: a family of samples follows Prometheus' naming rules.

Names contain base units (seconds, bytes). Counters end in `_total`. Moments end in `_timestamp_seconds`, so
that an age is `time() - …` and grows even if no look succeeds. No label names a file, a segment or a run.
"""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "pinot_assets_"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: its name, help and labels.

    :ivar name: as Prometheus sees it; a counter's includes `_total`.
    :ivar help: one sentence, with the unit where the name has none.
    :ivar labels: their names, in the order in which `of` takes their values.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ("table",)

    def of(self, value: float, *labels: str) -> Sample:
        """Return one sample; `labels` are the values of the labels, in the order of their names."""
        if len(labels) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, not {labels}")
        return Sample(self, labels, float(value))


@dataclass(frozen=True, slots=True)
class Sample:
    """One number.

    :ivar labels: the values of the family's labels, in its order.
    """

    family: Family
    labels: tuple[str, ...]
    value: float


def gauge(name: str, help_text: str, *labels: str) -> Family:
    """Return a family `pinot_assets_<name>`; its labels are the table, then `labels`."""
    return Family(PREFIX + name, help_text, ("table", *labels))


def seconds(ms: float) -> float:
    """Convert milliseconds, of an age or since the epoch, to seconds, Prometheus' base unit."""
    return ms / 1000
