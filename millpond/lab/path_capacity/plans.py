"""Path Capacity paper, sections 2.2, 3.2 and 4.1: plans, limits of service, and FIFO's backlog.

A lower selectivity of the leaf increases the capacity of a path dramatically, and pushing
selections and projections down improves latency and memory; a shorter path is no faster, but its
tuples are buffered less often; very large limits of service worsen latency; FIFO keeps its whole
backlog at the beginning of each path.

Three paths of four operators that are drawn, in an overload of ten seconds. A selection that passes
a tenth stands last or first; a projection that halves a tuple does; a projection is an operator or
is done by the one before it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.tables import table_of
from millpond.lab.words import CLEARLY, MUCH, SAME, on_most_seeds, told_by_seed
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Conditions, Record, SimulatedPlan, simulate
from millpond.workloads import Poisson

PATHS = 3
SECONDS = 10.0
OVERLOAD = 1.5
UNIT_SECONDS = 0.1
LONG_SECONDS = 5.0
"""A very large limit of service."""
SELECTIVE = 0.1
HALF = 0.5
STRATEGIES = ("path-capacity", "segment")


class Step(NamedTuple):
    """An operator of a path: seconds a tuple, what it passes, and the size of its tuples."""

    cost: float
    passes: float
    size: float = 1.0


def run(seeds: Sequence[int]) -> Tables:
    """Ratios, seed by seed."""
    rows: list[dict[str, float]] = []
    for seed in seeds:
        generator = np.random.default_rng((41, seed))
        drawn = [_path(generator) for _ in range(PATHS)]
        rows.append(_measured(drawn, seed))
    return {"by seed": table_of(tuple(rows[0]), [tuple(row.values()) for row in rows])}


def _path(generator: np.random.Generator) -> list[Step]:
    costs = generator.uniform(1e-3, 4e-3, 3)
    passes = generator.uniform(0.6, 1.0, 3)
    return [Step(*each) for each in zip(costs.tolist(), passes.tolist(), strict=True)]


def _measured(drawn: Sequence[list[Step]], seed: int) -> dict[str, float]:
    selection = Step(2e-3, SELECTIVE)
    late = [[*path, selection] for path in drawn]
    early = [[selection, *path] for path in drawn]
    narrow = [
        [Step(2e-3, 1.0, HALF), *(each._replace(size=HALF) for each in path)] for path in drawn
    ]
    wide = [[*path, Step(2e-3, 1.0, HALF)] for path in drawn]
    apart = [[path[0], Step(1e-3, 1.0), *path[1:]] for path in drawn]
    merged = [
        [path[0]._replace(cost=path[0].cost + path[0].passes * 1e-3), *path[1:]] for path in drawn
    ]
    found = {"capacity, first over last": _capacity(early[0]) / _capacity(late[0])}
    found["capacity, merged over apart"] = _capacity(merged[0]) / _capacity(apart[0])
    for name in STRATEGIES:
        for text, one, other in (
            ("selection", early, late),
            ("projection", narrow, wide),
            ("shorter", merged, apart),
        ):
            arrivals = _arrivals(other, seed)
            mine, theirs = (_simulated(each, name, arrivals, seed) for each in (one, other))
            found[f"{name}, {text}: latency"] = (
                mine.mean_latency_seconds / theirs.mean_latency_seconds
            )
            found[f"{name}, {text}: memory"] = mine.mean_bytes / theirs.mean_bytes
            found[f"{name}, {text}: switches"] = mine.context_switches / theirs.context_switches
    arrivals = _arrivals(drawn, seed)
    for name in STRATEGIES:
        long, short = (
            _simulated(drawn, name, arrivals, seed, unit).mean_latency_seconds
            for unit in (LONG_SECONDS, UNIT_SECONDS)
        )
        found[f"{name}, limit of 5 s over 0.1 s: latency"] = long / short
    arrivals = _arrivals(early, seed)
    return {**found, "fifo inside": _inside(early, arrivals, seed)}


def _work(path: Sequence[Step]) -> float:
    """Seconds that one input tuple means."""
    passed = np.cumprod([1.0, *(step.passes for step in path[:-1])])
    return float(sum(share * step.cost for share, step in zip(passed, path, strict=True)))


def _capacity(path: Sequence[Step]) -> float:
    """Formula 2.2."""
    return 1 / _work(path)


def _arrivals(paths: Sequence[Sequence[Step]], seed: int) -> dict[str, FloatArray]:
    rate = OVERLOAD / sum(map(_work, paths))
    return {
        f"s{place}": Poisson(rate).until(SECONDS, 10 * seed + place) for place in range(len(paths))
    }


def _plan(paths: Sequence[Sequence[Step]], tuple_bytes: float = 1.0) -> SimulatedPlan:
    plan = SimulatedPlan()
    for place, path in enumerate(paths):
        below: int | str = plan.stream(f"s{place}", tuple_bytes)
        for number, step in enumerate(path):
            below = plan.operator(f"{place}.{number}", below, step.cost, step.passes, step.size)
        assert isinstance(below, int)  # noqa: S101
        plan.query(f"q{place}", below)
    return plan


def _simulated(
    paths: Sequence[Sequence[Step]],
    name: str,
    arrivals: dict[str, FloatArray],
    seed: int,
    unit_seconds: float = UNIT_SECONDS,
) -> Record:
    strategy = make(name, slice_seconds=unit_seconds)
    return simulate(_plan(paths), strategy, arrivals, Conditions(seed=seed))


def _inside(paths: Sequence[Sequence[Step]], arrivals: dict[str, FloatArray], seed: int) -> float:
    """The most tuples that are past the first operator under FIFO: streams weigh nothing."""
    fifo = make("fifo", max_tuples=1)
    return simulate(_plan(paths, 0.0), fifo, arrivals, Conditions(seed=seed)).peak_bytes


def plot(tables: Tables, figure: Figure) -> None:
    """Every ratio, a spot for each seed."""
    axes = figure.subplots()
    table = tables["by seed"]
    for place, (name, values) in enumerate(table.items()):
        axes.scatter(values, [place] * len(values), s=8, label=name)
    axes.set_yticks(range(len(table)), list(table), fontsize=6)
    axes.set_xscale("log")
    axes.axvline(1.0, color="grey", lw=0.8)
    figure.tight_layout()


def check(tables: Tables) -> Sequence[Claim]:
    """Every sentence, seed by seed."""
    table = tables["by seed"]
    optimized = '"the tuple latency and the memory requirements [...] can be optimized": below 1'
    claims = [
        _claim(
            table["capacity, first over last"],
            "capacity of a path with its selection first over last",
            f'"dramatically increases the processing capacity": at least {MUCH:g}',
            least=MUCH,
        ),
        _claim(
            table["capacity, merged over apart"],
            "capacity of a path with a projection merged into a selection, over apart",
            f'"it does not increase the processing rate of the path": 1, within {SAME:.0%}',
            1 - SAME,
            1 + SAME,
        ),
    ]
    for name in STRATEGIES:
        claims += [
            _claim(
                table[f"{name}, {what}: {measure}"],
                f"{name}, {what} first: {measure} over that with it last",
                optimized,
                most=1.0,
                why=FEWER_FIRST if what == "projection" else "",
            )
            for what in ("selection", "projection")
            for measure in ("latency", "memory")
        ]
        claims += [
            _claim(
                table[f"{name}, shorter: {measure}"],
                f"{name}, shorter path: {measure} over that of the longer one",
                f'"can decrease the tuple latency and the scheduling overhead": up to {1 + SAME:g}',
                most=1 + SAME,
                why=SEGMENTED,
            )
            for measure in ("latency", "switches")
        ]
        claims.append(
            _claim(
                table[f"{name}, limit of 5 s over 0.1 s: latency"],
                f"{name}: mean latency with a limit of {LONG_SECONDS:g} s over {UNIT_SECONDS:g} s",
                '"very large [...] values of these limited parameters have a negative impact on '
                f'the tuple latency": at least {CLEARLY:g}',
                least=CLEARLY,
                why="a round of five seconds takes in what waits and no more, which in an overload "
                "is most of the backlog of one path",
            )
        )
    return [
        *claims,
        _claim(
            table["fifo inside"],
            "FIFO: tuples past their first operator at any instant, at most",
            '"maintains its entire backlog of unprocessed tuples at the beginning of each operator '
            'path": 1, the one that is served',
            most=1.0,
        ),
    ]


FEWER_FIRST = (
    "the projection is work that tuples which are filtered out behind it would not have caused"
)
SEGMENTED = "the operator that is left is cut off where the longer path was not"


def _claim(
    values: Sequence[float],
    text: str,
    expected: str,
    least: float = 0.0,
    most: float = float("inf"),
    why: str = "",
) -> Claim:
    so = [least <= value <= most for value in values]
    found = "the other way round on most seeds" if 2 * sum(so) < len(so) else "on some seeds only"
    other = Instead(f"{found}, {sum(so)} of {len(so)}", why, sum(so) < len(so)) if why else None
    return Claim(text, expected, told_by_seed(values, so), on_most_seeds(so), other)


EXPERIMENT = experiment(__name__, "Section 4.1, plans", seeds=10)
