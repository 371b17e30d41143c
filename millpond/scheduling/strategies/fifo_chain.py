"""The randomised mixture of FIFO and Chain that the Chain paper suspects to do well and leaves
open.

Each decision is FIFO's with probability `fifo_share`, else Chain's: memory near Chain's, latency
near FIFO's, in between as the share says.
"""

from random import Random

from millpond.errors import StrategyError
from millpond.scheduling.decisions import Decision
from millpond.scheduling.snapshot import Observation, PlanSnapshot
from millpond.scheduling.strategies.chain import Chain
from millpond.scheduling.strategies.fifo import Fifo


class FifoChain:
    """Tosses a coin, the same for the same seed, between FIFO and Chain."""

    def __init__(
        self,
        fifo_share: float = 0.5,
        seed: int = 0,
        max_tuples: int | None = None,
        slice_seconds: float | None = None,
    ) -> None:
        if not 0 <= fifo_share <= 1:
            raise StrategyError(f"fifo_share is {fifo_share}; give a number from 0 to 1")
        self.fifo_share = fifo_share
        self._random = Random(seed)  # noqa: S311
        self._fifo = Fifo(max_tuples, slice_seconds)
        self._chain = Chain(max_tuples, slice_seconds)

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Tell both."""
        self._fifo.plan_changed(plan)
        self._chain.plan_changed(plan)

    def observe(self, observation: Observation) -> None:
        """Tell both."""
        self._fifo.observe(observation)
        self._chain.observe(observation)

    def decide(self) -> Decision | None:
        """Ask one of them."""
        turn = self._fifo if self._random.random() < self.fifo_share else self._chain
        return turn.decide()
