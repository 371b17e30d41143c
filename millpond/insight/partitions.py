"""What SHOW PARTITIONS and SHOW THREADS answer: who is in them, and how they do."""

from collections.abc import Iterator
from typing import Any

from millpond.sharing.queries import Queries


def thread_rows(queries: Queries) -> Iterator[dict[str, Any]]:
    """A row for each thread of the strategy in charge."""
    for place, thread in enumerate(queries.partitioning.threads()):
        yield {
            "thread": f"thread{place}",
            "partition": thread.partition,
            "strategy": thread.strategy,
            "priority": thread.priority,
            "operators": ", ".join(thread.operators),
            "falls behind": thread.falls_behind,
        }


def partition_rows(queries: Queries) -> Iterator[dict[str, Any]]:
    """A row for each partition."""
    partitioning, settings = queries.partitioning, queries.ground.settings
    for entry in partitioning.entries:
        operators = partitioning.operators(entry.name)
        statistics = queries.runtime.statistics if operators else {}
        yield {
            "name": entry.name,
            "strategy": entry.strategy or f"{settings.strategy} (as SET)",
            "threads": entry.threads,
            "priority": entry.priority,
            "queries": ", ".join(partitioning.queries(entry.name)),
            "operators": ", ".join(operators),
            "by hand": ", ".join(entry.operators),
            "waiting rows": partitioning.waiting_rows(entry.name),
            "under way": partitioning.under_way(entry.name),
            "seconds": round(sum(statistics[each].tally.seconds for each in operators), 3),
        }
