"""What was decided about sharing: groups, shapes, selections and totals."""

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from millpond.cql.algebra import Filter
from millpond.identities import OperatorId, QueryId
from millpond.insight.validation.complaints import different, recounted, strangers
from millpond.kernels.columns import integers
from millpond.kernels.matching import QUERY
from millpond.planning.graph import Graph
from millpond.planning.implication import implies
from millpond.planning.physical import MatchOperator
from millpond.sharing.containments import Containments
from millpond.sharing.groups import Group, Groups
from millpond.sharing.shared_totals import SharedTotals
from millpond.sharing.templates import MOST_TEMPLATES, Templates
from millpond.storage.members import Members

# -- groups ----------------------------------------------------------------------------------


def members(groups: Groups) -> Iterator[str]:
    """Each query of a group has a number there, and each number is that of a query."""
    found = {name: (group, number) for name, (group, number) in groups._of.items()}
    wanted = {
        QueryId(name): (group, number) for group in groups for number, name in group.queries.items()
    }
    yield from different("queries that belong to groups, and queries of groups", found, wanted)
    for name in found.keys() & wanted.keys():
        if found[name] != wanted[name]:
            yield f"query {name} belongs to {found[name][0].name}, which knows it otherwise"


def numbers(groups: Groups) -> Iterator[str]:
    """What a group knows of its queries it knows of all of them, and of no others."""
    for group in groups:
        there = set(group.queries)
        yield from recounted("weights", set(group.weights), there, group.name)
        yield from recounted("queries in the log", group.log.living, there, group.name)
        times = there if group.name.is_late else set[int]()
        yield from recounted("beginnings", set(group.since), times, group.name)
        if not there:
            yield f"{group.name} has no query"
        elif max(there) >= group.next_number:
            yield f"{group.name} would give the number {group.next_number} once more"


def weights(groups: Groups) -> Iterator[str]:
    """A group matters as much as its queries together."""
    for group in groups:
        counted = sum(group.weights.values())
        if not math.isclose(group.weight, counted, abs_tol=1e-9):
            yield from recounted("weight", group.weight, counted, group.name)


def constants(groups: Groups) -> Iterator[str]:
    """The table of a group has the constants of each of its queries, and of no others."""
    yield from different("tables of constants and groups", groups.members, groups._groups)
    for group in groups:
        if groups.members.get(group.name) is not group.members:
            yield f"the operators of {group.name} have another table of constants"
        there = _numbers_in(group.members)
        yield from recounted("constants", there, sorted(group.queries), group.name)


def _numbers_in(members: Members) -> list[int]:
    """The queries whose constants there are once who came and went is counted."""
    with members._guard:
        there = [*integers(members._table[QUERY]).tolist()]
        coming = [row[QUERY] for row in members._coming if isinstance(row[QUERY], int)]
        return sorted(n for n in [*there, *coming] if n not in members._going)


def group_in_graph(
    groups: Groups, graph: Graph, outputs: Mapping[QueryId, OperatorId]
) -> Iterator[str]:
    """A group has operators, matches read the constants of groups that are there, and all its
    queries are put out by the same one."""
    for group in groups:
        yield from _outputs_of(group, outputs)
    for identity, operator in graph.operators.items():
        if isinstance(operator, MatchOperator) and operator.group not in groups.members:
            yield f"{identity} matches rows with constants of {operator.group}, which is no more"


def _outputs_of(group: Group, outputs: Mapping[QueryId, OperatorId]) -> Iterator[str]:
    for name in group.queries.values():
        if outputs.get(QueryId(name)) != group.output:
            yield f"query {name} of {group.name} is put out elsewhere"


# -- who stands alone ------------------------------------------------------------------------


def alone(groups: Groups, outputs: Mapping[QueryId, OperatorId]) -> Iterator[str]:
    """Who stands alone runs, and belongs to no group."""
    yield from strangers("queries of shapes that stand alone and run", groups._alone, outputs)
    for name in groups._alone.keys() & groups._of.keys():
        yield f"query {name} stands alone, and belongs to {groups._of[name][0].name}"


def shapes(groups: Groups) -> Iterator[str]:
    """Plans and outlines are counted as often as there are; who stands alone waits for others."""
    shapes_alone = groups._alone.values()
    plans = Counter(each.whole for each in shapes_alone)
    if groups._plans != plans:
        yield f"{groups._plans.total()} plans stand alone, and counted anew {plans.total()}"
    outlines = Counter(each.outline for each in shapes_alone)
    outlines.update(group.outline for group in groups)
    yield from recounted("outlines of plans", +groups._outlines, outlines)
    yield from _waiting(groups)


