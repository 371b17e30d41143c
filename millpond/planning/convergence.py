"""From when on an operator that began late holds what one from the very beginning would hold.

A late-comer sees of its streams what comes after some times, and of relations that change what
happens after others. What came before leaves its windows some day, and from then on nothing tells
its operators from others that do the same: they are *settled*, and can be one. Of a stream that is
so for what comes after a time, of a relation for its content from a time on.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from millpond.cql.algebra import HopWindow, RangeWindow, Sample
from millpond.cql.node import Node, inputs_first
from millpond.identities import BY_NUMBER, OperatorId, QueueId
from millpond.planning.graph import Graph
from millpond.planning.physical import (
    MatchOperator,
    Operator,
    OutputOperator,
    QueueRead,
    RowPatternOperator,
    RowsWindowOperator,
    SessionOperator,
    writes_tuples,
)
from millpond.planning.window_times import WindowTimes
from millpond.schema import BEGINNING, FOREVER

ALWAYS = BEGINNING - 1
"""What is the same from the very beginning on."""


@dataclass(frozen=True)
class Merge:
    """Whoever reads a queue reads another one that has the same from a time on."""

    queue: QueueId
    into: QueueId
    at: int


def settled(operator: Operator, times: Mapping[QueueId, int]) -> int:
    """From when on it is as if it had begun at the beginning; ``FOREVER`` if that is not known.

    ``times`` tells that of the queues it reads. Members of groups have their constants in common
    with nobody, and what queries put out is their own.
    """
    if isinstance(operator, MatchOperator | OutputOperator):
        return FOREVER
    known = settled_input(operator, times)
    if isinstance(operator, RowsWindowOperator | SessionOperator | RowPatternOperator):
        # who counts finds out; sessions may go on, and a match begins where another has ended
        return known if known == ALWAYS else FOREVER
    return known


def settled_input(operator: Operator, times: Mapping[QueueId, int]) -> int:
    """The same of what it reads."""
    return max(_settled(fragment, times) for fragment in operator.inputs)


def is_counted(operator: Operator) -> bool:
    """Whether it settles when so many elements have come as its window holds."""
    if not isinstance(operator, RowsWindowOperator):
        return False
    is_of_all = not operator.partition and operator.slide_rows is None
    return is_of_all and isinstance(operator.rows, int)


def begins_empty(operator: RowsWindowOperator) -> bool:
    """Whether all that it ever saw is the same for others: it reads tuples as they came."""
    return writes_tuples(operator.input)


def _settled(fragment: Node, times: Mapping[QueueId, int]) -> int:
    found: dict[Node, int] = {}
    for node in inputs_first(fragment):
        below = max((found[each] for each in node.inputs), default=ALWAYS)
        match node:
            case QueueRead():
                found[node] = times[node.queue]
            case RangeWindow() | HopWindow() if ALWAYS < below < FOREVER:
                found[node] = min(WindowTimes.of(node).leave(below), FOREVER)
            case Sample() if not writes_tuples(node.input):
                found[node] = FOREVER  # tuples are drawn by the name of the queue
            case _:
                found[node] = below
    return found[fragment]


def is_sampled(operator: Operator, queue: QueueId) -> bool:
    """Whether tuples of a queue are drawn by its name."""
    samples = (n for fragment in operator.inputs for n in fragment.walk() if isinstance(n, Sample))
    leaves = (leaf for sample in samples for leaf in sample.walk() if isinstance(leaf, QueueRead))
    return any(leaf.queue == queue for leaf in leaves)


# -- in a graph ------------------------------------------------------------------------------


def settle(graph: Graph, identity: OperatorId, since: Mapping[QueueId, int]) -> None:
    """Finds when a new operator settles that sees its inputs after some times."""
    times: dict[QueueId, int] = {}
    for queue in graph.operators[identity].queues():
        if isinstance(queue, OperatorId):
            times[queue] = graph.settled.get(queue, FOREVER)
        elif queue.is_copy:
            times[queue] = since.get(queue, FOREVER)
            graph.copied.update({queue: times[queue]} if queue in since else {})
        else:
            times[queue] = since.get(queue, ALWAYS)
    _settle(graph, identity, times)


def settle_again(graph: Graph, identity: OperatorId, at: int) -> None:
    """The same of one of which it was not known, when what it reads has become that of others."""
    if graph.settled.get(identity, FOREVER) < FOREVER:
        return
    times = {
        queue: max(at, graph.settled.get(queue, FOREVER)) if isinstance(queue, OperatorId) else at
        for queue in graph.operators[identity].queues()
        if not queue.is_copy
    }
    if len(times) == len(graph.operators[identity].queues()):
        _settle(graph, identity, times)


def _settle(graph: Graph, identity: OperatorId, times: Mapping[QueueId, int]) -> None:
    operator = graph.operators[identity]
    graph.settled[identity] = settled(operator, times)
    if is_counted(operator) and graph.settled[identity] == FOREVER:
        known = settled_input(operator, times)
        graph.counting.update({identity: known} if known < FOREVER else {})


# -- what will become one --------------------------------------------------------------------


@dataclass(frozen=True)
class Foreseen:
    """An operator will be one with another one: from a time on, or once so many rows have come."""

    later: OperatorId
    first: OperatorId
    at: int
    rows: int = 0


def foreseen(trial: Graph) -> list[Foreseen]:
    """Which operators will become one, inputs first; the graph is changed as if all were."""
    for copy in list(trial.copied):
        trial.redirect(copy, copy.original)
    found: list[Foreseen] = []
    rows: dict[OperatorId, int] = {}
    """So many rows must come before something is known of those that read them."""
    for later in sorted(map(OperatorId, trial.operators), key=BY_NUMBER):
        first = min(trial.twins(later), key=BY_NUMBER, default=later)
        at = max(trial.settled.get(each, FOREVER) for each in (first, later))
        counts = max(_rows(trial, first), _rows(trial, later), rows.get(later, 0))
        if first == later or (at == FOREVER and not counts):
            continue
        found.append(Foreseen(later, first, _passed(trial, later, at), counts))
        for reader in trial.redirect(later, first):
            if counts:
                settle_again(trial, reader, BEGINNING)
                rows[reader] = max(rows.get(reader, 0), counts)
        trial.remove(later)
    return found


def _passed(graph: Graph, queue: QueueId, settled_: int) -> int:
    """When what came to a queue before it has settled is in no window of its readers any more."""
    if not ALWAYS < settled_ < FOREVER:
        return settled_
    nodes = [node for i in graph.readers(queue) for f in graph.fragments_of(i) for node in f.walk()]
    windows = [
        WindowTimes.of(node)
        for node in nodes
        if isinstance(node, RangeWindow | HopWindow) and node.length_ticks is not None
        if any(isinstance(leaf, QueueRead) and leaf.queue == queue for leaf in node.walk())
    ]
    return max([settled_, *(window.leave(settled_) for window in windows)])


def _rows(graph: Graph, identity: OperatorId) -> int:
    """How many rows must come before a window settles, if that is how it does."""
    operator = graph.operators[identity]
    is_waiting = graph.settled.get(identity, FOREVER) == FOREVER and identity in graph.counting
    rows = operator.rows if isinstance(operator, RowsWindowOperator) else None
    return rows if is_waiting and isinstance(rows, int) else 0
