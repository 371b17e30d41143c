"""What lasts: elements that change only when tuples come, as no window lets anything go in time;
and when all has ended that does not."""

from millpond.cql.node import Node
from millpond.identities import OperatorId
from millpond.planning.asking import asked_once, few_branches
from millpond.planning.branches import Branch
from millpond.planning.graph import Graph
from millpond.planning.physical import (
    AggregateOperator,
    CountOperator,
    JoinOperator,
    LinearOperator,
    MatchOperator,
    RowsWindowOperator,
)
from millpond.schema import FOREVER

_SUMMED, _EXTREME = ("count", "sum", "avg"), ("min", "max")


def lasts(graph: Graph, fragment: Node) -> bool:
    """Whether nothing of a fragment changes because time passes."""
    found = few_branches(fragment)
    return found is not None and all(_branch_lasts(graph, branch) for branch in found)


def _branch_lasts(graph: Graph, branch: Branch) -> bool:
    queue = branch.leaf.queue
    if branch.leaf.of_stream:
        return branch.window is not None and branch.window.length is None
    if not isinstance(queue, OperatorId):
        return False
    return _output_lasts(graph, queue)


@asked_once(unknown=False)
def _output_lasts(graph: Graph, identity: OperatorId) -> bool:
    """Whether nothing that an operator puts out changes because time passes."""
    operator = graph.operators.get(identity)
    if isinstance(operator, RowsWindowOperator):
        return True
    if not isinstance(operator, LinearOperator | JoinOperator | AggregateOperator | CountOperator):
        return False
    return all(lasts(graph, each) for each in graph.fragments_of(identity))


def keeps_one_row(operator: AggregateOperator) -> bool:
    """Whether an aggregate keeps one row a group and nothing else."""
    kept = _SUMMED + _EXTREME * operator.is_append_only
    return all(each.function in kept and not each.distinct for each in operator.aggregates)


def last_end(graph: Graph, fragment: Node, begun: int) -> int:
    """When all that has begun in a fragment by a time has ended; ``FOREVER`` if some of it may not,
    or is taken back by what comes later."""
    found = few_branches(fragment)
    return FOREVER if found is None else max(_end_of_branch(graph, each, begun) for each in found)


def _end_of_branch(graph: Graph, branch: Branch, begun: int) -> int:
    queue, window = branch.leaf.queue, branch.window
    if branch.leaf.of_stream:
        return FOREVER if window is None else min(FOREVER, window.leave(begun))
    return _end_of_output(graph, queue, begun) if isinstance(queue, OperatorId) else FOREVER


@asked_once(unknown=FOREVER)
def _end_of_output(graph: Graph, identity: OperatorId, begun: int) -> int:
    operator = graph.operators.get(identity)
    if not isinstance(operator, LinearOperator | MatchOperator | JoinOperator):
        return FOREVER
    ends = [last_end(graph, each, begun) for each in graph.fragments_of(identity)]
    return min(ends)  # a pair ends with the one of its rows that ends first
