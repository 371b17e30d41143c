"""What is planned of a query: what it puts out, and beside it what ON ERROR SKIP leaves out."""

from dataclasses import dataclass, replace
from functools import cached_property

from millpond.catalog import QueryEntry
from millpond.cql.node import Node
from millpond.identities import QueryName
from millpond.planning.guard import guard, left_out
from millpond.planning.optimise import optimise
from millpond.sharing.templates import Shaped, Templates


@dataclass(eq=False)
class QueryPlans:
    """The plan of a query, and with ON ERROR SKIP the query of what it leaves out."""

    entry: QueryEntry
    shaped: Shaped | None = None
    """What is known of the plan without rewriting it."""
    aside: QueryEntry | None = None

    @cached_property
    def optimised(self) -> Node:
        """The query's plan, rewritten."""
        return optimise(self.entry.plan, self.entry.on_error)

    @cached_property
    def optimised_aside(self) -> Node | None:
        """The plan of what the query leaves out, rewritten."""
        return None if self.aside is None else optimise(self.aside.plan)


def planned(entry: QueryEntry, templates: Templates | None = None) -> QueryPlans:
    """The plans of a query; what it leaves out is a query beside it that nobody sees.

    It is rewritten now, so that what is wrong with it is known, unless one like it was.
    """
    is_alike = templates is not None and entry.on_error == "stop" and entry.begins is None
    plans = QueryPlans(entry, templates.shaped(entry.plan) if templates and is_alike else None)
    plans.aside = left_aside(entry)
    if plans.shaped is None:
        _ = plans.optimised, plans.optimised_aside
    return plans


def left_aside(entry: QueryEntry) -> QueryEntry | None:
    """The query of what a query leaves out, if it can leave anything out."""
    left = left_out(guard(entry.plan).faults) if entry.on_error == "skip" else None
    if left is None:
        return None
    return replace(entry, name=QueryName(entry.name).aside, plan=left, sink=None)
