"""A query that is about to begin, and what was decided so far about how it runs.

Each pass takes a sketch and gives another one; none changes anything that runs. What all of them
have decided becomes the arrangement (``arrangement.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from millpond.catalog import QueryEntry
from millpond.cql.node import Node
from millpond.identities import GroupId, QueryId
from millpond.planning.nodes import Totals
from millpond.sharing.planned import QueryPlans
from millpond.sharing.shapes import Shapes

Chosen = Mapping[str, Any]
"""What passes want to know again later, by their names: plain data and expressions."""


@dataclass(frozen=True)
class Sketch:
    """How a query would run, as far as that is decided."""

    plans: QueryPlans
    shapes: Shapes
    sharing: str
    """The setting of that name: on, off or auto."""
    is_anew: bool = False
    """Whether it begins at a time of its own: nobody's selections are read then."""
    totals: frozenset[Totals] = frozenset()
    """Another query reads these, and so does it."""
    changed: Node | None = None
    """The plan, once a pass has made another one of it."""
    group: GroupId | None = None
    """The group that it belongs to; the passes behind have nothing to decide then."""
    sums: frozenset[Totals] = frozenset()
    """The totals that it reads."""
    apart: frozenset[Node] = frozenset()
    """The selections that are operators of their own."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The numbers of joins that are not shared, by the digests of their nodes."""
    chosen: Chosen = field(default_factory=dict)
    told: tuple[str, ...] = ()
    """The decisions in words, for EXPLAIN."""

    @property
    def entry(self) -> QueryEntry:
        """The query."""
        return self.plans.entry

    @property
    def plan(self) -> Node:
        """What runs, as far as that is decided."""
        return self.plans.optimised if self.changed is None else self.changed

    def with_choice(self, name: str, choice: Any, **other: Any) -> Sketch:
        """The same with what a pass has chosen, unless that is nothing."""
        chosen = {**self.chosen, name: choice} if choice else self.chosen
        return replace(self, chosen=chosen, **other)


class Pass(Protocol):
    """Decides one thing about queries that begin, by what it knows of those that run."""

    @property
    def name(self) -> str:
        """Under which name it is kept what it chooses."""

    def arrange(self, sketch: Sketch) -> Sketch:
        """Decides it for one query."""

    def begun(self, query: QueryId, plans: QueryPlans, chosen: Chosen) -> None:
        """A query stands alone from now on, with what was chosen for it."""

    def chosen(self, query: QueryId) -> Any:
        """What was chosen for a query that stands alone; nothing if that is nothing."""

    def leave(self, query: QueryId) -> None:
        """A query stands alone no more, or not at all."""
