"""Samples in Prometheus' own formats, by its own client library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pinot_assets.metrics.family import Family, Sample


def registry_of(read: Callable[[], Iterable[Sample]]) -> CollectorRegistry:
    """:param read: asked once for each exposition."""
    registry = CollectorRegistry()
    registry.register(_Samples(read))
    return registry


def text_of(samples: Iterable[Sample]) -> str:
    """The text format."""
    kept = [*samples]
    return generate_latest(registry_of(lambda: kept)).decode()


class _Samples(Collector):
    def __init__(self, read: Callable[[], Iterable[Sample]]) -> None:
        self._read = read

    def describe(self) -> Iterator[Metric]:
        """Nothing: a registry that is told nothing would look at every table to learn the names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Family by family; of two samples with the same labels the last one, as one is all there may be."""
        families: dict[str, tuple[Family, dict[tuple[str, ...], float]]] = {}
        for sample in self._read():
            families.setdefault(sample.family.name, (sample.family, {}))[1][sample.labels] = sample.value
        for name in sorted(families):
            yield _metric(*families[name])


def _metric(family: Family, values: dict[tuple[str, ...], float]) -> Metric:
    kind = CounterMetricFamily if family.counts else GaugeMetricFamily
    metric = kind(family.name, family.help, labels=family.labels)
    for labels, value in values.items():
        metric.add_metric(labels, value)
    return metric
