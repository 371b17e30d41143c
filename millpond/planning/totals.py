"""Counts and sums of windows of several lengths, over rows that were totalled once for all of them.

An aggregate of ``S [RANGE 60]`` that counts and sums integers only cannot tell the tuples of a tick
from others that are as many and have the same sums. So it may read ``Totals(S) [RANGE 60]``: all
windows over S that count and sum the same by the same keys share one pass over its tuples, and keep
one copy of the totals, where there are several tuples with a key in a tick far fewer than tuples.
Sums of doubles are exact to the last bit, which their totals would not be.
"""

from collections.abc import Collection
from dataclasses import replace

from millpond.cql.algebra import Aggregate, Filter, Project, RangeWindow, StreamScan
from millpond.cql.expressions import AggregateCall, Column, Expression
from millpond.cql.node import Node, inputs_first
from millpond.planning.implication import never_fails
from millpond.planning.nodes import Totals
from millpond.schema import Type

_INTEGERS = (Type.INT, Type.BIGINT)
_LINEAR = ("count", "sum", "avg")


def summable(plan: Node) -> dict[Aggregate, Totals]:
    """The aggregates of a plan that may read totals, and which."""
    found = {}
    for node in plan.walk():
        if isinstance(node, Aggregate) and _is_summable(node):
            found[node] = _totals(node)
    return found


def sum_up(plan: Node, chosen: Collection[Aggregate]) -> Node:
    """The plan with some aggregates of it reading totals."""
    if not chosen:
        return plan
    new: dict[Node, Node] = {}
    for node in inputs_first(plan):
        if isinstance(node, Aggregate) and node in chosen:
            new[node] = _over_totals(node)
        else:
            new[node] = node.with_inputs(tuple(new[below] for below in node.inputs))
    return new[plan]


def _is_summable(node: Aggregate) -> bool:
    """Nothing it reads may fail: whoever shares totals would fail with it."""
    window = node.input
    if not isinstance(window, RangeWindow) or not window.length_ticks or window.slide_ticks:
        return False
    if not all(map(_is_of_tuples, window.walk())):
        return False
    is_exact = all(key.type is not Type.DOUBLE for key in node.keys)
    return is_exact and all(map(never_fails, node.keys)) and all(map(_is_linear, node.aggregates))


def _is_of_tuples(node: Node) -> bool:
    match node:
        case Filter():
            return never_fails(node.predicate)
        case Project():
            return all(map(never_fails, node.expressions))
        case _:
            return isinstance(node, StreamScan | RangeWindow)


def _is_linear(call: AggregateCall) -> bool:
    argument = call.argument
    if call.function not in _LINEAR or call.distinct:
        return False
    return argument is None or (argument.type in _INTEGERS and never_fails(argument))


def _arguments(node: Aggregate) -> list[Expression]:
    """What it counts and sums, each once."""
    found = (call.argument for call in node.aggregates)
    return list(dict.fromkeys(each for each in found if each is not None))


def _totals(node: Aggregate) -> Totals:
    """What an aggregate may read in place of tuples; the length of its window does not matter."""
    (stream,) = node.input.inputs
    values = (*node.keys, *_arguments(node))
    rows = Project(stream, values, tuple(map(str, values)))
    sums = tuple(range(len(node.keys), len(values)))
    return Totals(RangeWindow(rows, 0), sums)


def _over_totals(node: Aggregate) -> Aggregate:
    totals, arguments = _totals(node), _arguments(node)
    columns = [Column(i, each.type, each.name) for i, each in enumerate(totals.schema.fields)]
    places = dict(zip(arguments, columns[len(node.keys) :], strict=True))
    return replace(
        node,
        input=node.input.with_inputs((totals,)),
        keys=tuple(columns[: len(node.keys)]),
        aggregates=tuple(
            call if call.argument is None else replace(call, argument=places[call.argument])
            for call in node.aggregates
        ),
    )
