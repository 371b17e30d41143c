"""ALTER QUERY … ON ERROR: how a query goes on with another policy.

The policy is part of what operators mean, so others take over. Each element is judged by the policy
of its time: those up to the time to which the query has answered by the old one, later ones by the
new one. What an operator keeps of elements of before was judged by the old one and is its own, so
only a query that keeps nothing goes on while it runs; any other is refused.
"""

from collections.abc import Iterable

from millpond.catalog import QueryEntry
from millpond.cql.algebra import Filter, Project, RangeWindow, Sample, StreamScan
from millpond.cql.node import Node
from millpond.errors import StateError
from millpond.identities import QueryId, QueueId, StreamId
from millpond.planning.nodes import Arrivals, Combine, Moments
from millpond.schema import BEGINNING
from millpond.sharing.beginning_anew import Succession
from millpond.sharing.planned import planned
from millpond.sharing.queries import Queries


def succession(queries: Queries, entry: QueryEntry, changed: QueryEntry) -> Succession:
    """How a query goes on with a changed policy; raises ``StateError`` if it cannot."""
    plans, before = planned(changed), planned(entry)
    epoch = queries.epoch_of(entry.name)
    if epoch is None:
        return Succession(plans)  # it stands still
    if plans.optimised == before.optimised and plans.aside is None and before.aside is None:
        return Succession(plans)  # nothing in it can fail
    if epoch == queries.ground.inputs.epochs.next and not has_answered(queries, entry.name):
        return Succession(plans, has_others=True)  # nothing has come since it began
    for plan in (before.optimised, plans.optimised):
        node = what_remembers(plan)
        if node is not None:
            raise _refusal(changed, f"{node.label()} keeps what came before, judged by the old one")
    since, answered = read_until(queries, changed, epoch)
    if since is None:
        raise _refusal(changed, uneven(queries, changed, answered))
    return Succession(plans, has_others=True, since=since)


def has_answered(queries: Queries, name: str) -> bool:
    """Whether a query that runs has put anything out."""
    started, output = queries.started, queries.outputs[QueryId(name)]
    has_come_far = started is not None and started.running[output].cursor >= BEGINNING
    return has_come_far and queries.ground.deliveries.of(name).rows > 0


def what_remembers(plan: Node) -> Node | None:
    """The node for which it matters what came before a time, if there is one."""
    passes = isinstance(plan, Arrivals | Moments)
    return next((node for node in plan.walk() if not _forgets(node, passes)), None)


def _forgets(node: Node, passes: bool) -> bool:
    """``passes``: what leaves a window is not looked at."""
    if isinstance(node, RangeWindow):
        is_now = node.length_ticks == 0 and not node.slide_ticks
        return (node.length_ticks is None and not node.slide_ticks) or (passes and is_now)
    kinds = (Arrivals, Moments, Filter, Project, Sample, Combine, StreamScan)
    return isinstance(node, kinds)


def read_until(
    queries: Queries, entry: QueryEntry, epoch: int
) -> tuple[dict[QueueId, int] | None, int]:
    """How far a query has read its streams, by their queues, and to which time it has answered.

    None if its operators have not come equally far.
    """
    answered = BEGINNING - 1
    if queries.started is not None:
        output, running = queries.outputs[entry.identity], queries.started.running
        answered = running[output].cursor
        upstream = (running[each] for each in queries.graph.upstream(output))
        if any(each.cursor != answered for each in upstream if _reads_stream(each.inputs)):
            return None, answered
    since = queries.ground.inputs.epochs.since_of(epoch) | queries.groups.since_of(entry.name)
    scans = sorted(_streams(entry))
    read = {queue: max(answered, since.get(queue, answered)) for queue in scans}
    return read, answered


def uneven(queries: Queries, entry: QueryEntry, answered: int) -> str:
    """Why a query has read more than it has answered: which streams it waits for."""
    queues = queries.ground.inputs.queues
    behind = [name for name in sorted(_streams(entry)) if queues[name].heartbeat <= answered]
    names = ", ".join(name.stream or name for name in behind)
    waits = f", as nothing more has come of {names}" if names else ""
    return f"its operators have not come equally far{waits}; wait until they have"


def _streams(entry: QueryEntry) -> set[QueueId]:
    """The queues of the streams that a query reads."""
    nodes = entry.plan.walk_into_subqueries()
    return {StreamId(node.name).queue for node in nodes if isinstance(node, StreamScan)}


def _refusal(entry: QueryEntry, reason: str) -> StateError:
    name, policy = entry.name, entry.on_error.upper()
    return StateError(
        f'query "{name}" cannot go on with ON ERROR {policy}: {reason}; to have it begin anew from '
        f"then on, ALTER QUERY {name} DEACTIVATE, then ON ERROR {policy}, then ACTIVATE, or DROP "
        "and CREATE it"
    )


def _reads_stream(queues: Iterable[QueueId]) -> bool:
    return any(name.stream is not None for name in queues)
