"""Path Capacity paper, Theorem 2: the least memory of all path-based strategies, and when.

At no instant does any other path-based strategy need less memory than Path Capacity.

The least is over all schedules that carry each tuple through once begun, idle as they like and know
the arrivals. The theorem is true when (1) no tuple is half served at the time others arrive, (2)
tuples are of one size, (3) a tuple counts until it leaves. The paper's assumption that capacities
by tuples and by bytes order paths alike is kept in the third counterexample and does not save it.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from millpond.lab.chain.instances import Instance
from millpond.lab.experiment import Claim, Instead, Tables, experiment
from millpond.lab.path_capacity import instances
from millpond.lab.path_capacity.excess import (
    ROUNDING,
    Counterexample,
    Measure,
    counterexample_claims,
    excess_in,
    measured_excess,
    none_above,
    plot_excess,
    some_above,
)
from millpond.scheduling.registry import make
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, SimulatedPlan, simulate

INSTANCES_A_SEED = 50
WAITING = "whole tuples, all wait"
WHOLE = "whole tuples, none half served when others arrive"
SHRINKING = "tuples shrink on their way, all wait"
ANY = "whole tuples, any arrivals"
WORDS = '"any other path-based [...] strategy requires at least as much memory [...] at any time"'
HALF_SERVED = (
    "the proof looks at tuples that wait; one that is begun is carried through while a shorter one "
    "arrives, for which another strategy may have waited"
)
FREED_LATE = (
    "the proof counts tuples served in a unit of time, memory falls when operators free it: a path "
    "of less capacity can free more sooner"
)
UNEQUAL = (
    "capacities are rates, alike in order here; at one instant it counts which whole tuples are "
    "done, and the larger frees more"
)


def run(seeds: Sequence[int]) -> Tables:
    """The largest excess at any instant over all path-based schedules, and counterexamples."""
    measures: dict[str, Measure] = {
        WAITING: _waiting,
        WHOLE: _whole,
        SHRINKING: _shrinking,
        ANY: _any,
    }
    return measured_excess(measures, _counterexamples(), seeds, INSTANCES_A_SEED, offset=10)


def strategy() -> Strategy:
    """Path Capacity, one tuple a round, so that it never leaves one half-way."""
    return make("path-capacity", max_tuples=1)


def excess(instance: Instance) -> float:
    """The largest excess at any instant over the least of all path-based schedules."""
    mine = instances.sizes_at_instants(instance, instances.run_instance(instance, strategy()))
    return float((mine - instances.least_path_based_sizes(instance)).max())


def _waiting(generator: np.random.Generator) -> float:
    return excess(instances.flat(instances.batch(generator, queries=3, tuples=5)))


def _whole(generator: np.random.Generator) -> float | None:
    instance = instances.flat(instances.over_time(generator, queries=3, tuples=5))
    kept = instances.with_whole_arrivals(instance, strategy())
    return None if kept is None else excess(kept)


def _shrinking(generator: np.random.Generator) -> float:
    return excess(instances.batch(generator, queries=3, tuples=5))


def _any(generator: np.random.Generator) -> float:
    return excess(instances.flat(instances.over_time(generator, queries=3, tuples=5)))


def _counterexamples() -> list[Counterexample]:
    late = Instance((((0.0, 1.0), (9.0, 0.0)), ((0.0, 1.0), (1.0, 0.0))), ((0,), (1,)))
    inner = Instance((((0.0, 1.0), (3.0, 0.0)), ((0.0, 1.0), (1.0, 0.1), (4.0, 0.0))), ((0,), (0,)))
    return [
        (
            "at 2 s, when a 9 s tuple arrived at 0 and one of 1 s at 1",
            _at(late, 2),
            _least(late, 2),
            2,
            1,
        ),
        (
            "at 1 s, when a 3 s path frees all at its end, one of 4 s nine tenths after 1 s",
            _at(inner, 1),
            _least(inner, 1),
            2,
            1.1,
        ),
        (
            "at 3 s, when a 2 s path takes tuples of 2 bytes, one of 3 s tuples of 2.9",
            _unequal_sizes(1.0),
            _unequal_sizes(2.0),
            2.9,
            2,
        ),
    ]


def _at(instance: Instance, instant: int) -> float:
    return float(
        instances.sizes_at_instants(instance, instances.run_instance(instance, strategy()))[instant]
    )


def _least(instance: Instance, instant: int) -> float:
    return float(instances.least_path_based_sizes(instance)[instant])


def _unequal_sizes(large_weight: float) -> float:
    """Bytes that wait at 3 s; the weight makes the larger tuple go first."""
    plan = SimulatedPlan()
    plan.path("small", plan.stream("s", tuple_bytes=2.0), [(2.0, 1.0)])
    plan.path("large", plan.stream("t", tuple_bytes=2.9), [(3.0, 1.0)], large_weight)
    record = simulate(plan, strategy(), {"s": [0.0], "t": [0.0]}, Conditions())
    return float(record.memory.at(3.0))


def check(tables: Tables) -> Sequence[Claim]:
    """Exact for whole tuples, within one tuple while they shrink, false with later arrivals."""
    return [
        *(none_above(tables, setting, WORDS) for setting in (WAITING, WHOLE)),
        _within_one_tuple(tables),
        some_above(tables, ANY, WORDS, "tuples", HALF_SERVED),
        *counterexample_claims(tables, WORDS, (HALF_SERVED, FREED_LATE, UNEQUAL)),
    ]


def _within_one_tuple(tables: Tables) -> Claim:
    values = excess_in(tables, SHRINKING)
    above = sum(value > ROUNDING for value in values)
    return Claim(
        f"{SHRINKING}: above the optimum by",
        f"{WORDS}: 0",
        f"{max(values):.3f} tuples at worst, above 0 in {above} of {len(values)}",
        above == 0,
        Instead("below one tuple", FREED_LATE, max(values) < 1),
    )


plot = partial(plot_excess, label="largest excess over the optimum (tuples)")
EXPERIMENT = experiment(__name__, "Theorem 2: least memory among path-based strategies")
