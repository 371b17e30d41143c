"""The most pairs that a join can put out with so much memory, if the future is known.

After Das, Gehrke and Riedewald (2003): a flow through time. Each unit of it is room for a row. At
each instant it is empty until the next, or takes the row that has just come, keeps it until some
instant at which it is met, and is empty again. It costs nothing to be empty, and gains a pair for
each time that the row is met. Capacities are whole, so there is a best flow that is whole too; it
is found unit by unit, by cheapest paths (Edmonds and Karp 1972), and the best flow of k units is
found on the way to that of more.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

_FAR = 1 << 60


class Flow:
    """Arcs with room and costs; arc number a is turned around in arc number a ^ 1."""

    def __init__(self, instants: int) -> None:
        self.heads: list[int] = []
        self.room: list[int] = []
        self.costs: list[int] = []
        self.leaving: list[list[int]] = [[] for _ in range(instants + 1)]
        self.order = list(range(instants + 1))
        """Nodes, so that arcs lead from earlier to later ones."""

    def node(self) -> int:
        """A further node."""
        self.leaving.append([])
        return len(self.leaving) - 1

    def arc(self, tail: int, head: int, room: int, gain: int) -> None:
        """An arc that so many units may take, and that gains so much for each."""
        for start, end, capacity, cost in ((tail, head, room, -gain), (head, tail, 0, gain)):
            self.leaving[start].append(len(self.heads))
            self.heads.append(end)
            self.room.append(capacity)
            self.costs.append(cost)


def most_pairs(matches: Sequence[Sequence[int]], rows: int) -> list[int]:
    """With room for 1 up to so many rows, the most pairs, where row i comes at instant i.

    >>> most_pairs([[1, 3], [2], [3], []], 3)
    [3, 4, 4]
    """
    flow = flow_of(matches, rows)
    found, pairs = [], 0
    for gain in _gains(flow, len(matches)):
        pairs += gain
        found.append(pairs)
        if len(found) == rows:
            break
    return found + [pairs] * (rows - len(found))


def flow_of(matches: Sequence[Sequence[int]], rows: int) -> Flow:
    """The flow: a node for each instant, and one for each time that a row is met."""
    flow = Flow(len(matches))
    ending: list[list[int]] = [[] for _ in flow.order]
    for came, instants in enumerate(matches):
        flow.arc(came, came + 1, rows, 0)
        before = came
        for instant in instants:
            node = flow.node()
            flow.arc(before, node, 1, 1)
            flow.arc(node, instant, 1, 0)
            ending[instant].append(node)
            before = node
    flow.order = [node for instant, ends in enumerate(ending) for node in (*ends, instant)]
    return flow


def _gains(flow: Flow, last: int) -> Iterator[int]:
    """What each further unit gains, as long as it gains anything."""
    potentials = _first_costs(flow)
    while True:
        costs, arrived_by = _cheapest(flow, potentials)
        for node, cost in enumerate(costs):
            potentials[node] += min(cost, costs[last])
        gain = potentials[0] - potentials[last]
        if not gain:
            return
        _send(flow, last, arrived_by)
        yield gain


def _first_costs(flow: Flow) -> list[int]:
    """The costs of cheapest paths while nothing flows: nodes in order of time are enough."""
    costs = [_FAR] * len(flow.leaving)
    costs[0] = 0
    for node in flow.order:
        for arc in flow.leaving[node]:
            if flow.room[arc]:
                head = flow.heads[arc]
                costs[head] = min(costs[head], costs[node] + flow.costs[arc])
    return costs


def _cheapest(flow: Flow, potentials: Sequence[int]) -> tuple[list[int], list[int]]:
    """Cheapest paths from the first instant, and by which arc each node is reached (Dijkstra)."""
    costs, arrived_by = [_FAR] * len(flow.leaving), [-1] * len(flow.leaving)
    costs[0], waiting = 0, [(0, 0)]
    while waiting:
        cost, node = heappop(waiting)
        if cost > costs[node]:
            continue
        here = cost + potentials[node]
        for arc in flow.leaving[node]:
            if flow.room[arc]:
                head = flow.heads[arc]
                reached = here + flow.costs[arc] - potentials[head]
                if reached < costs[head]:
                    costs[head], arrived_by[head] = reached, arc
                    heappush(waiting, (reached, head))
    return costs, arrived_by


def _send(flow: Flow, node: int, arrived_by: Sequence[int]) -> None:
    """Sends a unit along the path to a node."""
    while node:
        arc = arrived_by[node]
        flow.room[arc] -= 1
        flow.room[arc ^ 1] += 1
        node = flow.heads[arc ^ 1]
