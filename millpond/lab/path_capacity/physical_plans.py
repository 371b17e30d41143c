"""Physical plans of the same queries: drawn paths with a selection and a projection somewhere.

Three paths of three operators; a selection passes a tenth, a projection halves a tuple. What passes
an operator is drawn beforehand, for the n-th tuple that comes to it, so that plans whose operators
meet the same tuples pass the same ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from millpond.scheduling.charts.capacity import memory_release_capacity, processing_capacity
from millpond.scheduling.snapshot import FloatArray, PlanSnapshot
from millpond.scheduling.strategies.segment import Segment
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, Listed, Record, SimulatedPlan, Simulation, simulate
from millpond.workloads import Poisson

PATHS, LENGTH = 3, 3
SELECTIVE = 0.1
HALF = 0.5
SECONDS = 10.0
OVERLOAD = 1.5
"""The load of whichever plan is compared with."""


@dataclass(frozen=True)
class Step:
    """An operator of a path: seconds a tuple, what it passes, and how large its tuples are."""

    name: str
    cost_seconds: float
    passes: float = 1.0
    tuple_bytes: float = 1.0


Path: TypeAlias = tuple[Step, ...]
Paths: TypeAlias = tuple[Path, ...]
SELECTION = Step("selection", 2e-3, SELECTIVE)
UNSELECTIVE = Step("selection", 2e-3, 0.9)
PROJECTION = Step("projection", 2e-3, tuple_bytes=HALF)
CHEAP_PROJECTION = Step("projection", 1e-3)


def drawn_paths(generator: np.random.Generator) -> Paths:
    """Operators of 1 to 4 ms that pass 60 % at least."""
    return tuple(_drawn(generator) for _ in range(PATHS))


def _drawn(generator: np.random.Generator) -> Path:
    costs, passes = generator.uniform(1e-3, 4e-3, LENGTH), generator.uniform(0.6, 1.0, LENGTH)
    pairs = zip(costs.tolist(), passes.tolist(), strict=True)
    return tuple(Step(str(number), *pair) for number, pair in enumerate(pairs))


def first(paths: Paths, *steps: Step) -> Paths:
    """These before all others; what they narrow is narrow from there on."""
    size = min(step.tuple_bytes for step in steps)
    return tuple((*steps, *(replace(each, tuple_bytes=size) for each in path)) for path in paths)


def last(paths: Paths, *steps: Step) -> Paths:
    """These behind all others."""
    return tuple((*path, *steps) for path in paths)


def apart(paths: Paths) -> Paths:
    """A projection as an operator of its own behind the first."""
    return tuple((path[0], CHEAP_PROJECTION, *path[1:]) for path in paths)


def merged(paths: Paths) -> Paths:
    """The first operator does that projection too."""
    more = CHEAP_PROJECTION.cost_seconds
    return tuple(
        (replace(path[0], cost_seconds=path[0].cost_seconds + path[0].passes * more), *path[1:])
        for path in paths
    )


def work_seconds(path: Path) -> float:
    """What one input tuple means."""
    passed = np.cumprod([1.0, *(step.passes for step in path[:-1])])
    return float(sum(share * step.cost_seconds for share, step in zip(passed, path, strict=True)))


def arrivals(paths: Paths, seed: int) -> Mapping[str, FloatArray]:
    """Tuples on each path such as are too many for these paths."""
    rate = OVERLOAD / sum(map(work_seconds, paths))
    return {
        f"s{place}": Poisson(rate).until(SECONDS, 10 * seed + place) for place in range(len(paths))
    }


def simulated(
    paths: Paths,
    strategy: Strategy,
    arriving: Mapping[str, FloatArray],
    seed: int,
    tuple_bytes: float = 1.0,
) -> Record:
    """What a strategy does with these plans; tuples have that size when they come."""
    most = max(map(len, arriving.values()))
    return simulate(_plan(paths, tuple_bytes, seed, most), strategy, dict(arriving), Conditions())


def _plan(paths: Paths, tuple_bytes: float, seed: int, tuples: int) -> SimulatedPlan:
    plan = SimulatedPlan()
    for place, path in enumerate(paths):
        source: int | str = plan.stream(f"s{place}", tuple_bytes)
        for step in path:
            passed = _passed(step, (seed, place, *step.name.encode()), tuples)
            source = plan.operator(
                f"{place}.{step.name}", source, step.cost_seconds, passed, step.tuple_bytes
            )
        assert isinstance(source, int)  # noqa: S101
        plan.query(f"q{place}", source)
    return plan


def _passed(step: Step, key: Sequence[int], tuples: int) -> Listed | float:
    if step.passes == 1.0:
        return 1.0
    drawn = np.random.default_rng(key).random(tuples) < step.passes
    return Listed.of(drawn.astype(np.float64))


@dataclass(frozen=True)
class Capacities:
    """Of a run of operators that begins at a leaf, by formulas 3.1 and 3.2."""

    processing: float
    memory_release: float


def capacities(path: Path) -> dict[str, Capacities]:
    """Of the whole path, and of the segment that Segment begins with."""
    snapshot, whole, runs = _segmented(path)
    leaf = next(run for run in runs if run[0] == whole[0])
    return {
        name: Capacities(processing_capacity(snapshot, run), memory_release_capacity(snapshot, run))
        for name, run in (("path", whole), ("segment", leaf))
    }


def segments(path: Path) -> int:
    """How many Segment makes of it: so often a tuple is buffered on its way."""
    return len(_segmented(path)[2])


def _segmented(path: Path) -> tuple[PlanSnapshot, Sequence[int], Sequence[Sequence[int]]]:
    plan = SimulatedPlan()
    whole = plan.path("q", plan.stream("s"), [(step.cost_seconds, step.passes) for step in path])
    snapshot = Simulation(plan, {"s": [0.0]}).plan()
    return snapshot, whole, [run.operators for run in Segment().runs(snapshot)]
