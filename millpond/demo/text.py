"""The demo as text: a burst under two strategies side by side, then bursty web-proxy traffic, the
three example queries of the STREAM paper and their moving answers.

It ends by itself, after about a minute.
"""

import contextlib
import sys
import time
from collections import deque
from functools import partial
from pathlib import Path

import pyarrow as pa
from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from millpond.connectors import Progress
from millpond.demo import side_by_side
from millpond.facade.engine import Engine

SCRIPT = Path(__file__).with_name("stream_examples.cql")
TRAFFIC = """
CREATE QUERY traffic AS
  SELECT COUNT(*) AS requests FROM Requests [RANGE 30 MINUTES SLIDE 30 MINUTES]
"""
LONGEST_SECONDS = 30.0
LINE_SECONDS = 1.0
"""Where there is no terminal a line is written so often, if something has changed."""
PAGE_ROWS = 2_000
PAUSE_SECONDS = 0.2
"""So long the reader rests after a page, so that one sees the answers move."""
HERE = {"page_rows": PAGE_ROWS, "driver_rows": 10**9, "place_by": "rows"}
"""Steps of these sizes take milliseconds in the driver: nobody waits for Spark to start."""
BARS = " ▁▂▃▄▅▆▇█"


class TimeIsUpError(Exception):
    """The demo has worked for long enough."""


class Dashboard:
    """The answers as they are now."""

    def __init__(self) -> None:
        self.counts = {"stanford": 0, "cs_department": 0}
        self.urls: deque[str] = deque(maxlen=8)
        self.url_count = 0
        self.half_hours: deque[int] = deque(maxlen=80)
        self.requests_read = 0
        self.clock = ""
        self.ways = ""
        self.speaks = False
        """Whether lines are written, as nobody draws it."""
        self.started = time.monotonic()
        self._said: tuple[int, ...] = ()
        self._said_at = 0.0

    def changed(self, query: str, table: pa.Table) -> None:
        """A count is a relation of one row: what was added last is the answer now."""
        added = [row["requests"] for row in table.to_pylist() if row["weight"] > 0]
        if query == "traffic":
            self.half_hours.extend(added)
        elif added:
            self.counts[query] = added[-1]
        if self.speaks:
            self.say()

    def emitted(self, table: pa.Table) -> None:
        """The third query is a stream: everything it says is new."""
        self.urls.extend(table.column("url").to_pylist())
        self.url_count += table.num_rows

    def say(self) -> None:
        """Writes a line, if the last one is a second old and something has changed since."""
        figures = (*self.counts.values(), self.url_count)
        now = time.monotonic()
        if figures != self._said and now - self._said_at >= LINE_SECONDS:
            self._said, self._said_at = figures, now
            _say(self.line())

    def line(self) -> str:
        """Everything in one line, where there is no terminal to draw on."""
        return (
            f"{self._seconds():5.1f} s | {self.clock} | {self._bars()[-12:]:>12} | "
            f"{self.requests_read:7,} requests read | "
            f"stanford.edu, last day: {self.counts['stanford']:6,} | "
            f"CS, 10 latest a client: {self.counts['cs_department']:5,} | "
            f"shopping URLs: {self.url_count:5,} | {self.ways}"
        )

    def __rich__(self) -> Panel:
        answers = Table.grid(padding=(0, 2))
        for label, number in (
            ("requests for stanford.edu in the last day", self.counts["stanford"]),
            ("for its CS department, among each client's 10 latest", self.counts["cs_department"]),
            ("sampled URLs of shops so far, the latest below", self.url_count),
        ):
            answers.add_row(label, Text(f"{number:,}", style="bold yellow"))
        parts: list[RenderableType] = [
            Text("requests per half hour"),
            Text(self._bars(), style="cyan"),
            Text(),
            answers,
            Text("\n".join(self.urls), style="dim"),
        ]
        title = f"{self.clock} · {self.requests_read:,} requests · {self._seconds():.0f} s"
        parts.append(Text(self.ways, style="green"))
        return Panel(Group(*parts), title=title, width=92)

    def _bars(self) -> str:
        highest = max(self.half_hours, default=0) or 1
        return "".join(BARS[count * (len(BARS) - 1) // highest] for count in self.half_hours)

    def _seconds(self) -> float:
        return time.monotonic() - self.started


def prepare(engine: Engine, dashboard: Dashboard) -> None:
    """Registers the queries and has their results go to the dashboard."""
    engine.execute(SCRIPT.read_text(), name=SCRIPT.name)
    engine.execute(TRAFFIC)
    for query in ("stanford", "cs_department", "traffic"):
        engine.subscribe(query, partial(dashboard.changed, query))
    engine.subscribe("shopping", dashboard.emitted)
    engine.subscribe("stanford", partial(tell_time, engine, dashboard))


def tell_time(engine: Engine, dashboard: Dashboard, table: pa.Table) -> None:
    """The clock on the wall of the proxy: the time of the latest result."""
    steps = sum(measured.tally.steps for measured in engine.runtime.statistics.values())
    dashboard.ways = f"{steps:,} steps"
    dashboard.clock = str(engine.format_time("stanford", table.column("ts")[-1].as_py()))


def run(engine: Engine, dashboard: Dashboard, show: Live | None) -> None:
    """Reads the traffic to its end or until the time is up, showing each step."""

    dashboard.speaks = show is None

    def report(_: str, progress: Progress) -> None:
        dashboard.requests_read = progress.done
        if dashboard.speaks:
            dashboard.say()
        time.sleep(PAUSE_SECONDS)
        if time.monotonic() - dashboard.started > LONGEST_SECONDS:
            raise TimeIsUpError

    with contextlib.suppress(TimeIsUpError):
        engine.run_sources(report)


def main() -> None:
    """Compares two strategies, then runs the queries and draws the dashboard."""
    _say("A burst under two strategies ...")
    side_by_side.main()
    _say("Three days of requests to a web proxy, and three queries ...")
    with Engine(HERE, keep_results=False) as engine:
        dashboard = Dashboard()
        prepare(engine, dashboard)
        if sys.stdout.isatty():
            with Live(dashboard, refresh_per_second=8) as live:
                run(engine, dashboard, live)
        else:
            run(engine, dashboard, None)
    _say(f"Done: {dashboard.line()}")
    _say("The queries are in examples/stream_examples.cql; try: millpond shell")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
