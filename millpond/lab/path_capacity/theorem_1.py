"""Path Capacity paper, Theorem 1: the least total latency of all strategies, and when.

Path Capacity has the least total latency of all strategies.

The optimum is over all schedules that work on any tuple in any unit of time, with the arrivals
known. The theorem is true when (1) no tuple is half served at the time others arrive, as when all
wait from the start, (2) every tuple counts the same, whatever it yields, (3) paths share no
operators; false without any one of these.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from millpond.lab.chain.instances import Instance
from millpond.lab.experiment import Claim, Tables, experiment
from millpond.lab.path_capacity.excess import (
    Counterexample,
    Measure,
    counterexample_claims,
    measured_excess,
    none_above,
    plot_excess,
    some_above,
)
from millpond.lab.path_capacity.instances import (
    batch,
    least_total_latency,
    over_time,
    run_instance,
    total_latency,
    with_whole_arrivals,
)
from millpond.scheduling.registry import make
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, SimulatedPlan, simulate

INSTANCES_A_SEED = 80
WAITING = "all tuples wait"
WHOLE = "no tuple is half served when others arrive"
ANY = "any arrivals"
BY_OUTPUT = "all tuples wait, latency over output tuples"
RAISED = "all tuples wait, latency over output tuples, capacity times outputs a tuple"
WORDS = (
    '"optimal [...] in terms of the total tuple latency [...] among all the scheduling strategies"'
)
HALF_SERVED = (
    "the proof exchanges two waiting tuples; of one that is half served, the time that remains "
    "counts, which a static priority does not know"
)
UNEQUAL = "capacity counts input tuples; where outputs are counted, capacity times outputs is right"
SHARED = "the proof takes paths for independent; what is shared is paid once for both"


def run(seeds: Sequence[int]) -> Tables:
    """Excess of total latency over the exhaustive optimum, and three counterexamples."""
    measures: dict[str, Measure] = {
        WAITING: _waiting,
        WHOLE: _whole,
        ANY: _any,
        BY_OUTPUT: _by_output,
        RAISED: _raised,
    }
    return measured_excess(measures, _counterexamples(), seeds, INSTANCES_A_SEED, offset=0)


def strategy() -> Strategy:
    """Path Capacity, asked once a unit of time."""
    return make("path-capacity", slice_seconds=1.0)


def excess(instance: Instance) -> float:
    """Total latency above the least possible."""
    return total_latency(run_instance(instance, strategy())) - least_total_latency(instance)


def _waiting(generator: np.random.Generator) -> float:
    return excess(batch(generator, queries=3, tuples=4))


def _any(generator: np.random.Generator) -> float:
    return excess(over_time(generator, queries=3, tuples=4))


def _whole(generator: np.random.Generator) -> float | None:
    instance = with_whole_arrivals(over_time(generator, queries=3, tuples=4), strategy())
    return None if instance is None else excess(instance)


def _by_output(generator: np.random.Generator, raised: bool = False) -> float:
    instance = batch(generator, queries=3, tuples=4)
    outputs = generator.uniform(0.05, 1.0, size=3).tolist()
    record = run_instance(instance, strategy(), outputs, outputs if raised else None)
    return total_latency(record, by_output=True) - least_total_latency(instance, outputs)


def _raised(generator: np.random.Generator) -> float:
    return _by_output(generator, raised=True)


def _counterexamples() -> list[Counterexample]:
    late = Instance((((0.0, 1.0), (5.0, 0.0)), ((0.0, 1.0), (3.0, 0.0))), ((0,), (4,)))
    unequal = Instance((((0.0, 1.0), (1.0, 0.0)), ((0.0, 1.0), (2.0, 0.0))), ((0,), (0,)))
    few = run_instance(unequal, strategy(), (0.1, 1.0))
    return [
        (
            "a 5 s tuple with 1 s left is put off for one of 3 s",
            total_latency(run_instance(late, strategy())),
            least_total_latency(late),
            3 + 8,
            5 + 4,
        ),
        (
            "a 1 s path with 0.1 outputs a tuple goes before one of 2 s with 1",
            total_latency(few, by_output=True),
            least_total_latency(unequal, (0.1, 1.0)),
            0.1 * 1 + 3,
            2 + 0.1 * 3,
        ),
        (
            "a 4 s path goes before two of 5 s that share 4 s",
            _fork(rival_weight=1.0),
            _fork(rival_weight=0.5),
            4 + 9 + 10,
            5 + 6 + 10,
        ),
    ]


def _fork(rival_weight: float) -> float:
    """Total latency of one tuple before a fork of 4 s with branches of 1 s, and one before 4 s."""
    plan = SimulatedPlan()
    shared = plan.operator("shared", plan.stream("s"), cost_seconds=4.0)
    plan.query("left", plan.operator("left", shared, cost_seconds=1.0))
    plan.query("right", plan.operator("right", shared, cost_seconds=1.0))
    plan.query("rival", plan.operator("rival", plan.stream("t"), 4.0), rival_weight)
    arrivals = {"s": [0.0], "t": [0.0]}
    return total_latency(simulate(plan, make("path-capacity"), arrivals, Conditions()))


def check(tables: Tables) -> Sequence[Claim]:
    """Optimal under the assumptions of its proof; not without any one of them."""
    return [
        none_above(tables, WAITING, WORDS),
        none_above(tables, WHOLE, WORDS),
        some_above(tables, ANY, WORDS, "s", HALF_SERVED),
        some_above(tables, BY_OUTPUT, WORDS, "s", UNEQUAL),
        none_above(tables, RAISED, "optimal"),
        *counterexample_claims(tables, WORDS, (HALF_SERVED, UNEQUAL, SHARED)),
    ]


plot = partial(plot_excess, label="total latency above the optimum (s)")
EXPERIMENT = experiment(__name__, "Theorem 1: least total latency")
