"""How a query runs by itself: what of its plan is read from others that run, decided in one place.

EXPLAIN shows an arrangement, and whoever registers the query has it run.
"""

from __future__ import annotations

from dataclasses import dataclass

from millpond.cql.algebra import Aggregate
from millpond.cql.node import Node
from millpond.planning.nodes import Totals
from millpond.sharing.containments import Chosen
from millpond.sharing.shared_joins import Choice


@dataclass(frozen=True)
class Arrangement:
    """A query's plan with what was decided about its selections, its sums and its joins."""

    plan: Node
    """What runs."""
    contained: Chosen
    """The selections that read what others let through, and these others' predicates."""
    apart: frozenset[Node]
    """Those others, which are operators of their own."""
    unsummed: Node
    """What would run without totals."""
    sums: dict[Aggregate, Totals]
    """The aggregates that read totals, and these totals."""
    joins: Choice
    """Which joins are shared, and why others are not."""