def _waiting(groups: Groups) -> Iterator[str]:
    unlifted = {(name, o) for o, some in groups._unlifted.items() for name in some}
    waiting = {(name, group) for group, some in groups._waiting.items() for name in some}
    for name, each in groups._alone.items():
        if (name, each.outline) not in unlifted and any(
            (name, group) not in waiting for group in each.names
        ):
            yield f"query {name} stands alone, and nobody finds it"
    known = {name for name, _ in unlifted} | {name for name, _ in waiting}
    yield from strangers("queries that wait for others of their shapes", known, groups._alone)


def _standing_alone(groups: Groups, outputs: Mapping[QueryId, OperatorId]) -> set[QueryId]:
    return {name for name in outputs if not name.is_aside} - groups._of.keys()


# -- selections and totals -------------------------------------------------------------------


def selections(
    containments: Containments, groups: Groups, outputs: Mapping[QueryId, OperatorId]
) -> Iterator[str]:
    """The selections of those who stand alone are known, and of no others."""
    one_by_one = _standing_alone(groups, outputs)
    yield from different("queries with selections, and alone", containments._uses, one_by_one)
    holders = {
        (node, query)
        for of_input in containments._holders.values()
        for of_columns in of_input.values()
        for node, queries in of_columns.items()
        for query in queries
    }
    anew = {
        (node, query)
        for query, use in containments._uses.items()
        for node in (*use.readers, *use.chosen.values())
    }
    yield from _by_query("selections", holders, anew)


def readers_of_selections(containments: Containments) -> Iterator[str]:
    """What those have chosen who read selections is what their queries have."""
    found = {
        (query, reader, node, by)
        for reader, of_queries in containments._read.items()
        for query, nodes in of_queries.items()
        for node, by in nodes.items()
    }
    anew = {
        (query, reader, node, use.chosen.get(node))
        for query, use in containments._uses.items()
        for node, above in use.readers.items()
        for reader in above
    }
    for query in sorted({each[0] for each in found ^ anew}):
        yield f"what is read of the selections of query {query} is not what it has chosen"


def contained(containments: Containments) -> Iterator[str]:
    """What a query reads of another selection is all that its own lets through, and is there."""
    for query, use in containments._uses.items():
        for node, weaker in use.chosen.items():
            if not _implies(node, weaker):
                said = f"{weaker.predicate}, which {node.predicate} does not imply"
                yield f"query {query} reads {said}"
            if not containments._runs(weaker):
                yield f"query {query} reads {weaker.predicate}, which is no operator"


@functools.lru_cache(1024)
def _implies(node: Filter, weaker: Filter) -> bool:
    return implies(node.predicate, weaker.predicate)


def totals(
    shared_totals: SharedTotals, groups: Groups, outputs: Mapping[QueryId, OperatorId]
) -> Iterator[str]:
    """The counts and sums of those who stand alone are known, and of no others."""
    one_by_one = _standing_alone(groups, outputs)
    yield from different("queries with totals, and alone", shared_totals._uses, one_by_one)
    found = {
        ((over, each), query)
        for over, known in shared_totals._of_tuples.items()
        for each, queries in known.items()
        for query in queries
    }
    anew = {
        ((over, each), query)
        for query, use in shared_totals._uses.items()
        for each, over in use.of_tuples
    }
    yield from _by_query("aggregates of tuples", found, anew)


def totals_in_graph(shared_totals: SharedTotals, graph: Graph) -> Iterator[str]:
    """The totals that a query reads are made by an operator."""
    for query, use in shared_totals._uses.items():
        for over in use.chosen.values():
            if not graph.made_of(over):
                yield f"query {query} reads totals that no operator makes: {over.label()}"


def _by_query(
    what: str, found: set[tuple[Any, QueryId]], anew: set[tuple[Any, QueryId]]
) -> Iterator[str]:
    for query in sorted({query for _, query in found ^ anew}):
        yield f"{what} of query {query} are not those that it has"


def skeletons(templates: Templates) -> Iterator[str]:
    """What was seen once is known, and no more is than there is room for."""
    for key in templates._seen_once:
        if templates._known.get(key, key) is not None:
            yield f"the skeleton {key} was seen once, and is known as another one"
    if len(templates._known) > MOST_TEMPLATES:
        yield f"{len(templates._known)} skeletons are known, more than {MOST_TEMPLATES}"
