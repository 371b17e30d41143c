"""Stall-avoiding queue placement (HMTS paper, section 5.1, Algorithm 1).

The paper's c(v) is `cost_seconds`, 1 / d(v) is `tuples_per_second`, cap(P) is `capacity`. As
printed, the `todo` list may reach a node before one of its sources, and a source shared by several
nodes counts once for each alone; here every node comes behind its sources and a merge counts the
whole virtual operator, so that none of several members ever has a negative capacity. A merge that
would close a cycle of virtual operators is left out too: such a plan has no order to run in.

`slack` is the share of its time that a virtual operator is to have left: whoever takes queues out
as load falls leaves room for it to rise again a little.
"""

from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.threads.virtual_operators import Placement, capacity_of, operator_edges


def place_queues(plan: PlanSnapshot, slack: float = 0.0) -> Placement:
    """The edges that keep a queue, so that virtual operators are few and none stalls."""
    growing = _GrowingPartitions(plan, slack)
    for node in plan.upstream_first:
        sources = sorted(set(plan.by_id[node].upstream))
        for source in sorted(sources, key=growing.capacity, reverse=True):
            if growing.fits(source, node) and not growing.closes_cycle(source, node):
                growing.merge(source, node)
    return frozenset(edge for edge in operator_edges(plan) if growing.are_apart(*edge))


class _GrowingPartitions:
    """Disjoint sets of operators with their summed costs and rates."""

    def __init__(self, plan: PlanSnapshot, slack: float) -> None:
        self._plan = plan
        self._slack = slack
        self._members = {each.id: [each.id] for each in plan.operators}
        self._cost_seconds = {each.id: each.cost_seconds for each in plan.operators}
        self._tuples_per_second = {each.id: each.tuples_per_second for each in plan.operators}
        self._partition = {each.id: each.id for each in plan.operators}

    def are_apart(self, producer: int, reader: int) -> bool:
        """Whether two operators are in different partitions."""
        return self._partition[producer] != self._partition[reader]

    def capacity(self, operator: int) -> float:
        """The capacity of the operator's partition."""
        mine = self._partition[operator]
        return capacity_of(self._cost_seconds[mine], self._tuples_per_second[mine])

    def fits(self, source: int, node: int) -> bool:
        """Whether both partitions together would keep pace with their inputs."""
        one, other = self._partition[source], self._partition[node]
        if one == other:
            return False
        cost_seconds = self._cost_seconds[one] + self._cost_seconds[other]
        rate = self._tuples_per_second[one] + self._tuples_per_second[other]
        return capacity_of(cost_seconds / (1 - self._slack), rate) >= 0

    def merge(self, source: int, node: int) -> None:
        """Make one partition of two, the larger taking up the smaller."""
        one, other = self._partition[source], self._partition[node]
        if len(self._members[one]) < len(self._members[other]):
            one, other = other, one
        gone = self._members.pop(other)
        self._members[one] += gone
        self._partition.update(dict.fromkeys(gone, one))
        self._cost_seconds[one] += self._cost_seconds.pop(other)
        self._tuples_per_second[one] += self._tuples_per_second.pop(other)

    def closes_cycle(self, source: int, node: int) -> bool:
        """Whether a tuple could leave the merged partition and come back into it."""
        together = {self._partition[source], self._partition[node]}
        if len(self._members[self._partition[node]]) == 1 and not self._other_inputs(node, source):
            return False
        pending = [each for mine in together for each in self._inputs(mine) if each not in together]
        seen = set(pending)
        while pending:
            for above in self._inputs(pending.pop()):
                if above in together:
                    return True
                if above not in seen:
                    seen.add(above)
                    pending.append(above)
        return False

    def _other_inputs(self, node: int, source: int) -> bool:
        return any(self.are_apart(each, source) for each in self._plan.by_id[node].upstream)

    def _inputs(self, partition: int) -> set[int]:
        """The partitions that a partition reads."""
        above = {
            self._partition[each]
            for member in self._members[partition]
            for each in self._plan.by_id[member].upstream
        }
        return above - {partition}
