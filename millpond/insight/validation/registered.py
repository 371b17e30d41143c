"""The queries of the catalog: each runs and has a log, or says why not."""

from collections.abc import Iterator, Mapping

from millpond.catalog import Catalog, QueryEntry, StreamEntry
from millpond.delivery.deliveries import Deliveries
from millpond.delivery.group_results import GroupLog
from millpond.failures import Failures
from millpond.identities import BAD_ROWS, OperatorId, QueryId
from millpond.insight.validation.complaints import different, strangers
from millpond.planning.graph import Graph
from millpond.planning.physical import OutputOperator
from millpond.sharing.groups import Groups


def _queries(catalog: Catalog) -> dict[QueryId, QueryEntry]:
    return {each.identity: each for each in catalog.of_kind(QueryEntry)}


def who_runs(
    catalog: Catalog, failures: Failures, outputs: Mapping[QueryId, OperatorId]
) -> Iterator[str]:
    """A query runs if and only if it is active and has not failed."""
    queries = _queries(catalog)
    for name, entry in queries.items():
        is_to_run = entry.active and failures.of(name) is None
        if is_to_run and name not in outputs:
            yield f"query {name} is active, and no operator puts it out"
        if not is_to_run and name in outputs:
            yield f"query {name} stands still, and {outputs[name]} puts it out"
    yield from strangers("queries that are put out", (name.asked_by for name in outputs), queries)
    yield from strangers(
        "queries that have failed", (QueryId(each.query) for each in failures), queries
    )


def outputs_in_graph(
    graph: Graph, outputs: Mapping[QueryId, OperatorId], groups: Groups
) -> Iterator[str]:
    """What runs is put out by an operator of its name, or of its group's, and by no other."""
    for name, identity in outputs.items():
        operator, group = graph.operators.get(identity), groups.of(name)
        if not isinstance(operator, OutputOperator):
            yield f"query {name} is put out by {identity}, which is no output operator"
        elif operator.query.key != (name if group is None else group.name):
            yield f"query {name} is put out by {identity}, which puts out {operator.query}"
    puts_out = (i for i, each in graph.operators.items() if isinstance(each, OutputOperator))
    for each in set(puts_out) - set(outputs.values()):
        yield f"{each} puts out a query that does not run"


def beginnings(
    begins: Mapping[QueryId, int], outputs: Mapping[QueryId, OperatorId]
) -> Iterator[str]:
    """Only of queries that run it is known when their changes begin."""
    yield from strangers("queries that begin with a time", begins, outputs)


def logs_of_queries(catalog: Catalog, deliveries: Deliveries, groups: Groups) -> Iterator[str]:
    """Each query and each group has a log of its own, and what is left out has one."""
    queries, logs = _queries(catalog), {log.entry.identity: log for log in deliveries}
    aside = {name for name in logs if name.is_aside}
    bad_rows = {
        QueryId(f"{stream.name}{BAD_ROWS}")
        for stream in catalog.of_kind(StreamEntry)
        if stream.skips_bad_rows
    }
    wanted = {*queries, *bad_rows, *(group.name for group in groups)}
    yield from different("queries with groups, and logs of results", wanted, logs.keys() - aside)
    for name, entry in queries.items():
        if name in logs and logs[name].entry != entry:
            yield f"the log of query {name} has another entry than the catalog"
    for name in aside:
        of = queries.get(name.asked_by)
        if of is None or of.on_error != "skip":
            yield f"{name} tells what a query leaves out that leaves nothing out"


def outputs_left_out(
    deliveries: Deliveries, outputs: Mapping[QueryId, OperatorId]
) -> Iterator[str]:
    """What a query leaves out is put out as long as the query is."""
    for log in deliveries:
        name = log.entry.identity
        if name.is_aside and (name in outputs) != (name.asked_by in outputs):
            yield f"{name} runs without its query, or the query without it"


def slices_of_groups(deliveries: Deliveries, groups: Groups) -> Iterator[str]:
    """A query of a group has its slice of the group's log, and no other has one."""
    for log in deliveries:
        name, slice_ = log.entry.name, log.slice
        group = groups.of(name)
        if isinstance(log, GroupLog) or group is None:
            if slice_ is not None:
                yield f"{name} has a slice of the results of a group, and belongs to none"
            continue
        own = getattr(slice_, "log", None), getattr(slice_, "number", None)
        if own != (group.log, groups._of[log.entry.identity][1]):
            yield f"query {name} belongs to {group.name}, and has no slice of its results"
