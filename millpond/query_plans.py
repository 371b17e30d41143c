"""What is planned of a query: what it puts out, and beside it what ON ERROR SKIP leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from millpond.analysis import analysed
from millpond.catalog import ASIDE, QueryEntry
from millpond.cql.node import Node
from millpond.planning.guard import guard, left_out
from millpond.planning.optimise import optimise
from millpond.planning.parts import Cuts

if TYPE_CHECKING:
    from millpond.engine import Engine


class QueryPlans(NamedTuple):
    """The plan of a query, and with ON ERROR SKIP the query of what it leaves out."""

    optimised: Node
    aside: QueryEntry | None
    optimised_aside: Node


def planned(entry: QueryEntry) -> QueryPlans:
    """The plans of a query; what it leaves out is a query beside it that nobody sees."""
    optimised = optimise(entry.plan, entry.on_error)
    left = left_out(guard(entry.plan).faults) if entry.on_error == "skip" else None
    if left is None:
        return QueryPlans(optimised, None, optimised)
    aside = replace(entry, name=entry.name + ASIDE, plan=left, sink=None)
    return QueryPlans(optimised, aside, optimise(left))


def plan_text(engine: Engine, entry: QueryEntry, stage: str) -> str:
    """The plan of a query as EXPLAIN shows it, registered or not; the lock is held."""
    if stage == "analyze":
        return analysed(engine, entry.name)
    plan = optimise(entry.plan, entry.on_error)
    if stage == "logical":
        return str(plan)
    output = engine.queries.outputs.get(entry.name.lower())
    if output is None:
        return engine.graph.explain(entry.name, plan, engine.inputs.next_epoch)
    wanted = engine.graph.upstream(output)
    groups = engine.runtime.groups() if engine.has_runtime else []
    cuts = engine.runtime.cutting.cuts if engine.has_runtime else Cuts(engine.graph)
    return "\n".join([engine.graph.describe(wanted, parts=cuts.names_in), *_fused(groups, wanted)])


def _fused(groups: Iterable[tuple[str, ...]], wanted: set[str]) -> Iterator[str]:
    """A line for each virtual operator of several of these operators."""
    for group in groups:
        if len(group) > 1 and wanted.intersection(group):
            yield f"no queue between {', '.join(group)}: one virtual operator"
