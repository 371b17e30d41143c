"""Whether a query that begins shares the joins that run already.

"If two queries with a common subexpression produce parent operators with very different consumption
rates, then it may be preferable not to use a shared subplan" (STREAM, on resource sharing): whoever
reads little waits for a join that is held back, because what it puts out piles up before somebody
who reads slowly; or the join is not held back, and it does pile up. Without joins sharing is always
preferable, and with joins too unless both was seen: the join puts out more than it reads, and its
readers are uneven. A join that is not shared has a number of its own, so that it never becomes one
with the other either. What is chosen when a query begins stays; the log says what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from millpond.cql.node import Node, inputs_first
from millpond.identities import OperatorId, QueryId
from millpond.planning.graph import Graph
from millpond.planning.joins import join_under, parents_of
from millpond.planning.nodes import Arrivals, Moments
from millpond.planning.physical import JoinOperator
from millpond.sharing.planned import QueryPlans
from millpond.sharing.sketch import Chosen, Sketch

if TYPE_CHECKING:
    from millpond.execution.statistics import Tally

UNSELECTIVE = 2.0
"""A join that puts out fewer bytes for each that it reads is shared: what waits behind it is hardly
more than what would wait before it, and a second one keeps both inputs once more."""

UNEVEN = 4.0
"""A reader that takes less time for a row than so many times what others take, or the join to put
it out, is no slow one. So a join that is done twice adds at most a fifth to what is done anyway."""

LEAST_ROWS = 1_000
"""What was seen of fewer rows is not known."""

LEAST_STEPS = 10
"""Nor is what was seen of fewer steps: the first ones take longer than others."""


class Choice(NamedTuple):
    """The joins of a plan: their numbers, by the digests of their nodes, and of those that are not
    shared the reasons."""

    numbers: dict[str, int]
    reasons: list[str]


class SharedJoins:
    """Looks at the joins that run, whenever they began: late-comers converge with them."""

    name = "joins"

    def __init__(self, graph: Graph, measured: Callable[[OperatorId], Tally | None]) -> None:
        self._graph = graph
        self._measured = measured
        """What was seen of an operator."""

    def arrange(self, sketch: Sketch) -> Sketch:
        """Decides which joins a query shares with others."""
        if sketch.group is not None:
            return sketch
        found = self.choose(sketch.plan, sketch.sharing)
        return replace(sketch, numbers=found.numbers, told=(*sketch.told, *found.reasons))

    def begun(self, query: QueryId, plans: QueryPlans, chosen: Chosen) -> None:
        """A query stands alone from now on; the graph knows its joins."""

    def chosen(self, query: QueryId) -> None:
        """Nothing: the numbers of joins are part of the operators."""

    def leave(self, query: QueryId) -> None:
        """A query stands alone no more."""

    def choose(self, plan: Node, sharing: str) -> Choice:
        """Which joins a plan shares: where something above them runs already, those of that."""
        top = plan.input if isinstance(plan, Arrivals | Moments) else plan
        parents, needed, found = parents_of(plan), {top}, Choice({}, [])
        for node in reversed(list(inputs_first(plan))):
            if node not in needed or node.digest in found.numbers:
                continue
            join = join_under(node, parents)
            running = self._graph.made_of(node)
            if join is not None:
                shared = self._shared(running, sharing, found.reasons)
            else:
                shared = running[0] if running and sharing != "off" else None
            if shared is not None:
                found.numbers.update(self._graph.joins_in(shared))
                continue
            if join is not None:
                found.numbers[node.digest] = _unused(self._by_number(running))
            needed.update(node.inputs if join is None else join.inputs)
        return found

    def _shared(
        self, running: list[OperatorId], sharing: str, reasons: list[str]
    ) -> OperatorId | None:
        """One of some equal joins to be shared; None, and the reason if there are any."""
        against: str | None = None
        for identity in self._by_number(running).values():
            reason = "sharing is off" if sharing == "off" else None
            if sharing == "auto":
                reason = self._against(identity)
            if reason is None:
                return identity
            label = self._graph.operators[identity].label()
            against = against or f"{label} is not shared with {identity}: {reason}"
        reasons += [] if against is None else [against]
        return None

    def _by_number(self, running: list[OperatorId]) -> dict[int, OperatorId]:
        """The first of equal joins for each of their numbers."""
        found: dict[int, OperatorId] = {}
        for identity in running:
            operator = self._graph.operators[identity]
            if isinstance(operator, JoinOperator):
                found.setdefault(operator.number, identity)
        return dict(sorted(found.items()))

    def _against(self, identity: OperatorId) -> str | None:
        """Why a join should not be shared by one more, if it should not."""
        join = self._known(identity)
        if join is None or join.bytes_out < UNSELECTIVE * join.bytes_in:
            return None
        known = {each: self._known(each) for each in self._graph.readers(identity)}
        takes = {
            each: tally.seconds / tally.rows_taken
            for each, tally in known.items()
            if tally is not None and tally.rows_taken >= LEAST_ROWS
        }
        if join.rows_out < LEAST_ROWS or not takes:
            return None
        making = join.seconds / join.rows_out
        slowest, quickest = max(takes, key=takes.__getitem__), min(takes, key=takes.__getitem__)
        is_even = slowest != quickest and takes[slowest] < UNEVEN * takes[quickest]
        if is_even or takes[slowest] < UNEVEN * making:
            return None
        other = "" if slowest == quickest else f", {quickest} {1e6 * takes[quickest]:,.2f}"
        return (
            f"it puts out {join.bytes_out / max(join.bytes_in, 1.0):,.1f} times the bytes it reads "
            f"and takes {1e6 * making:,.2f} µs for a row; {slowest}, which reads that, takes "
            f"{1e6 * takes[slowest]:,.2f}{other}"
        )

    def _known(self, identity: OperatorId) -> Tally | None:
        tally = self._measured(identity)
        return None if tally is None or tally.steps < LEAST_STEPS else tally


def _unused(numbers: Mapping[int, str]) -> int:
    return next(number for number in range(len(numbers) + 1) if number not in numbers)
