"""Who executes steps: the driver, or the executors beside it.

An `Executor` does the work of a step that an operator describes (`jobs.py`). Those that are there
are asked through `Executors`, by the place of the step (`places.py`).
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from millpond.errors import InputError, MillpondError, OutgrownError, StoreError
from millpond.execution.failures import CancelledStepError, has_ended_its_process
from millpond.execution.jobs import Rows
from millpond.execution.operators.running import OperatorStep
from millpond.execution.steps import DRIVER, Outcome
from millpond.execution.surroundings import Cluster
from millpond.identities import OperatorId


class Together(Protocol):
    """Steps of several members of a unit that are executed in one go."""

    @property
    def first(self) -> OperatorStep:
        """The step that the others ride with."""

    @property
    def riders(self) -> tuple[OperatorStep, ...]:
        """The others, upstream first."""

    def run(self) -> list[Outcome]:
        """Does all of them; their outcomes."""


class Executor(Protocol):
    """Does the work of steps; nobody sees anything of it before they are committed."""

    def execute(self, step: OperatorStep) -> Outcome:
        """Does the work of a step; raises OutgrownError where that would take too much memory."""

    def together(
        self,
        first: OperatorStep,
        others: Sequence[OperatorStep],
        done: Mapping[OperatorId, OperatorStep],
    ) -> Together | None:
        """The steps that are best executed with a first one; None if there are none.

        ``others`` come upstream first and are not executed yet, ``done`` ones are.
        """

    def offenders(self, step: OperatorStep) -> tuple[str, ...]:
        """Some of the rows on which an expression of a step fails."""


class FarExecutor(Executor, Rows, Cluster, Protocol):
    """An executor outside the driver: it is started, is told who asks, and may die.

    It also evaluates for the driver what the driver cannot.
    """

    def expect(self) -> None:
        """Has it ready for steps to come, without waiting for that."""

    def close(self) -> None:
        """No more steps will come."""

    def new_tag(self) -> str:
        """A name for the work of a step, by which it can be cancelled."""

    def working(self, tag: str, thread: int, weight: float) -> AbstractContextManager[None]:
        """Within it this thread works on what has a tag, for a thread of the strategy."""

    @property
    def lost(self) -> object | None:
        """What has died while this thread worked with it, if anything has."""

    def forget(self, lost: object | None) -> bool:
        """Starts anew with the next step, if it still works with what has died; whether it did."""

    def cancel(self, tag: str | None = None) -> None:
        """Cancels the work with a tag, or all of it."""


@dataclass(frozen=True)
class Executors:
    """Those who execute the steps of an engine."""

    driver: Executor
    far: FarExecutor

    def of(self, step: OperatorStep) -> Executor:
        """Who executes a step, by its place."""
        return self.driver if step.place == DRIVER else self.far

    def execute(self, step: OperatorStep) -> Outcome:
        """Does the work of a step, or of the first part of it if the whole would take too much
        memory.

        Only an operator with a state may come less far: others have several steps under way.
        """
        began, executor, part = time.monotonic(), self.of(step), step
        while True:
            try:
                outcome = executor.execute(part)
            except OutgrownError as outgrown:
                until = outgrown.until
                is_cut = until is not None and part.after < until < part.until
                if until is None or not is_cut or not step.running.keeps_state:
                    raise
                part = part.shortened(until)
            else:
                if part is not step and outcome.until is None:
                    outcome.until = part.until
                outcome.began, outcome.seconds = began, time.monotonic() - began
                return outcome

    def is_own(self, error: BaseException) -> bool:
        """Whether an error is that of a step, and not the end of Spark or of the execution."""
        is_ours = not isinstance(error, StoreError | CancelledStepError)
        return is_ours and isinstance(error, Exception) and self.far.lost is None

    def offenders(self, step: OperatorStep, error: BaseException) -> tuple[str, ...]:
        """Some of the rows that made a step fail, where they can be found."""
        if not isinstance(error, InputError) or has_ended_its_process(error):
            return ()  # it would do so again
        try:
            return self.of(step).offenders(step)
        except (MillpondError, OSError):
            return ()  # the failure itself is what matters
