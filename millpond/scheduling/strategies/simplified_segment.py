"""Simplified Segment (Path Capacity paper, section 3.3).

As Segment, but an operator path has two segments at most: the leaf with those behind it that keep
up, C^M_{O_{i+1}} / C^M_{O_i} >= γ (`gamma`, the similarity factor, 3/4 in the paper), and the rest.
A tuple waits at most twice on its way.
"""

from millpond.errors import StrategyError
from millpond.scheduling.strategies.segment import Segment


class SimplifiedSegment(Segment):
    """Runs the segment that frees the most memory in a second, of at most two on each path."""

    cuts_once = True

    def __init__(
        self, gamma: float = 0.75, max_tuples: int | None = None, slice_seconds: float | None = None
    ) -> None:
        super().__init__(max_tuples, slice_seconds)
        if not 0 < gamma <= 1:
            raise StrategyError(f"gamma is {gamma}; give a number above 0 and at most 1")
        self.gamma = gamma

    def falls(self, before: float, behind: float) -> bool:
        """Whether the leaf segment ends between two operators."""
        # An operator that makes memory grow has no ratio worth the name: then γ = 1.
        return behind < (self.gamma * before if before > 0 else before)
