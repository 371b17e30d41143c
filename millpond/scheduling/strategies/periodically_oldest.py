"""The first cure for starvation (Path Capacity paper, section 4.2), around any strategy.

Every `period_seconds` the operator path with the oldest waiting tuple gets one round; between
them the inner strategy decides.
"""

from collections.abc import Sequence

from millpond.errors import StrategyError
from millpond.scheduling.by_run import ByRun, RankedRun
from millpond.scheduling.charts.ways import Ways
from millpond.scheduling.decisions import Decision
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import Observation, PlanSnapshot
from millpond.scheduling.strategies.path_capacity import path_run
from millpond.scheduling.strategy import Strategy, falls_behind, simulator_only


class PeriodicallyOldest:
    """Lets the inner strategy decide, but now and then serves the oldest tuple to its end.

    `inner` is a strategy or the name of one, made with `inner_settings`. A round for the oldest
    takes in all that waits with it, or `oldest_tuples` of them.
    """

    def __init__(
        self,
        inner: str | Strategy = "path-capacity",
        period_seconds: float = 1.0,
        oldest_tuples: int | None = None,
        **inner_settings: object,
    ) -> None:
        if not period_seconds > 0:
            raise StrategyError(f"period_seconds is {period_seconds}; give more than 0")
        self.inner = make(inner, **inner_settings) if isinstance(inner, str) else inner
        self.simulator_only = simulator_only(self.inner)
        self.period_seconds = period_seconds
        self._oldest = OldestPath(oldest_tuples)
        self._now_seconds = 0.0
        self._next_seconds = period_seconds

    @property
    def falls_behind(self) -> str:
        """Why the inner strategy cannot keep up."""
        return falls_behind(self.inner)

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Tell both."""
        self.inner.plan_changed(plan)
        self._oldest.plan_changed(plan)

    def observe(self, observation: Observation) -> None:
        """Tell both."""
        self.inner.observe(observation)
        self._oldest.observe(observation)
        self._now_seconds = observation.now_seconds

    def decide(self) -> Decision | None:
        """Carry the oldest on; begin with it when its turn has come; else ask the inner one."""
        step = self._oldest.carry_on()
        if step is None and self._now_seconds >= self._next_seconds:
            self._next_seconds = self._now_seconds + self.period_seconds
            step = self._oldest.decide()
        return step if step is not None else self.inner.decide()


class OldestPath(ByRun):
    """Runs the operator path with the oldest waiting tuple, which is FIFO path by path."""

    def runs(self, plan: PlanSnapshot) -> Sequence[RankedRun]:
        """The first operator path through each operator, all of one priority."""
        return [path_run(plan, path, 0.0) for path in Ways(plan).first_paths()]
