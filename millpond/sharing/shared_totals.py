"""Whether counts and sums of a query that begins read totals that others read too.

Windows of several lengths over one stream, by the same keys, pass over its tuples once if they read
totals (`planning/totals.py`). That is one operator more, which pays if there are several such
windows and some tuples with one key in a tick. Queries that have come to no time yet are planned
anew when others come with which it pays, so that in one script the order does not matter. What is
chosen when a query begins stays; the log says what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.cql.algebra import Aggregate
from millpond.cql.node import Node
from millpond.identities import OperatorId, QueryId
from millpond.planning.graph import Graph
from millpond.planning.nodes import Totals
from millpond.planning.totals import sum_up, summable
from millpond.sharing.containments import unsummed
from millpond.sharing.planned import QueryPlans
from millpond.sharing.sketch import Chosen, Sketch

if TYPE_CHECKING:
    from millpond.execution.statistics import Tally

ENOUGH = 4
"""With so many different windows totals pay, where nothing is known of the tuples: at worst, if no
two of them have a tick and a key in common, all is done as before and one pass more."""

DENSE = 2.0
"""So many rows for each change of a result are worth totalling."""

LEAST_ROWS = 1_000
"""What was seen of fewer rows is not known."""

TOTALS = "totals"
"""Under which name it is kept what was chosen: the digests of the aggregates that read totals."""


@dataclass(frozen=True)
class _Use:
    """The aggregates of a query's plan that may read totals, and those that do."""

    known: dict[Aggregate, Totals]
    chosen: dict[Aggregate, Totals]

    @property
    def of_tuples(self) -> list[tuple[Aggregate, Totals]]:
        """The aggregates that read tuples and could read totals."""
        return [(each, over) for each, over in self.known.items() if each not in self.chosen]


class SharedTotals:
    """The counts and sums of the queries that stand alone."""

    name = TOTALS

    def __init__(self, graph: Graph, measured: Callable[[OperatorId], Tally | None]) -> None:
        self._graph = graph
        self._measured = measured
        """What was seen of an operator."""
        self._uses: dict[QueryId, _Use] = {}
        self._of_tuples: dict[Totals, dict[Aggregate, dict[QueryId, None]]] = {}
        """The aggregates that read tuples, by the totals they could read instead, and whose they
        are."""

    def arrange(self, sketch: Sketch) -> Sketch:
        """Decides which counts and sums of a query read totals."""
        if sketch.group is not None or sketch.entry.on_error == "skip":
            return sketch
        sums = self.choose(sketch.plan, sketch.sharing, sketch.totals)
        digests = tuple(each.digest for each in sums)
        return sketch.with_choice(
            TOTALS, digests, changed=sum_up(sketch.plan, sums), sums=frozenset(sums.values())
        )

    def choose(
        self, plan: Node, sharing: str, totals: frozenset[Totals] = frozenset()
    ) -> dict[Aggregate, Totals]:
        """Which aggregates of a plan read totals, and which: some of these in any case."""
        if sharing == "off":
            return {}
        found = summable(plan).items()
        return {k: over for k, over in found if over in totals or self._pays(k, over, sharing)}

    def _pays(self, aggregate: Aggregate, over: Totals, sharing: str) -> bool:
        """An equal aggregate that runs is shared, whatever it reads."""
        if self._graph.made_of(aggregate):
            return False
        if self._graph.made_of(over):
            return True
        others = self._of_tuples.get(over, {})
        windows = len(others) + (aggregate not in others)
        if sharing == "on":
            return windows > 1
        return windows >= ENOUGH and self._is_dense(others)

    def _is_dense(self, others: Iterable[Aggregate]) -> bool:
        """Whether rows were seen to be many for what becomes of them; so it is taken to be."""
        for each in others:
            for identity in self._graph.made_of(each):
                tally = self._measured(identity)
                if tally is not None and tally.rows_in >= LEAST_ROWS:
                    return tally.rows_in >= DENSE * tally.rows_out
        return True

    # -- who reads what --------------------------------------------------------------------

    def begun(self, query: QueryId, plans: QueryPlans, chosen: Chosen) -> None:
        """A query stands alone from now on."""
        known = summable(unsummed(plans, chosen)[0])
        read = {k: over for k, over in known.items() if k.digest in chosen.get(TOTALS, ())}
        use = self._uses[query] = _Use(known, read)
        for each, over in use.of_tuples:
            self._of_tuples.setdefault(over, {}).setdefault(each, {})[query] = None

    def leave(self, query: QueryId) -> None:
        """A query stands alone no more, or not at all."""
        use = self._uses.pop(query, None)
        for each, over in () if use is None else use.of_tuples:
            known = self._of_tuples[over]
            del known[each][query]
            if not known[each]:
                del known[each]
            if not known:
                del self._of_tuples[over]

    def could_read(self, totals: Iterable[Totals], epoch: int) -> list[QueryId]:
        """The queries that read tuples where they could read some totals, in order of names; but
        for those that have an equal one that began at another time, with which they converge."""
        found: set[QueryId] = set()
        for over in totals:
            for aggregate, queries in self._of_tuples.get(over, {}).items():
                made = self._graph.made_of(aggregate)
                if all(self._graph.epochs[identity] == epoch for identity in made):
                    found.update(queries)
        return sorted(found)

    def chosen(self, query: QueryId) -> tuple[str, ...]:
        """What was chosen for a query."""
        use = self._uses.get(query)
        return () if use is None else tuple(each.digest for each in use.chosen)
