"""Names of numbers: a family of samples follows Prometheus' naming rules, and is written in its formats.

Names contain base units (seconds, bytes). Counters end in `_total`. Moments end in `_timestamp_seconds`, so
that an age is `time() - …` and grows even if no look succeeds. No label names a file, a segment or a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

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


def registry_of(read: Callable[[], Iterable[Sample]]) -> CollectorRegistry:
    """:param read: called once for each exposition."""
    registry = CollectorRegistry()
    registry.register(_Samples(read))
    return registry


def prometheus_text(samples: Iterable[Sample]) -> str:
    """Return the samples in Prometheus' text format."""
    kept = [*samples]
    return generate_latest(registry_of(lambda: kept)).decode()


class _Samples(Collector):
    def __init__(self, read: Callable[[], Iterable[Sample]]) -> None:
        self._read = read

    def describe(self) -> Iterator[Metric]:
        """Return nothing: without this method the registry would look at every table to learn the names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield family by family; of samples with the same labels only the last, as Prometheus allows one."""
        families: dict[str, tuple[Family, dict[tuple[str, ...], float]]] = {}
        for sample in self._read():
            families.setdefault(sample.family.name, (sample.family, {}))[1][sample.labels] = sample.value
        for name, (family, values) in sorted(families.items()):
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            metric = kind(name, family.help, labels=family.labels)
            for labels, value in values.items():
                metric.add_metric(labels, value)
            yield metric
