"""`millpond top`: a running script as one looks at it, operators, backlog, latency, bottleneck."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pyarrow as pa
from rich.console import Console
from rich.live import Live
from rich.text import Text

from millpond.catalog import QueryEntry
from millpond.cli.faults import STDIN_SCRIPT, Script, warn
from millpond.cli.notices import say_what_it_took, warn_of_bad_rows, warn_of_late_tuples
from millpond.cli.results import text_table
from millpond.facade.engine import Engine
from millpond.insight.bottleneck import OperatorView, bottleneck, operator_views
from millpond.intake.reading import ReadLimits
from millpond.settings import Settings

LIVE_SECONDS, PLAIN_SECONDS = 0.5, 5.0
"""How often the view is made anew, on a terminal and elsewhere."""

MOST_OPERATORS, MOST_QUERIES = 20, 10


def run_top(script: Script, settings: Settings, limits: ReadLimits) -> None:
    """Executes a script and shows how it goes until its sources end."""
    with Engine(settings, keep_results=False) as engine:
        if script.name == STDIN_SCRIPT:
            engine.ground.claims.keep_stdin("the script")
        engine.execute(script.text, name=script.name)
        warn(engine.warnings(), script)
        working = _Working(engine, limits)
        if sys.stdout.isatty():
            _live(engine, working)
        else:
            while not working.is_over(PLAIN_SECONDS):
                sys.stdout.write(view(engine) + "\n\n")
                sys.stdout.flush()
        sys.stdout.write(view(engine) + "\n")
        working.raise_failure()
        say_what_it_took(engine)
        warn_of_late_tuples(engine)
        warn_of_bad_rows(engine)


def _live(engine: Engine, working: _Working) -> None:
    with Live(Text(view(engine)), console=Console(), transient=True, auto_refresh=False) as live:
        while not working.is_over(LIVE_SECONDS):
            live.update(Text(view(engine)), refresh=True)


class _Working:
    """An engine at work in a thread."""

    def __init__(self, engine: Engine, limits: ReadLimits) -> None:
        self._engine, self._limits = engine, limits
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._engine.finish(None, self._limits.seconds, self._limits.rows)
        except BaseException as error:  # noqa: BLE001 (raised where it is waited for)
            self._failure = error

    def is_over(self, within_seconds: float) -> bool:
        """Whether the work ends within a time."""
        self._thread.join(within_seconds)
        return not self._thread.is_alive()

    def raise_failure(self) -> None:
        """Raises what the work has raised."""
        if self._failure is not None:
            raise self._failure


def view(engine: Engine) -> str:
    """How a running engine goes, as text."""
    with engine.held():
        operators = list(operator_views(engine.queries, engine.entities()))
        lines = [_summary(engine, operators), "", _table(operators), "", *_queries(engine)]
    return "\n".join([*lines, "", f"bottleneck: {bottleneck(operators)}"])


def _summary(engine: Engine, operators: list[OperatorView]) -> str:
    load = sum(each.load for each in operators)
    if not engine.has_runtime:
        return "nothing runs yet"
    backlog = engine.runtime.backlog
    return (
        f"load {load:.2f} of {engine.runtime.limits.processors}, backlog "
        f"{backlog.bytes / 1e6:,.2f} MB (at most {backlog.peak_bytes / 1e6:,.2f}), strategy "
        f"{engine.settings.strategy}"
    )


def _table(operators: list[OperatorView]) -> str:
    busiest = sorted(operators, key=lambda each: -each.load)
    rows = [
        {
            "operator": each.name,
            "rows/s in": f"{each.rows_in:,.0f}",
            "rows/s out": f"{each.rows_out:,.0f}",
            "load": f"{each.load:.0%}",
            "rows waiting": f"{each.waiting_rows:,}",
            "does": each.does,
        }
        for each in busiest[:MOST_OPERATORS]
    ]
    more = len(busiest) - len(rows)
    text = text_table(pa.Table.from_pylist(rows)) if rows else "no operators"
    return f"{text}\n… and {more} operators less busy" if more > 0 else text


def _queries(engine: Engine) -> Iterator[str]:
    queries = list(engine.catalog.of_kind(QueryEntry))
    for entry in queries[:MOST_QUERIES]:
        count = engine.result_count(entry.name)
        yield f"{entry.name}: {count:,} results, latency {engine.latency(entry.name)}"
    if len(queries) > MOST_QUERIES:
        yield f"… and {len(queries) - MOST_QUERIES} queries more"
