"""`millpond top` without a script: a server as one looks at it, from its control tables."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.live import Live
from rich.text import Text

from millpond.cli.results import text_table
from millpond.cli.top import LIVE_SECONDS, MOST_OPERATORS, MOST_QUERIES, PLAIN_SECONDS
from millpond.client import RemoteEngine
from millpond.delivery.latency import in_unit


def watch_server(engine: RemoteEngine, seconds: float | None) -> None:
    """Shows how a server goes until Ctrl-C, or for so long."""
    ends = None if seconds is None else time.monotonic() + seconds
    if sys.stdout.isatty():
        with Live(Text(view(engine)), console=Console(), auto_refresh=False) as live:
            for _ in _moments(LIVE_SECONDS, ends):
                live.update(Text(view(engine)), refresh=True)
        return
    sys.stdout.write(view(engine) + "\n")
    for _ in _moments(PLAIN_SECONDS, ends):
        sys.stdout.write("\n" + view(engine) + "\n")
        sys.stdout.flush()


def _moments(pause_seconds: float, ends: float | None) -> Iterator[None]:
    while ends is None or time.monotonic() + pause_seconds < ends:
        time.sleep(pause_seconds)
        yield


def view(engine: RemoteEngine) -> str:
    """How a server goes, as text."""
    status = engine.status()
    operators = engine.tables("operator")
    load = sum(each["load"] for each in operators)
    waits = [f"query {each['query']} {each['words']}" for each in status["waiting"]]
    summary = (
        f"load {load:.2f}, strategy {status['strategy']}, {status['queries']:,} queries, "
        f"{status['failures']} failed, {status['readers']} readers"
    )
    lines = [
        summary,
        "",
        _operators(operators),
        "",
        *_queries(engine.tables("query")),
        *waits[:MOST_QUERIES],
        "",
        f"bottleneck: {status['bottleneck']}",
    ]
    return "\n".join(lines)


def _operators(operators: list[dict[str, Any]]) -> str:
    busiest = sorted(operators, key=lambda each: -each["load"])
    rows = [
        {
            "operator": each["name"],
            "rows/s in": f"{each['rows_in_per_second']:,.0f}",
            "rows/s out": f"{each['rows_out_per_second']:,.0f}",
            "load": f"{each['load']:.0%}",
            "rows waiting": f"{each['waiting_rows']:,}",
            "does": each["does"],
        }
        for each in busiest[:MOST_OPERATORS]
    ]
    more = len(busiest) - len(rows)
    text = text_table(pa.Table.from_pylist(rows)) if rows else "no operators"
    return f"{text}\n… and {more} operators less busy" if more > 0 else text


def _queries(queries: list[dict[str, Any]]) -> Iterator[str]:
    for each in queries[:MOST_QUERIES]:
        p50, p95 = each["latency_p50_seconds"], each["latency_p95_seconds"]
        known = "–" if p50 is None else f"p50 {in_unit(p50)}, p95 {in_unit(p95)}"
        yield f"{each['name']}: {each['state']}, {each['results']:,} results, latency {known}"
    if len(queries) > MOST_QUERIES:
        yield f"… and {len(queries) - MOST_QUERIES} queries more"
