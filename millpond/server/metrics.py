"""`/metrics`: every number in the control tables, as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from millpond.server.service import Service

MOST_OF_A_KIND = 200
"""So many entities of a kind are told, so that an answer stays small with thousands of queries."""

COUNTED = ("rows_in", "rows_out", "driver_steps", "executor_steps", "results", "arrived", "late")
"""Attributes that only grow."""


class EntityCollector:
    """Turns control tables into metrics, one a numeric attribute."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        entities = self._service.engine.entities()
        for kind in entities.kinds.values():
            found = entities.of_kind(kind.name)[:MOST_OF_A_KIND]
            tables = [(entity.name, entity.values()) for entity in found]
            for attribute in kind.attributes:
                if attribute.type not in ("integer", "number"):
                    continue
                form = CounterMetricFamily if attribute.name in COUNTED else GaugeMetricFamily
                name = f"millpond_{kind.name}_{attribute.name}"
                metric = form(name, attribute.meaning, labels=[kind.name])
                for entity, values in tables:
                    if values[attribute.name] is not None:
                        metric.add_metric([entity], float(values[attribute.name]))
                yield metric
        readers = GaugeMetricFamily("millpond_server_readers", "endless responses at present")
        readers.add_metric([], self._service.feeds.readers)
        yield readers


def exposition(service: Service) -> bytes:
    """What a scrape answers."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EntityCollector(service))
    return generate_latest(registry)
