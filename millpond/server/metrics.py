"""`/metrics`: every number in the control tables, as Prometheus reads it."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from millpond.entities.control_tables import Entity
from millpond.errors import MillpondError
from millpond.server.service import Service

COUNTED = ("rows_in", "rows_out", "driver_steps", "executor_steps", "results", "arrived", "late")
"""Attributes that only grow."""


class EntityCollector:
    """Turns control tables into metrics, one a numeric attribute.

    Of a kind only the most active entities are told: an answer stays small with thousands of them.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        entities, most = self._service.engine.entities(), self._service.limits.metrics_entities
        left_out = GaugeMetricFamily(
            "millpond_server_entities_left_out",
            "entities that are not told here, as others are more active",
            labels=["kind"],
        )
        for kind in entities.kinds.values():
            found, others = entities.busiest(kind.name, most)
            left_out.add_metric([kind.name], others)
            tables = list(_tables(found))
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
        yield left_out
        readers = GaugeMetricFamily("millpond_server_readers", "endless responses at present")
        readers.add_metric([], self._service.feeds.readers)
        yield readers


def _tables(entities: Iterable[Entity]) -> Iterator[tuple[str, dict[str, Any]]]:
    for entity in entities:
        with suppress(KeyError, MillpondError):  # it is gone meanwhile
            yield entity.name, entity.values()


def exposition(service: Service) -> bytes:
    """What a scrape answers."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EntityCollector(service))
    return generate_latest(registry)
