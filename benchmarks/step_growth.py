"""What a step costs with much and with little alive: its cost follows its input, not its state.

    python -m benchmarks.step_growth [--quick] [--out DIR] [--rows MOST_ALIVE] [--cases NAME ...]

Steps of 1,000 rows in the driver, without Spark, while 10,000 and while 1,000,000 rows are alive
(--quick: 200,000): medians of warm steps, in turns, so that both meet the same machine. Parts of a
state are merged now and then, which a median does not show: the means stand beside them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from benchmarks.reporting import Report, options, progress
from millpond import Engine
from millpond.settings import Settings

STEP_ROWS = 1_000
FEW, MANY, QUICK_MANY = 10_000, 1_000_000, 200_000
FILL_ROWS = 50_000
GOAL = 1.5
EVERYTHING = 10**12


@dataclass(frozen=True)
class Case:
    """A query, {alive} being the rows of its windows, and what it reads."""

    name: str
    cql: str
    inputs: tuple[str, ...] = ("S",)
    filled: tuple[str, ...] = ()
    """Streams that are full before the first step, and quiet after that."""
    keys_per_row: float = 1.0
    """How many different keys there are for each row alive."""
    goal: float | None = GOAL


CASES = (
    Case(
        "join",
        "SELECT L.key, L.value, R.value AS other FROM L [RANGE {half}], R [RANGE {half}] "
        "WHERE L.key = R.key",
        ("L", "R"),
        keys_per_row=0.5,
    ),
    Case(
        "aggregate",
        "SELECT key, count(*) AS n, max(value) AS largest FROM S [RANGE {alive}] GROUP BY key",
        keys_per_row=0.1,
    ),
    Case("rows window", "SELECT DSTREAM key, value FROM S [ROWS {alive}]"),
    Case("distinct", "SELECT DISTINCT key FROM S [RANGE {alive}]"),
    Case("percentile", "SELECT percentile(value, 0.5) AS middle FROM S [RANGE {alive}]"),
    Case("count distinct", "SELECT count(DISTINCT key) AS n FROM S [RANGE {alive}]"),
    Case("max of a rows window", "SELECT max(value) AS largest FROM S [ROWS {alive}]"),
    Case(
        "Rstream of a NOW join",
        "SELECT RSTREAM S.key, R.value FROM S [NOW], R [RANGE {forever}] WHERE S.key = R.key",
        filled=("R",),
    ),
)


@dataclass
class Source:
    """A stream of one tuple a tick; the same seed gives the same tuples."""

    name: str
    keys: int
    random: np.random.Generator
    next: int = 0

    def page(self, rows: int) -> pa.Table:
        """The next tuples."""
        times = np.arange(self.next, self.next + rows)
        self.next += rows
        return pa.table(
            {
                "ts": times,
                "key": self.random.integers(0, self.keys, rows),
                "value": self.random.random(rows),
            }
        )


@dataclass
class Running:
    """A case with so many rows alive."""

    case: Case
    alive: int
    engine: Engine = field(init=False)
    milliseconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = Settings(driver_rows=EVERYTHING, processors=1, spark_master="local[1]")
        self.engine = Engine(settings, keep_results=False)
        keys = max(1, int(self.alive * self.case.keys_per_row))
        names = (*self.case.inputs, *self.case.filled)
        self._sources = {
            name: Source(name, keys, np.random.default_rng(seed)) for seed, name in enumerate(names)
        }
        for name in names:
            self.engine.execute(
                f"CREATE STREAM {name} (ts BIGINT, key BIGINT, value DOUBLE) TIMESTAMP BY ts;"
            )
        sizes = {"alive": self.alive, "half": self.alive // 2, "forever": 10**9}
        self.engine.execute(f"CREATE QUERY q AS {self.case.cql.format(**sizes)};")
        for _ in self._fill():
            self.engine.run_until_idle()

    def _fill(self) -> Iterator[None]:
        """Windows full, page by page; quiet streams stand where the others begin."""
        for name in self.case.filled:
            for rows in _pieces(self.alive):
                self.engine.push(name, self._sources[name].page(rows))
            self.engine.advance(name, 10**9)
            for other in self.case.inputs:
                self._sources[other].next = self.alive
        each = 0 if self.case.filled else self.alive // len(self.case.inputs)
        for rows in _pieces(each):
            for name in self.case.inputs:
                self.engine.push(name, self._sources[name].page(rows))
            yield
        yield

    def step(self) -> None:
        """One step of some rows, timed from pushing them to having the results."""
        each = STEP_ROWS // len(self.case.inputs)
        ready = {name: self._sources[name].page(each) for name in self.case.inputs}
        began = time.perf_counter()
        for name, page in ready.items():
            self.engine.push(name, page)
        self.engine.run_until_idle()
        self.milliseconds.append(1000 * (time.perf_counter() - began))


def _pieces(rows: int) -> Iterator[int]:
    for first in range(0, rows, FILL_ROWS):
        yield min(FILL_ROWS, rows - first)


def measured(case: Case, many: int, times: int, warm: int) -> tuple[list[float], list[float]]:
    """The milliseconds of each step with few and with many rows alive."""
    with ExitStack() as stack:
        both = [Running(case, alive) for alive in (FEW, many)]
        for each in both:
            stack.enter_context(each.engine)
        for _ in range(times + warm):
            for each in both:
                each.step()
        return both[0].milliseconds[warm:], both[1].milliseconds[warm:]


def draw(figure: Figure, found: dict[str, tuple[float, float]], many: int) -> None:
    """Two bars a case."""
    axes = figure.subplots()
    places = np.arange(len(found))
    for number, alive in enumerate((FEW, many)):
        heights = [both[number] for both in found.values()]
        axes.barh(places + 0.4 * number, heights, 0.4, label=f"{alive:,} rows alive")
    axes.set_yticks(places + 0.2, list(found))
    axes.set_xlabel(f"milliseconds of a step of {STEP_ROWS:,} rows")
    axes.legend()


def compare(report: Report, cases: Sequence[Case], is_quick: bool, most: int | None) -> None:
    """Measures cases with few and with many rows alive, and prints."""
    many = most or (QUICK_MANY if is_quick else MANY)
    times, warm = (40, 10) if is_quick else (100, 20)
    found = {}
    with progress(len(cases)) as doing:
        for case in cases:
            doing(case.name)
            few_alive, many_alive = measured(case, many, times, warm)
            few, much = statistics.median(few_alive), statistics.median(many_alive)
            found[case.name] = few, much
            means = statistics.mean(few_alive), statistics.mean(many_alive)
            report.ratio(
                f"{case.name}: {many:,} rows alive against {FEW:,}",
                much / few,
                case.goal,
                at_most=True,
                millpond={"few_alive_ms": few, "many_alive_ms": much},
                mean_ratio=means[1] / means[0],
            )
    report.draw("cases", lambda figure: draw(figure, found, many))
    report.close()


def main() -> None:
    """Measures all cases and prints."""
    parser = options(__doc__ or "", "how many rows are alive at most")
    parser.add_argument("--cases", nargs="*", help="some of the cases, by name")
    chosen = parser.parse_args()
    cases = [case for case in CASES if not chosen.cases or case.name in chosen.cases]
    compare(Report("step_growth", chosen.out), cases, chosen.quick, chosen.rows)


if __name__ == "__main__":
    main()
