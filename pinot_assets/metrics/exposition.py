"""Samples as Prometheus' library exposes them: a registry, and its text format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pinot_assets.metrics.family import Family, Sample


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
