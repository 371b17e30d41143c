"""The steps that are under way, and the threads that execute them.

Threads execute steps without the lock; whatever else is done here is done with it.
"""

import time
from collections import deque
from collections.abc import Iterator

from millpond.background import BackgroundThreads
from millpond.execution.executor import Executors
from millpond.execution.unit_steps import UnitStep
from millpond.execution.units import Unit
from millpond.identities import OperatorId
from millpond.interruption import WholeLock

MOST_PROCESSORS = 64
"""More steps than this never run at once."""

AT_ONCE = "at once"
"""The tag of a step that the loop itself executes, which starts no jobs."""


class UnderWay:
    """Steps from when they are prepared until they are committed or thrown away."""

    def __init__(self, executors: Executors, lock: WholeLock) -> None:
        self.steps: dict[OperatorId, deque[UnitStep]] = {}
        """The steps of each unit, by its name."""
        self.orphans: list[UnitStep] = []
        """Steps nobody wants any more that are still executed."""
        self.finished: deque[UnitStep] = deque()
        self._executors = executors
        self._threads = BackgroundThreads(MOST_PROCESSORS, "millpond-step")
        self._lock = lock
        self._changed_now = lock.condition()
        self._is_woken = False

    @property
    def count(self) -> int:
        """How many steps are under way."""
        return sum(map(len, self.steps.values()))

    def __iter__(self) -> Iterator[UnitStep]:
        """All steps whose pages are pinned."""
        for steps in self.steps.values():
            yield from steps
        yield from self.orphans

    def is_at_work(self, unit: Unit) -> bool:
        """Whether steps of a unit, or of some of its members, are under way."""
        return unit.identity in self.steps or self.is_orphaned(unit)

    def is_orphaned(self, unit: Unit) -> bool:
        """Whether a step that nobody wants any more is still executed with some of its members."""
        return any(unit.identities & step.unit.identities for step in self.orphans)

    def add(self, step: UnitStep) -> None:
        """A step is prepared."""
        self.steps.setdefault(step.unit.identity, deque()).append(step)

    # -- execution -------------------------------------------------------------------------

    def submit(self, step: UnitStep) -> None:
        """Has a thread execute a step."""
        tag = step.tag = self._executors.far.new_tag()
        self._threads.submit(lambda: self._execute(step, tag))

    def _execute(self, step: UnitStep, tag: str) -> None:
        error, lost, far = None, None, self._executors.far
        with far.working(tag, step.thread, step.weight):
            try:
                step.execute(self._executors)
            except BaseException as raised:  # noqa: BLE001 (whatever it is, it is the step's)
                error, lost = raised, far.lost
        with self._lock:
            step.error, step.lost, step.is_executed = error, lost, True
            self.finished.append(step)
            self._changed_now.notify_all()

    def execute_at_once(self, step: UnitStep) -> bool:
        """Executes a step in the thread that asks; whether it is over, for what fails is repeated
        where Spark may be asked."""
        try:
            step.execute_at_once(self._executors)
        except Exception:  # noqa: BLE001 (said when it fails again)
            with self._lock:
                step.discard()
                self.submit(step)
            return False
        except BaseException as interruption:
            with self._lock:
                step.error = interruption
            raise
        return True

    def repeat(self, step: UnitStep) -> bool:
        """Executes a step again during which Spark has died; whether nobody has noticed before."""
        is_new = self._executors.far.forget(step.lost)
        step.discard()
        step.repetitions += 1
        self.submit(step)
        return is_new

    # -- waiting ---------------------------------------------------------------------------

    def wait(self) -> bool:
        """Waits until a step has finished or something else changed; False if nothing can."""
        while not self.finished and not self._is_woken:
            if not self.steps and not self.orphans:
                return False
            self._changed_now.wait()
        self._is_woken = False
        return True

    def wake(self) -> None:
        """Wakes the thread that waits for steps: something has changed."""
        if self.steps or self.orphans:
            self._is_woken = True
            self._changed_now.notify_all()

    # -- giving up -------------------------------------------------------------------------

    def forget(self, unit: Unit) -> None:
        """Gives up the steps of a unit; those that still run are cancelled and thrown away."""
        for step in self.steps.pop(unit.identity, ()):
            step.unclaim()
            if step.is_finished:
                step.throw_away()
            else:
                self.orphans.append(step)
                self._executors.far.cancel(step.tag)

    def cancel_jobs(self) -> None:
        """Cancels what executors do for all of them."""
        self._executors.far.cancel()

    def forget_all(self) -> set[Unit]:
        """Gives up all steps; their units."""
        steps = [step for each in self.steps.values() for step in each]
        for step in steps:
            if step.tag in (None, AT_ONCE) and not step.is_finished:
                step.error = KeyboardInterrupt()  # the loop was interrupted before it began
        units = {step.unit for step in steps}
        for unit in units:
            self.forget(unit)
        return units

    def wait_for_orphans(self, until: float) -> list[UnitStep]:
        """Throws away the steps that nobody wants; which are still executed at a moment."""
        self._changed_now.wait_for(  # who is interrupted here leaves them to the next turn
            lambda: all(step.is_finished for step in self.orphans),
            max(0.0, until - time.monotonic()),
        )
        for step in self.orphans:
            if step.is_finished:
                step.throw_away()
        self.orphans = [step for step in self.orphans if not step.is_finished]
        self.finished.clear()
        return list(self.orphans)

    def close(self, until: float) -> None:
        """Lets the threads end; what runs is waited for, until a moment."""
        self._threads.close(until)
