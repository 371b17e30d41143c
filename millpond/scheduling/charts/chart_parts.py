"""Parts of charts and the step that normalises them (Unified paper, section 4).

A chart here is a linked list of parts in order of slope, the steepest first, which other charts may
share; so a path of any length is normalised in time linear in its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from millpond.scheduling.charts.progress_chart import slope

Kind: TypeAlias = tuple[tuple[int, ...], int]
Stack: TypeAlias = "tuple[ChartPart, Stack] | None"
"""Parts in order of slope, the steepest first; never changed."""


@dataclass(frozen=True, slots=True)
class ChartPart:
    """Operators that are processed together, and how far the chart falls in how many seconds.

    `heads` begin the part, `taken` are the parts behind them that they took in.
    """

    seconds: float
    fall: float
    heads: tuple[int, ...]
    taken: tuple[ChartPart, ...] = ()

    @property
    def slope(self) -> float:
        """The fall in a second."""
        return slope((0.0, self.fall), (self.seconds, 0.0))

    @property
    def operators(self) -> tuple[int, ...]:
        """The operators in the order in which one tuple passes them."""
        heads = (part.heads for part in self._nested(first_to_last=True))
        return tuple(dict.fromkeys(chain.from_iterable(heads)))

    @property
    def depth_first(self) -> tuple[tuple[int, ...], ...]:
        """Heads in the order that finishes each tuple before the next: what is behind comes first.

        >>> upper = ChartPart(1, 1, (1,), (ChartPart(1, 1, (2,)),))
        >>> ChartPart(4, 2, (0,), (upper, ChartPart(1, 1, (3,)))).depth_first
        ((2,), (1,), (3,), (0,))
        """
        return tuple(part.heads for part in self._nested(first_to_last=False))[::-1]

    @property
    def kind(self) -> Kind:
        """What parts share that differ in the number of tuples only."""
        return self.heads, id(self.taken)

    def _nested(self, first_to_last: bool) -> Iterator[ChartPart]:
        """This part and all inside it, each before those it took in; what joins share only once."""
        seen: set[Kind] = set()
        pending = [self]
        while pending:
            part = pending.pop()
            if part.kind not in seen:
                seen.add(part.kind)
                yield part
                pending.extend(reversed(part.taken) if first_to_last else part.taken)

    def plus(self, same: ChartPart) -> ChartPart:
        """The same part for the tuples of both."""
        return replace(self, seconds=self.seconds + same.seconds, fall=self.fall + same.fall)

    def times(self, factor: float) -> ChartPart:
        """The same part for another number of tuples."""
        return replace(self, seconds=self.seconds * factor, fall=self.fall * factor)


def absorb(head: ChartPart, rest: Stack) -> tuple[ChartPart, Stack]:
    """Normalise a chart whose rest is in order of slope: the head takes in what is steeper."""
    seconds, fall, taken = head.seconds, head.fall, []
    while rest is not None and rest[0].slope > slope((0.0, fall), (seconds, 0.0)):
        part, rest = rest
        seconds, fall = seconds + part.seconds, fall + part.fall
        taken.append(part)
    return ChartPart(seconds, fall, head.heads, tuple(taken)), rest


def merged(stacks: Iterable[Stack]) -> Stack:
    """Several charts as one, in order of slope; what is behind a join is in it only once."""
    charts = [stack for stack in stacks if stack is not None]
    if len(charts) < 2:
        return charts[0] if charts else None
    found: dict[Kind, ChartPart] = {}
    for part in chain.from_iterable(map(unfold, charts)):
        same = found.get(part.kind)
        found[part.kind] = part if same is None else part.plus(same)
    return stacked(sorted(found.values(), key=lambda part: -part.slope))


def scaled(stack: Stack, factor: float) -> Stack:
    """The same chart for another number of tuples."""
    return stack if factor == 1.0 else stacked([part.times(factor) for part in unfold(stack)])


def unfold(stack: Stack) -> Iterator[ChartPart]:
    """The parts of a chart, the steepest first."""
    while stack is not None:
        part, stack = stack
        yield part


def stacked(ordered: Sequence[ChartPart]) -> Stack:
    """A chart of parts that are in order of slope."""
    stack: Stack = None
    for part in reversed(ordered):
        stack = part, stack
    return stack
