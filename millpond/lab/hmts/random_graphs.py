"""Random query graphs for the HMTS paper's Figure 11, and its Algorithm 1 to the letter.

Random directed acyclic graphs of 10 to 1,000 operators: every operator reads a stream of its own,
one earlier operator or two; costs are log-normal and rates follow from the streams' by the
selectivities.
"""

from dataclasses import dataclass

import numpy as np

from millpond.scheduling.snapshot import InputSnapshot, OperatorSnapshot, PlanSnapshot
from millpond.scheduling.threads.virtual_operators import Edge, Placement, capacity_of


@dataclass(frozen=True)
class Drawing:
    """How graphs are drawn: which shares of the operators read streams and, of the others, join
    two inputs; their log-normal costs, and the least that they pass."""

    stream_share: float = 0.1
    join_share: float = 0.25
    mean_cost_seconds: float = 0.1
    cost_spread: float = 1.0
    least_passes: float = 0.2


AS_CHOSEN = Drawing()


def random_plan(size: int, seed: int, drawing: Drawing = AS_CHOSEN) -> PlanSnapshot:
    """A random graph with random costs and selectivities."""
    generator = np.random.default_rng((seed, size))
    spread, mean_seconds = drawing.cost_spread, drawing.mean_cost_seconds
    sources = [_sources(identity, generator, drawing) for identity in range(size)]
    readers: list[list[int]] = [[] for _ in range(size)]
    made: list[float] = []
    for identity, above in enumerate(sources):
        for each in above:
            if isinstance(each, int):
                readers[each].append(identity)
    operators = []
    for identity, above in enumerate(sources):
        cost = mean_seconds * generator.lognormal(-(spread**2) / 2, spread)
        selectivity = generator.uniform(drawing.least_passes, 1.0)
        rates = [made[s] if isinstance(s, int) else generator.uniform(0.1, 1.0) for s in above]
        made.append(sum(rates) * selectivity)
        inputs = tuple(
            InputSnapshot(source, cost, selectivity, tuples_per_second=rate)
            for source, rate in zip(above, rates, strict=True)
        )
        operators.append(
            OperatorSnapshot(identity, f"o{identity}", inputs, tuple(readers[identity]))
        )
    return PlanSnapshot(tuple(operators))


def _sources(identity: int, generator: np.random.Generator, drawing: Drawing) -> list[int | str]:
    if identity == 0 or generator.random() < drawing.stream_share:
        return [f"s{identity}"]
    count = 2 if identity > 1 and generator.random() < drawing.join_share else 1
    return [int(each) for each in generator.choice(identity, count, replace=False)]


def as_printed(plan: PlanSnapshot) -> Placement:
    """Algorithm 1 to the letter: a shared source counts as if each reader were its only one."""
    cost = {each.id: each.cost_seconds for each in plan.operators}
    rate = {each.id: each.tuples_per_second for each in plan.operators}
    todo = [each.id for each in plan.operators if each.streams]
    done: set[int] = set()
    queues: set[Edge] = set()
    for node in todo:
        if node in done:
            continue
        done.add(node)
        todo.extend(plan.by_id[node].downstream)
        sources = sorted(set(plan.by_id[node].upstream))
        for source in sorted(sources, key=lambda s: -capacity_of(cost[s], rate[s])):
            if capacity_of(cost[node] + cost[source], rate[node] + rate[source]) >= 0:
                cost[node], rate[node] = cost[node] + cost[source], rate[node] + rate[source]
            else:
                queues.add((source, node))
    return frozenset(queues)
