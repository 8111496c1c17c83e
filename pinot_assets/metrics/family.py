"""What a number is called: one family of samples, by Prometheus' own rules.

Base units (seconds, bytes) stand in the name, counters end in `_total`, moments are `_timestamp_seconds` so
that an age is `time() - …` and keeps growing while nobody looks. No label names a file, a segment or a run.
"""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "pinot_assets_"


@dataclass(frozen=True, slots=True)
class Family:
    """One name.

    :ivar name: as it is exposed, `_total` of a counter included.
    :ivar help: one sentence, with the unit where the name has none.
    :ivar labels: their names, in the order in which `of` takes their values.
    """

    name: str
    help: str
    labels: tuple[str, ...] = ("table",)

    @property
    def counts(self) -> bool:
        """Whether it is a counter."""
        return self.name.endswith("_total")

    def of(self, value: float, *labels: str) -> Sample:
        """One sample."""
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
    """A family of `pinot_assets_…` of tables; `labels` come after the table."""
    return Family(PREFIX + name, help_text, ("table", *labels))


def seconds(ms: float) -> float:
    """Milliseconds, of an age or since the epoch, in Prometheus' base unit."""
    return ms / 1000
