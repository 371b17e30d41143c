"""Branches: a fragment flattened, and what an operator wants of it.

A tree of filters, projections, windows and signed sums becomes one branch for each queue read, each
with one condition and one select list over the queue's own columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from millpond.cql.algebra import Filter, HopWindow, Project, RangeWindow, Sample, WithTime
from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.cql.node import Node
from millpond.errors import MillpondError
from millpond.planning.nodes import Combine
from millpond.planning.physical import QueueRead
from millpond.planning.predicates import all_columns, conjoin, conjuncts, substitute
from millpond.planning.window_times import HopTimes, WindowTimes
from millpond.schema import Type

ELEMENT = ("_ts", "_te", "_w")


@dataclass(frozen=True)
class Branch:
    """One way from a queue to the top of a fragment; expressions see the queue's columns and, of a
    stream, the time of each element behind them, and behind that its number.

    ``below`` is what a sample draws from, ``predicate`` what is selected from what it has drawn, or
    from all if there is none: it is not asked of other rows, on which it might fail.
    """

    leaf: QueueRead
    expressions: tuple[Expression, ...]
    predicate: Expression | None = None
    window: WindowTimes | None = None
    sample: Sample | None = None
    sign: int = 1
    below: Expression | None = None

    @property
    def conditions(self) -> list[Expression]:
        """All that is asked of rows."""
        return [*conjuncts(self.below), *conjuncts(self.predicate)]


def branches(node: Node) -> list[Branch]:
    """The branches of a fragment."""
    match node:
        case QueueRead():
            return [Branch(node, all_columns(node))]
        case RangeWindow():
            return [replace(b, window=WindowTimes.of(node)) for b in branches(node.input)]
        case HopWindow():
            return [
                _hopping(branch, node, times)
                for branch in branches(node.input)
                for times in HopTimes.of_each(node)
            ]
        case WithTime():
            return [_with_time(b, node) for b in branches(node.input)]
        case Sample():
            return [
                replace(b, sample=node, below=conjoin(b.conditions), predicate=None)
                for b in branches(node.input)
            ]
        case Combine():
            right = [replace(b, sign=b.sign * node.sign) for b in branches(node.right)]
            return branches(node.left) + right
        case Filter():
            return [_filtered(b, node.predicate) for b in branches(node.input)]
        case Project():
            return [
                replace(
                    b, expressions=tuple(substitute(e, b.expressions) for e in node.expressions)
                )
                for b in branches(node.input)
            ]
        case _:
            raise MillpondError(f"internal: {node.label()} is not linear")


def _with_time(branch: Branch, node: WithTime) -> Branch:
    """A branch with the times of its elements, and their numbers if they have some."""
    number: Expression = Literal(0, Type.BIGINT)
    if branch.leaf.is_base:
        number = Column(len(branch.leaf.schema) + 1, Type.BIGINT, "number")
    own = (_time(branch, node.tick_microseconds), number)
    return replace(branch, expressions=(*branch.expressions, *own[: 1 + node.is_numbered]))


def _hopping(branch: Branch, window: HopWindow, times: HopTimes) -> Branch:
    """A branch with the bounds of one of the windows that its elements are in."""
    every, unit = (window.slide_ticks, window.offset_ticks), window.tick_microseconds
    shifts = (times.shift - times.length, times.shift)
    bounds = tuple(_time(branch, unit, (*every, shift)) for shift in shifts)
    return replace(branch, window=times, expressions=(*branch.expressions, *bounds))


def _time(
    branch: Branch, unit: int | None, aligned: tuple[int, int, int] = (1, 0, 0)
) -> Expression:
    """The time of an element, which stands behind the columns of its queue, brought to the last
    multiple of a slide from an offset on, and shifted: as a TIMESTAMP if a tick has a length."""
    time: Expression = Column(len(branch.leaf.schema), Type.BIGINT, "time")
    numbers = (Literal(number, Type.BIGINT) for number in (*aligned, unit or 1))
    time = Call("aligned", (time, *numbers), Type.BIGINT)
    return time if unit is None else Call("timestamp_micros", (time,), Type.TIMESTAMP)


def _filtered(branch: Branch, predicate: Expression) -> Branch:
    part = substitute(predicate, branch.expressions)
    return replace(branch, predicate=conjoin([*conjuncts(branch.predicate), part]))


@dataclass(frozen=True)
class Outputs:
    """What an operator wants of each row: expressions over the fragment's columns, with names.

    ``names`` are those of start, end and weight (or, over a stream, time and order).
    """

    expressions: tuple[tuple[Expression, str], ...]
    names: tuple[str, ...] = ELEMENT

    @staticmethod
    def all_of(node: Node, names: tuple[str, ...] = ELEMENT, first: int = 0) -> Outputs:
        """Every column of the fragment, as c0… or from another number on."""
        columns = all_columns(node)
        return Outputs(tuple((c, f"c{first + i}") for i, c in enumerate(columns)), names)
