"""The plans of queries as EXPLAIN shows them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from millpond.catalog import QueryEntry
from millpond.cql.check.reductions import told_reductions
from millpond.cql.node import Node
from millpond.errors import MillpondError
from millpond.identities import OperatorId, RelationId
from millpond.insight.analysis import analysed
from millpond.insight.constraints import told_freeings
from millpond.insight.estimates import Measured
from millpond.insight.punctuations import told_closings
from millpond.planning.convergence import foreseen, settle
from millpond.planning.optimise import optimise
from millpond.planning.parts import Cuts
from millpond.sharing.arrangement import Begun, Membership
from millpond.sharing.arranging import Arranging
from millpond.sharing.beginnings import refuse_what_is_gone, told_merge, told_start
from millpond.sharing.planned import planned
from millpond.sharing.queries import Queries

STAGES = ("logical", "physical", "analyze", "reductions")


def plan_text(queries: Queries, entry: QueryEntry, stage: str) -> str:
    """The plan of a query as EXPLAIN shows it, registered or not; the lock is held."""
    reduced = [f"reduced: {each}" for each in entry.reduced]
    warnings = [f"warning: {each.message}" for each in entry.warnings]
    return "\n".join([_plan_text(queries, entry, stage), *reduced, *warnings])


def _plan_text(queries: Queries, entry: QueryEntry, stage: str) -> str:
    if stage == "analyze":
        return analysed(queries, entry.name)
    if stage == "reductions":
        return "\n".join(told_reductions(entry, queries.ground.catalog))
    plan = optimise(entry.plan, entry.on_error)
    if stage == "logical":
        return str(plan)
    output = queries.outputs.get(entry.identity)
    if output is None:
        return _before_registering(queries, entry, plan)
    wanted = queries.graph.upstream(output)
    units = queries.runtime.groups() if queries.has_runtime else []
    cuts = queries.runtime.cutting.cuts if queries.has_runtime else Cuts(queries.graph)
    lines = [queries.graph.describe(wanted, parts=cuts.names_in), *_fused(units, wanted)]
    lines += _partitions(queries, wanted)
    lines += told_freeings(queries, queries.graph, wanted)
    lines += told_closings(queries, queries.graph, wanted)
    lines += [each.told for each in queries.containments.told(entry.identity)]
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
    if entry.begins is not None:
        refuse_what_is_gone(queries, entry, plan)
    arranging, key = Arranging(queries), entry.identity
    arranging.create(replace(entry, active=True), planned(entry))
    begun = arranging.begun[key]
    if not isinstance(begun, Begun):
        raise MillpondError(f"internal: {entry.name} is the name of a group")
    lines = [_described(queries, arranging, begun), *arranging.told.get(key, ())]
    if entry.begins is not None:
        start = told_start(queries, plan, entry.begins)
        lines.append(
            f"begins {start}, with what its streams still hold; it runs by itself at first"
        )
    if begun.member is not None:
        lines += _told_member(queries, begun.member, begun.epoch)
    return "\n".join(lines)


def _told_member(queries: Queries, member: Membership, epoch: int) -> Iterator[str]:
    """To which group a query would come."""
    constants, group = ", ".join(map(str, member.constants)), queries.groups.get(member.group)
    if group is None:
        which = "of its shape" + (", of those that came while data flowed" if epoch else "")
        yield f"the second query {which}: a group is founded, with the constants {constants}"
        return
    yield (
        f"adds no operator: {len(group.queries):,} queries of this shape run already, as "
        f"{group.name}; it is one row of constants more: {constants}"
    )
    there = queries.graph.upstream(group.output)
    cost = Measured(queries).cost_of_row(there, len(group.queries))
    if cost:
        yield cost


def _described(queries: Queries, arranging: Arranging, begun: Begun) -> str:
    """What adding a query would run, which parts of it run already, and which will be shared."""
    trial, running = queries.graph.copy(), set(queries.graph.operators)
    founded = None if begun.member is None else arranging.begun.get(begun.member.group)
    added = begun.adds if founded is None else founded.adds
    trial.add(added)
    wanted = trial.upstream(begun.output)
    lines = [trial.describe(wanted, running), *told_freeings(queries, trial, wanted)]
    lines += told_closings(queries, trial, wanted)
    new = [each.identity for each in added.operators if each.identity in wanted]
    if not new:
        return "\n".join(lines)
    cost = Measured(queries).cost_of_new(trial, new)
    lines += [cost] if cost else []
    if queries.ground.settings.sharing == "off":
        return "\n".join(lines)
    epoch, relations = begun.epoch, queries.ground.inputs.relations
    copies = {RelationId(key).queue(epoch): each for key, each in relations.items()}
    since = arranging.since(epoch) | {copy: r.queue.heartbeat for copy, r in copies.items()}
    for each in new:
        settle(trial, each, since)
    lines += [
        f"{each.later} will be one with {each.first} {told_merge(queries, each)}"
        for each in foreseen(trial)
        if each.later in new
    ]
    return "\n".join(lines)


def _fused(groups: Iterable[tuple[str, ...]], wanted: set[OperatorId]) -> Iterator[str]:
    """A line for each virtual operator of several of these operators."""
    for group in groups:
        if len(group) > 1 and wanted.intersection(group):
            yield f"no queue between {', '.join(group)}: one virtual operator"


def _partitions(queries: Queries, wanted: set[OperatorId]) -> Iterator[str]:
    """A line for each partition in which some of these operators are."""
    for entry in queries.partitioning.entries:
        inside = [each for each in queries.partitioning.operators(entry.name) if each in wanted]
        if inside:
            yield f"partition {entry.name}, {entry}: {', '.join(inside)}"
