from __future__ import annotations

from millpond.scheduling.decisions import Decision, RunOperator
from millpond.scheduling.runtime import SchedulingLoop
from millpond.scheduling.snapshot import Observation, PlanSnapshot
from millpond.scheduling.strategies.fifo import Fifo
from tests.scheduling.pictures import idle, path, waiting


class Script:
    """A runtime with one operator and a fixed number of tuples; writes down what it is asked."""

    def __init__(self, tuples: int) -> None:
        self.left, self.plan_version = tuples, 0
        self.log: list[str] = []

    def plan(self) -> PlanSnapshot:
        self.log.append("plan")
        return path((1, 1))

    def observe(self, complete: bool) -> Observation:
        self.log.append("observe all" if complete else "observe")
        return Observation(0.0, [waiting(0, 0.0) if self.left else idle(0)])

    def has_free_processor(self) -> bool:
        return True

    def perform(self, decision: Decision) -> None:
        assert decision == RunOperator(0)
        self.log.append("perform")
        self.left -= 1

    def wait(self) -> bool:
        self.log.append("wait")
        return False


def test_the_loop_observes_decides_and_performs_until_nothing_is_left() -> None:
    runtime = Script(tuples=2)
    SchedulingLoop(runtime, Fifo()).run()
    expected = "plan, observe all, perform, observe, perform, observe, wait"
    assert ", ".join(runtime.log) == expected


def test_a_new_plan_is_learnt_with_the_state_of_every_operator() -> None:
    runtime = Script(tuples=2)
    loop = SchedulingLoop(runtime, Fifo())
    loop.turn()
    runtime.plan_version += 1
    runtime.log.clear()
    loop.turn()
    assert runtime.log == ["plan", "observe all", "perform"]


def test_another_strategy_may_take_over_between_turns() -> None:
    runtime = Script(tuples=2)
    loop = SchedulingLoop(runtime, Fifo())
    loop.turn()
    loop.strategy = Fifo()
    runtime.log.clear()
    loop.turn()
    assert runtime.log == ["plan", "observe all", "perform"]


def test_without_a_free_processor_nobody_is_asked() -> None:
    runtime = Script(tuples=1)
    runtime.has_free_processor = lambda: False  # type: ignore[method-assign]
    SchedulingLoop(runtime, Fifo()).run()
    assert runtime.log == ["plan", "observe all", "wait"]
