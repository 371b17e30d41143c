"""Unified paper, Figures 3, 4, 10 and 11, and what sections 3 and 4 say beside them: areas.

The area under the output completion chart is the total latency, ½ τ N² for N tuples of cost τ;
which of two components goes first adds τ_A N_A N_B or τ_B N_B N_A, also with tuples of different
costs; breaking a single path always makes the response time worse; a dear tuple before three fast
ones is one segment with them; ordering partitions by slope never violates a dependency.

A tuple leaves at the end of its work, so that a curve has steps: a step is half a τ N above the
line. Costs are drawn.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.tables import table_of
from millpond.lab.unified import trees
from millpond.lab.unified.small_instances import SmallInstance, SmallOperator, tree
from millpond.scheduling.by_priority import ByPriority
from millpond.scheduling.charts.component_partition import parts
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray, PlanSnapshot
from millpond.scheduling.strategy import Strategy

DRAWS = 30
COUNT = 40
ROUNDING = 1e-9
NOTHING = 1e-6
"""Of areas that are sums of many times."""
FIGURE_10 = ((8.0, 1.0, 1.0, 1.0), (4.0, 4.0))
"""A dear tuple before three fast ones, and two of another queue between them: 11/4 below 4."""


class InOrder(ByPriority):
    """Operators in a fixed order of precedence, the first before all others."""

    def __init__(self, *order: int) -> None:
        super().__init__(max_tuples=1)
        self.order = order

    def priorities(self, plan: PlanSnapshot) -> Mapping[int, float]:
        """The earlier in the order the higher."""
        return {operator: -float(place) for place, operator in enumerate(self.order)}


def run(seeds: Sequence[int]) -> Tables:
    """Areas as measured and by formula, the better order, and what breaking a path costs."""
    single, pairs, broken, torn = [], [], [], []
    for seed in seeds:
        generator = np.random.default_rng((40, seed))
        for _ in range(DRAWS):
            single.append(_single(generator))
            pairs.append(_pair(generator))
            broken.append(_broken(generator))
        torn += [_torn(cost) for cost in trees.drawn_costs([seed], DRAWS)]
    names = ("A first", "B first", "S1 - S2", "mean cost A", "mean cost B", "chosen", "alike")
    return {
        "single": table_of(("cost", "latency", "memory", "freed"), single),
        "pairs": table_of(names, pairs),
        "broken path": table_of(("whole", "broken"), broken),
        "dependencies": {"violated": torn},
        "figure 10": _figure_10(),
    }


def _single(generator: np.random.Generator) -> tuple[float, float, float, float]:
    """One operator: total latency, and bytes times seconds where tuples shrink on their way."""
    cost, output = float(generator.uniform(0.5, 4)), float(generator.uniform(0, 0.9))
    first = SmallOperator("s", (cost,) * COUNT, (1,) * COUNT, output)
    latency = SmallInstance((first,), (("s", COUNT),)).area(InOrder(0), "latency")
    held = SmallOperator(0, (1e-12,) * COUNT, (1,) * COUNT)
    whole = SmallInstance((first, held), (("s", COUNT),))
    before = whole.simulate(InOrder(0, 1)).memory
    kept = before.mean(cost * COUNT) * cost * COUNT - output * cost * COUNT * COUNT
    return cost, latency, kept, 1 - output


def _pair(generator: np.random.Generator) -> tuple[float, ...]:
    """Two queues whose tuples differ in cost (Figure 11); alike tuples are Figure 4."""
    alike = bool(generator.integers(2))
    queues = [_costs(generator, int(generator.integers(2, 9)), alike) for _ in range(2)]
    instance = _instance(queues)
    a, b = (instance.area(InOrder(*order), "latency") for order in ((0, 1), (1, 0)))
    s1, s2 = sum(queues[0]) * len(queues[1]), sum(queues[1]) * len(queues[0])
    chosen = instance.area(make("component-based", max_tuples=1), "latency")
    means = [sum(each) / len(each) for each in queues]
    return a, b, s1 - s2, *means, chosen if alike else min(a, b), float(alike)


def _costs(generator: np.random.Generator, count: int, alike: bool) -> tuple[float, ...]:
    costs = generator.uniform(0.5, 6, count)
    return tuple((np.full(count, costs[0]) if alike else costs).tolist())


def _instance(queues: Sequence[Sequence[float]]) -> SmallInstance:
    operators = tuple(
        SmallOperator(f"s{place}", tuple(costs), (1,) * len(costs))
        for place, costs in enumerate(queues)
    )
    waiting = tuple((f"s{place}", len(costs)) for place, costs in enumerate(queues))
    return SmallInstance(operators, waiting)


def _broken(generator: np.random.Generator) -> tuple[float, float]:
    """A path of two or three operators: tuple by tuple, and broken behind one of them."""
    length = int(generator.integers(2, 4))
    costs = generator.uniform(0.5, 6, length).tolist()
    instance = tree(("s", *range(length - 1)), costs, 5)
    at = int(generator.integers(1, length))
    second = list(range(length - 1, at - 1, -1))
    broken = InOrder(*range(at - 1, -1, -1), *second)
    whole: Strategy = make("fifo", max_tuples=1)
    return instance.area(whole, "latency"), instance.area(broken, "latency")


def _torn(cost: trees.Costs) -> bool:
    """Whether a partition of the tree comes before one with an operator it reads from."""
    plan = trees.snapshot(trees.PARENTS, [cost[name] for name in trees.NAMES])
    place = {
        operator: number
        for number, part in enumerate(parts(plan, "latency"))
        for operator in part.operators
    }
    edges = [(int(parent), child) for child, parent in enumerate(trees.PARENTS) if parent != "s"]
    return any(place[parent] > place[child] for parent, child in edges)


def _figure_10() -> dict[str, list[float]]:
    instance = _instance(FIGURE_10)
    trace = instance.simulate(make("maximum-slope-segment")).trace
    return {
        "queue": [float(step.operator) for step in trace],
        "end": [step.end_seconds for step in trace],
    }


def plot(tables: Tables, figure: Figure) -> None:
    """Both orders against their formula, and the schedule of Figure 10."""
    left, right = figure.subplots(1, 2)
    pairs = tables["pairs"]
    found = np.array(pairs["A first"]) - np.array(pairs["B first"])
    left.scatter(pairs["S1 - S2"], found, s=8)
    left.set(xlabel="S1 - S2", ylabel="area of A first less that of B first")
    ends = [0.0, *tables["figure 10"]["end"]]
    right.step(ends, range(len(ends) - 1, -1, -1), where="post")
    right.set(xlabel="time units", ylabel="outputs still to come")


def check(tables: Tables) -> Sequence[Claim]:
    """Formulas to rounding and the step of a tuple."""
    return [*_single_claims(tables), *_pair_claims(tables), *_other_claims(tables)]


def _single_claims(tables: Tables) -> list[Claim]:
    table = tables["single"]
    cost, latency, memory, freed = (np.array(table[name]) for name in table)
    stepped = cost * COUNT * (COUNT + 1) / 2
    line = cost * COUNT**2 / 2
    off = float(np.abs(latency / stepped - 1).max())
    of_line = float(np.abs(latency / line - 1).max())
    of_memory = float(np.abs(memory / (freed * line) - 1).max())
    step = 1 / COUNT
    return [
        Claim(
            "total latency is the area under the output completion chart: off its steps by",
            '"the total area under this curve represents the total amount of time tuples stay": 0',
            f"{off:.1e}, {len(cost)} draws",
            off < ROUNDING,
        ),
        Claim(
            "Figure 3: area off ½ τ N², 1/N being the step of a tuple",
            f"at most 1/N = {step:.2%}",
            f"{of_line:.2%}",
            of_line <= step + ROUNDING,
        ),
        Claim(
            "memory of one operator: area off β ½ τ N², 1/N being the step of a tuple",
            f"at most 1/N = {step:.2%}",
            f"{of_memory:.2%}",
            of_memory <= step + NOTHING,
        ),
    ]


def _pair_claims(tables: Tables) -> list[Claim]:
    table = tables["pairs"]
    a, b, formula, cost_a, cost_b, chosen, alike = (np.array(table[name]) for name in table)
    off, same = np.abs(a - b - formula), alike == 1
    better = (a < b) == (cost_a < cost_b)
    least = float((chosen - np.minimum(a, b)).max())
    return [
        _to_rounding(
            "Figure 4: areas of both orders apart by τ_A N_A N_B - τ_B N_B N_A, off that by",
            "0",
            off[same],
        ),
        _to_rounding(
            "Figure 11: S1 - S2 with tuples of different costs, off that by",
            "S1 = τ̄_A N_A N_B, S2 = τ̄_B N_B N_A: 0",
            off[~same],
        ),
        Claim(
            "Figure 4: the better order is that of the smaller mean cost",
            "on all draws",
            f"on {int(better.sum())} of {len(better)}",
            bool(better.all()),
        ),
        Claim(
            "Figure 4: component-based above the better order by, tuples alike",
            "0",
            f"{least:.1e}",
            least < NOTHING,
        ),
    ]


def _to_rounding(text: str, expected: str, off: FloatArray) -> Claim:
    worst = float(off.max())
    return Claim(text, expected, f"{worst:.1e}, {len(off)} draws", worst < NOTHING)


def _other_claims(tables: Tables) -> list[Claim]:
    whole, broken = (np.array(tables["broken path"][name]) for name in ("whole", "broken"))
    violated = tables["dependencies"]["violated"]
    order = [int(each) for each in tables["figure 10"]["queue"]]
    return [
        Claim(
            "breaking a path: latency over that of the whole, at least",
            '"always makes the response time worse": above 1',
            f"{(broken / whole).min():.3f}, {len(whole)} paths",
            bool((broken > whole).all()),
        ),
        Claim(
            "footnote 4: trees in which an operator comes before one it reads",
            "0",
            f"{sum(violated)} of {len(violated)}",
            not any(violated),
        ),
        Claim(
            "Figure 10: order of the queues under MSS, costs 8 1 1 1 and 4 4",
            '"we schedule those 4 tuples together as a segment": 0 0 0 0 1 1',
            " ".join(map(str, order)),
            order == [0, 0, 0, 0, 1, 1],
        ),
    ]


EXPERIMENT = experiment(__name__, "Figures 3, 4, 10 and 11: areas", seeds=2)
