"""Selections that read what another selection has let through already.

``Filter(p, S)`` is ``Filter(p, Filter(q, S))`` wherever p implies q and neither can fail. If the
inner one is an operator that runs, all else is the sharing of equal operators: its queue, its
epoch, its going with the last that reads it.
"""

from collections.abc import Mapping
from dataclasses import replace

from millpond.cql.algebra import (
    Filter,
    HopWindow,
    Project,
    RangeWindow,
    Sample,
    StreamScan,
    WithTime,
)
from millpond.cql.expressions import Expression
from millpond.cql.node import Node, inputs_first
from millpond.planning.implication import never_fails
from millpond.planning.nodes import Combine
from millpond.planning.properties import is_fused

_FUSED = (Filter, Project, Sample, RangeWindow, HopWindow, WithTime, Combine)


def selections(plan: Node) -> dict[Filter, tuple[Node, ...]]:
    """The selections from streams of a plan, right above these, each with what reads it.

    That are the next nodes that become operators: where one of these runs already, so does all
    below it. Tuples below a sample are drawn by the name of the queue that is read, and are left
    alone; so is what can fail on rows that others have left out.
    """
    parents: dict[Node, list[Node]] = {}
    sampled: set[Node] = set()
    found: list[Filter] = []
    for node in inputs_first(plan):
        for below in node.inputs:
            parents.setdefault(below, []).append(node)
        if isinstance(node, Sample):
            sampled.update(node.walk())
        elif isinstance(node, Filter) and _is_lowest(node) and never_fails(node.predicate):
            found.append(node)
    return {node: _readers(node, parents) for node in found if node not in sampled}


def _is_lowest(node: Filter) -> bool:
    below = node.input
    return below.is_stream and (isinstance(below, StreamScan) or not is_fused(below))


def _readers(node: Node, parents: Mapping[Node, list[Node]]) -> tuple[Node, ...]:
    """The next nodes above one that are no parts of whatever reads them."""
    found: dict[Node, None] = {}
    seen, waiting = {node}, [node]
    while waiting:
        for above in parents.get(waiting.pop(), ()):
            if not isinstance(above, _FUSED):
                found[above] = None
            elif above not in seen:
                seen.add(above)
                waiting.append(above)
    return tuple(found)


def contain(plan: Node, chosen: Mapping[Filter, Expression]) -> tuple[Node, frozenset[Node]]:
    """The plan with some of its selections over others, and those others: operators of their own.

    ``chosen`` tells of selections in the plan by which weaker predicate the other one selects.
    """
    new: dict[Node, Node] = {}
    apart: set[Node] = set()
    for node in inputs_first(plan):
        made = node.with_inputs(tuple(new[below] for below in node.inputs))
        if isinstance(made, Filter) and isinstance(node, Filter) and node in chosen:
            weaker = replace(made, predicate=chosen[node], written=None)
            apart.add(weaker)
            made = weaker if weaker == made else replace(made, input=weaker)
        new[node] = made
    return new[plan], frozenset(apart)
