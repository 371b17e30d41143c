"""The two constructions that the HMTS paper's Figure 11 compares with `place_queues`.

One fuses the segments of the Path Capacity paper's simplified segment strategy (its section 3.3,
similarity factor gamma), the other the chains of the Chain paper: an edge loses its queue when both
ends are neighbours in one segment of every operator path that takes it. Neither was made to keep
capacities near zero.
"""

from millpond.errors import StrategyError
from millpond.scheduling.charts.capacity import released_per_second
from millpond.scheduling.charts.chain_borders import chain_borders
from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.threads.virtual_operators import Edge, Placement, operator_edges


def place_queues_by_chains(plan: PlanSnapshot) -> Placement:
    """A queue between every two chains: segments of a path's lower envelope."""
    return operator_edges(plan) & chain_borders(plan)


def place_queues_by_segments(plan: PlanSnapshot, gamma: float = 0.75) -> Placement:
    """A queue between the two segments of each path; the first one ends where C^M drops."""
    if not 0 < gamma <= 1:
        raise StrategyError(f"gamma is {gamma}; give a number above 0, at most 1")
    return operator_edges(plan) & _first_drops(plan, gamma)


def _first_drops(plan: PlanSnapshot, gamma: float) -> set[Edge]:
    """The edges on which C^M drops for the first time on some path."""
    released = {each.id: released_per_second(each) for each in plan.operators}
    in_first = {each.id for each in plan.operators if each.streams}
    found: set[Edge] = set()
    for below in plan.upstream_first:
        for above in plan.by_id[below].downstream if below in in_first else ():
            if released[above] < gamma * released[below]:
                found.add((below, above))
            else:
                in_first.add(above)
    return found
