"""What strategies may ask of a runtime."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from millpond.errors import StrategyError


class RunOperator(NamedTuple):
    """Run one operator on one processor, for at most so many tuples and seconds.

    Neither limit given means everything that waits now. `thread` names the thread the step belongs
    to (a runtime may charge for changing threads, or map it to a pool of `weight`). If the step is
    the first of a round, its tuples together cost as much as the round's steps do by themselves
    when there are `breakeven_tuples` of them; 0 leaves that to the runtime. A NamedTuple because
    millions are made.
    """

    operator: int
    max_tuples: int | None = None
    slice_seconds: float | None = None
    thread: int = 0
    weight: float = 1.0
    breakeven_tuples: float = 0.0


@dataclass(frozen=True, slots=True)
class PlaceQueues:
    """Keep queues on these edges of the unfused plan only: (producer id or stream name, reader id).

    Operators joined by an edge without a queue become one virtual operator. The plan changes once
    queues that go have drained.
    """

    edges: frozenset[tuple[int | str, int]]


Decision: TypeAlias = RunOperator | PlaceQueues


@dataclass(frozen=True, slots=True)
class Service:
    """How much one decision serves: exhaustive, limited by tuples, or limited by time.

    >>> Service(max_tuples=10).run(3)
    RunOperator(operator=3, max_tuples=10, slice_seconds=None, thread=0, weight=1.0, \
breakeven_tuples=0.0)
    """

    max_tuples: int | None = None
    slice_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.max_tuples is not None and self.max_tuples < 1:
            raise StrategyError(
                f"max_tuples is {self.max_tuples}; give at least 1, or None for all"
            )
        if self.slice_seconds is not None and not self.slice_seconds > 0:
            raise StrategyError(f"slice_seconds is {self.slice_seconds}; give more than 0, or none")

    def run(self, operator: int) -> RunOperator:
        """The decision to serve this operator once."""
        return RunOperator(operator, self.max_tuples, self.slice_seconds)
