"""The plans of queries as EXPLAIN shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from millpond.catalog import QueryEntry
from millpond.cql.node import Node
from millpond.identities import number_of, relation_queue
from millpond.insight.analysis import analysed
from millpond.insight.estimates import Measured
from millpond.planning.convergence import foreseen, settle
from millpond.planning.optimise import optimise
from millpond.planning.parts import Cuts
from millpond.sharing.beginnings import refuse_what_is_gone, told_merge, told_start
from millpond.sharing.containments import what_is_read
from millpond.sharing.planned import QueryPlans
from millpond.sharing.queries import Queries


def plan_text(queries: Queries, entry: QueryEntry, stage: str) -> str:
    """The plan of a query as EXPLAIN shows it, registered or not; the lock is held."""
    if stage == "analyze":
        return analysed(queries, entry.name)
    plan = optimise(entry.plan, entry.on_error)
    if stage == "logical":
        return str(plan)
    output = queries.outputs.get(entry.name.lower())
    if output is None:
        return _before_registering(queries, entry, plan)
    wanted = queries.graph.upstream(output)
    units = queries.runtime.groups() if queries.has_runtime else []
    cuts = queries.runtime.cutting.cuts if queries.has_runtime else Cuts(queries.graph)
    lines = [queries.graph.describe(wanted, parts=cuts.names_in), *_fused(units, wanted)]
    lines += [each.told for each in queries.containments.told(entry.name.lower())]
    group = queries.groups.of(entry.name)
    if group is not None:
        constants = group.members.told(group.number_of(entry.name))
        lines.append(
            f"one of {len(group.queries):,} queries of {group.name}, with its own constants: "
            f"{constants}"
        )
    return "\n".join(lines)


def _before_registering(queries: Queries, entry: QueryEntry, plan: Node) -> str:
    """What a query would run, and what of that runs already."""
    groups, epoch = queries.groups, queries.ground.inputs.next_epoch
    if entry.begins is not None:
        refuse_what_is_gone(queries, entry, plan)
        start = told_start(queries, plan, entry.begins)
        streams = dict.fromkeys(queries.ground.inputs.since_of(epoch), entry.begins - 1)
        told = f"begins {start}, with what its streams still hold; it runs by itself at first"
        return f"{_explained_alone(queries, entry, plan, epoch + 1, streams)}\n{told}"
    if entry.on_error == "skip":
        return _explained_alone(queries, entry, plan, epoch)
    shapes = groups.shapes(QueryPlans(entry), epoch, queries.ground.inputs)
    name = groups.choose(shapes, queries.ground.settings.sharing)
    if name is None:
        return _explained_alone(queries, entry, plan, epoch)
    lifted, group = shapes.lifted(name), groups.get(name)
    constants = ", ".join(map(str, lifted.constants))
    if group is None:
        which = "of its shape" + (", of those that came while data flowed" if epoch else "")
        told = f"the second query {which}: a group is founded, with the constants {constants}"
        return f"{_explained(queries, name, lifted.plan, epoch)}\n{told}"
    there = queries.graph.upstream(group.output)
    told = (
        f"adds no operator: {len(group.queries):,} queries of this shape run already, as "
        f"{group.name}; it is one row of constants more: {constants}"
    )
    cost = Measured(queries).cost_of_row(there, len(group.queries))
    return "\n".join([queries.graph.describe(there, there), told, *([cost] if cost else [])])


def _explained_alone(
    queries: Queries,
    entry: QueryEntry,
    plan: Node,
    epoch: int,
    streams: dict[str, int] | None = None,
) -> str:
    """The same of one that stands alone; what its selections could read, and do, and why joins that
    run are not shared. Totals that it reads are operators."""
    findings = queries.contained(entry, plan)
    made = queries.arranged(entry, plan, what_is_read(findings))
    told = _explained(
        queries, entry.name, made.plan, epoch, streams, made.apart, made.joins.numbers
    )
    return "\n".join([told, *(each.told for each in findings), *made.joins.reasons])


def _explained(
    queries: Queries,
    name: str,
    plan: Node,
    epoch: int,
    streams: dict[str, int] | None = None,
    apart: frozenset[Node] = frozenset(),
    numbers: dict[Node, int] | None = None,
) -> str:
    """What adding a query would run, which parts of it run already, and which will be shared."""
    trial, running = queries.graph.copy(), set(queries.graph.operators)
    output = trial.add_query(name, plan, epoch, apart=apart, numbers=numbers)
    lines = [trial.describe(trial.upstream(output), running)]
    new = sorted(trial.operators.keys() - running, key=number_of)
    cost = Measured(queries).cost_of_new(trial, new)
    lines += [cost] if cost else []
    if queries.ground.settings.sharing == "off":
        return "\n".join(lines)
    since = queries.ground.inputs.since_of(epoch) if streams is None else streams
    copies = {relation_queue(key, epoch): r for key, r in queries.ground.inputs.relations.items()}
    since = since | {copy: each.queue.heartbeat for copy, each in copies.items()}
    for each in new:
        settle(trial, each, since)
    lines += [
        f"{each.later} will be one with {each.first} {told_merge(queries, each)}"
        for each in foreseen(trial)
        if each.later in new
    ]
    return "\n".join(lines)


def _fused(groups: Iterable[tuple[str, ...]], wanted: set[str]) -> Iterator[str]:
    """A line for each virtual operator of several of these operators."""
    for group in groups:
        if len(group) > 1 and wanted.intersection(group):
            yield f"no queue between {', '.join(group)}: one virtual operator"
