"""What it takes to register views and queries, before Spark starts.

Views on views, 5 to 40 levels, each reading the one below it twice; a chain of views that select;
10 to 1,000 views with a query on each; the program of Linear Road. One JSON line a case; `growth`
is what one level or view costs with the most of them over what it costs with the fewest, 1 if the
whole is linear. Then one query more among 10 to 10,000 (``--quick``: 1,000) of its shape, while
data flows: what it costs to register it, to drop it, and what a step costs of which the same few
queries have something. Seconds are those of the processor, so that other work on the machine does
not count.

    python -m benchmarks.registration [--quick] [--out DIR]
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.reporting import Report, note, options, progress
from millpond import Engine

LEVELS = (5, 10, 20, 40)
VIEWS = (10, 100, 1000)
GROWTH_GOAL = 1.5
"""Twice as many cost at most a little more than twice as much: caches are colder."""

AMONG = (10, 100, 1_000, 10_000)
FLAT_GOAL = 2.0
ONE_GOAL_MILLISECONDS, ALL_GOAL_SECONDS = 20.0, 20.0
TRIALS = 20
MATCHED = 10
"""So many queries have something of a step, however many there are."""

LINEAR_ROAD = Path(__file__).parent / "road" / "linear_road.cql"
LINEAR_ROAD_GOAL_SECONDS = 1.0

DECLARED = (
    "CREATE STREAM S (t BIGINT, a INT, b INT) TIMESTAMP BY t; CREATE RELATION R (a INT, b INT);"
)
BODIES = {
    "self join": "SELECT x.a, y.b FROM {0} x, {0} y WHERE x.a = y.a AND x.b > {1}",
    "self join of streams": "SELECT x.a, y.b FROM {0} x [RANGE 9], {0} y [NOW] "
    "WHERE x.a = y.a AND x.b > {1}",
    "outer join of groups": "SELECT x.a, max(y.b) AS b FROM {0} x LEFT JOIN {0} y "
    "ON x.a = y.a AND y.b > {1} GROUP BY x.a",
    "value and IN": "SELECT a, b FROM {0} WHERE a > (SELECT max(b) FROM {0}) "
    "AND b IN (SELECT a FROM {0} WHERE b > {1})",
    "selections": "SELECT a, b FROM {0} WHERE b > {1} AND a < {1}",
}


def nested(body: str, levels: int) -> str:
    """Views, each over the one below it, and a query on the last."""
    base = "S" if "[" in body else "R"
    names = [f"SELECT a, b FROM {base}", *(f"v{i}" for i in range(1, levels + 1))]
    views = [f"CREATE VIEW v1 AS {names[0]};"]
    views += [f"CREATE VIEW v{i} AS {body.format(names[i - 1], i)};" for i in range(2, levels + 1)]
    return "\n".join([DECLARED, *views, f"CREATE QUERY q AS SELECT a, b FROM v{levels};"])


def beside(views: int) -> str:
    """Views beside one another, each over one before it, and a query on each."""
    lines = [DECLARED, "CREATE VIEW v0 AS SELECT a, b FROM S [RANGE 9] WHERE a > 0;"]
    for i in range(1, views + 1):
        lines += [
            f"CREATE VIEW v{i} AS SELECT a, count(*) AS b FROM v0 WHERE b > {i} GROUP BY a;",
            f"CREATE QUERY p{i} AS SELECT a, b FROM v{i} WHERE b > 1;",
        ]
    return "\n".join(lines)


def seconds(script: str, repeats: int) -> tuple[float, int]:
    """The least time to register a script, and its operators."""
    found = []
    for _ in range(repeats):
        with Engine() as engine:
            began = time.process_time()
            engine.execute(script)
            found.append(time.process_time() - began)
            operators = len(engine.graph.operators)
    return min(found), operators


def measure(
    report: Report, case: str, make: Callable[[int], str], sizes: tuple[int, ...], repeats: int
) -> dict[int, float]:
    """Registers programs of growing sizes."""
    taken = {}
    for size in sizes:
        taken[size], operators = seconds(make(size), repeats)
        report.value(f"{case}, {size}", taken[size] * 1e3, "ms", operators=operators)
    least, most = min(taken), max(taken)
    growth = (taken[most] / most) / (taken[least] / least)
    what = f"the cost of one of {most} over one of {least}"
    report.ratio(f"{case}, growth", growth, GROWTH_GOAL, at_most=True, what=what)
    return taken


def alert(name: str, key: int) -> str:
    """One of the queries of one shape."""
    return f"CREATE QUERY {name} AS SELECT t, b FROM S WHERE a = {key};"


class Among:
    """What a query more, one less, and a step cost among so many queries of one shape."""

    def __init__(self, number: int) -> None:
        self.taken: dict[str, list[float]] = {"register": [], "drop": [], "step": []}
        with Engine() as engine:
            engine.execute(DECLARED)
            began = time.process_time()
            engine.execute("\n".join(alert(f"q{i}", i) for i in range(number)))
            self.at_once_seconds = time.process_time() - began
            for at in range(TRIALS):
                self._step(engine, at)
                self._time("register", lambda at=at: engine.execute(alert(f"p{at}", at)))
            for at in range(TRIALS):
                self._step(engine, TRIALS + at)
                self._time("drop", lambda at=at: engine.execute(f"DROP QUERY p{at};"))

    def _step(self, engine: Engine, at: int) -> None:
        rows = [(at, i % MATCHED, i) for i in range(100)]
        self._time("step", lambda: (engine.push("S", rows), engine.run_until_idle()))

    def _time(self, what: str, work: Callable[[], object]) -> None:
        began = time.process_time()
        work()
        self.taken[what].append(time.process_time() - began)

    def milliseconds(self, what: str) -> float:
        """The median."""
        return statistics.median(self.taken[what]) * 1e3


def among(report: Report, numbers: tuple[int, ...]) -> None:
    """What one query costs among others, and how that grows with their number."""
    found = {number: Among(number) for number in numbers}
    least, most = min(numbers), max(numbers)
    for number, each in found.items():
        costs = {f"{what} ms": each.milliseconds(what) for what in each.taken}
        report.value(f"{number:,} of a shape at once", each.at_once_seconds, "s", **costs)
    for what in found[most].taken:
        growth = found[most].milliseconds(what) / found[least].milliseconds(what)
        told = f"among {most:,} over among {least:,}"
        report.ratio(f"{what}, one query", growth, FLAT_GOAL, at_most=True, what=told)
    one = found[most].milliseconds("register")
    report.ratio(f"one among {most:,}, ms", one, ONE_GOAL_MILLISECONDS, at_most=True)
    if most == max(AMONG):
        seconds_taken = found[most].at_once_seconds
        report.ratio(f"{most:,} at once, s", seconds_taken, ALL_GOAL_SECONDS, at_most=True)


def linear_road(report: Report, repeats: int) -> None:
    """The program of Linear Road, fed by hand."""
    script = re.sub(r"FROM csv\([^)]*\)", "FROM push()", LINEAR_ROAD.read_text(encoding="utf-8"))
    taken, operators = seconds(script, repeats)
    views = len(re.findall(r"^CREATE VIEW", script, re.MULTILINE))
    report.ratio(
        "Linear Road, seconds",
        taken,
        LINEAR_ROAD_GOAL_SECONDS,
        at_most=True,
        millpond=taken,
        views=views,
        operators=operators,
    )


def main() -> None:
    """Registers everything, several times."""
    given = options(__doc__ or "", "views beside one another at most").parse_args()
    report = Report("registration", given.out)
    repeats = 3 if given.quick else 9
    sizes = tuple(size for size in VIEWS if size <= (given.rows or max(VIEWS)))
    curves: dict[str, Mapping[int, float]] = {}
    with progress(len(BODIES) + 3) as start:
        start("one among many")
        among(report, tuple(n for n in AMONG if n <= 1_000 or not given.quick))
        for case, body in BODIES.items():
            start(case)
            curves[case] = measure(report, case, lambda n, b=body: nested(b, n), LEVELS, repeats)
        start("views beside one another")
        curves["views"] = measure(report, "views with queries", beside, sizes, repeats)
        start("Linear Road")
        if LINEAR_ROAD.exists():
            linear_road(report, repeats)
        else:
            note(f"no {LINEAR_ROAD.name}: Linear Road is left out")
    report.draw("seconds", lambda figure: plot(figure, curves))
    report.close()


def plot(figure: Figure, curves: Mapping[str, Mapping[int, float]]) -> None:
    """Seconds over the number of views, a line a case."""
    axes = figure.subplots()
    for case, taken in curves.items():
        axes.plot(list(taken), list(taken.values()), marker="o", lw=1, label=case)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("views")
    axes.set_ylabel("seconds to register")
    axes.legend(fontsize=7)


if __name__ == "__main__":
    main()
