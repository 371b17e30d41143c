"""The step of a unit: what its members are to do, in one transaction.

Members are executed upstream first in one thread, each reading what those before it have just
written, which nobody else has seen, beside the pages of its queues.
"""

import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from millpond.errors import StateError
from millpond.execution.executor import Executors, Together
from millpond.execution.fragments import STARTED
from millpond.execution.operators.running import OperatorStep
from millpond.execution.statistics import Statistics
from millpond.execution.steps import EXECUTORS, Outcome, is_due
from millpond.execution.units import Unit
from millpond.identities import OperatorId
from millpond.planning.graph import operators_in
from millpond.storage.origins import Origins, mixed
from millpond.storage.pages import Page
from millpond.storage.readers import Remains


@dataclass(eq=False)
class UnitStep:
    """What the members of a unit are to do, in one transaction."""

    unit: Unit
    steps: list[OperatorStep]
    error: BaseException | None = None
    """Why it was not executed to its end."""
    lost: object | None = None
    """What has died while it was executed with it, if anything has."""
    repetitions: int = 0
    thread: int = 0
    """The thread of the strategy that it belongs to; 0: none in particular."""
    weight: float = 1.0
    """How much that thread counts."""
    tag: str | None = None
    """What its work is known by, to be cancelled."""
    is_executed: bool = False
    is_over: bool = False
    """Whether it was committed or thrown away."""
    _done: dict[OperatorId, OperatorStep] = field(default_factory=dict)
    _is_apart: bool = False
    """Whether one that failed together with others is looked for."""

    @property
    def is_finished(self) -> bool:
        """Whether it was executed, with or without success."""
        return self.is_executed or self.error is not None

    @property
    def seconds(self) -> float:
        """How long the unit's members have worked."""
        return sum(step.outcome.seconds for step in self.steps if step.outcome is not None)

    def seconds_here(self, statistics: Mapping[OperatorId, Statistics]) -> float:
        """How long it takes in the driver without Spark; infinity if that is not known."""
        seconds, made = 0.0, dict[str, float]()
        for step in self.steps:
            running = step.running
            rows = step.rows + sum(made.get(name, 0.0) for name in running.inputs)
            made[running.identity] = rows * statistics[running.identity].row_selectivity
            seconds += math.inf if step.place == EXECUTORS else running.seconds_here(rows)
        return seconds

    @property
    def is_here(self) -> bool:
        """Whether all of it is done in the driver without Spark."""
        return all(each.place != EXECUTORS and each.running.is_here for each in self.steps)

    # -- execution -------------------------------------------------------------------------

    def execute(self, executors: Executors) -> None:
        """Does the work of all members; one that fails holds up those that read it, and no others.

        Raises what is not the failure of a step: the end of Spark, or of the execution.
        """
        self._done, self._is_apart = {}, False
        waiting = list(self.steps)
        while waiting:
            step = waiting.pop(0)
            try:
                ridden = self._execute(step, waiting, executors)
            except BaseException as error:
                step.error = error
                if not executors.is_own(error):
                    raise
                step.offenders = executors.offenders(self._now(step), error)
                waiting = _without_readers(step, waiting)
            else:
                waiting = [each for each in waiting if each not in ridden]
        self._find_published()

    def execute_at_once(self, executors: Executors) -> None:
        """Does the same in a thread that may not ask Spark; raises whatever goes wrong."""
        self._done = {}
        for step in self.steps:
            now = self._now(step)
            if now.place == EXECUTORS:
                raise StateError("internal: more rows came than were expected")
            self._take(step, now, executors.execute(now) if is_due(step, now) else None)
        self._find_published()

    def _now(self, step: OperatorStep) -> OperatorStep:
        """A member's step with what the members before it have put out."""
        now = step.behind(self._done, step.until)
        if now is not step:
            now.place = step.running.place_for(now.rows)
        return now

    def _execute(
        self, step: OperatorStep, others: list[OperatorStep], executors: Executors
    ) -> list[OperatorStep]:
        """Executes a member's step; the steps of others that were executed with it."""
        now = self._now(step)
        if not is_due(step, now):
            self._take(step, now, None)
            return []
        executor = executors.of(now)
        together = None if self._is_apart else executor.together(now, others, self._done)
        if together is not None:
            riding = {each.number for each in together.riders}
            ridden = [each for each in others if each.number in riding]
            if self._is_done([step, *ridden], together, executors):
                return ridden
        self._take(step, now, executors.execute(now))
        return []

    def _is_done(self, steps: list[OperatorStep], together: Together, executors: Executors) -> bool:
        """Whether all was done in one go; if one failed, which one is found out one by one."""
        try:
            outcomes = together.run()
        except Exception as error:
            if not executors.is_own(error):
                raise
            self._is_apart = True
            return False
        done = zip(steps, [together.first, *together.riders], outcomes, strict=True)
        names = {step.running.identity for step in steps}
        for step, now, outcome in done:
            self._take(step, now, outcome, names)
        return True

    def _take(
        self,
        step: OperatorStep,
        now: OperatorStep,
        outcome: Outcome | None,
        together: Container[str] = (),
    ) -> None:
        """Takes the outcome of a step; those ``together`` with it were executed in one go."""
        step.is_idle = outcome is None
        if outcome is not None and outcome.until is not None and outcome.until < now.until:
            now = now.shortened(outcome.until)
        step.outcome, step.rows = outcome or Outcome(None), now.rows
        parts = list(self._parts(now, together))
        step.outcome.taken = sum(rows for _, rows in parts)
        step.outcome.origins = mixed(parts)
        if step.outcome.output is not None:
            step.outcome.output.origins = step.outcome.origins
        if step.outcome.until is None and now.until < step.until:
            step.outcome.until = now.until
        self._done[step.running.identity] = step

    def _parts(self, now: OperatorStep, together: Container[str]) -> Iterator[tuple[Origins, int]]:
        """What starts in a step: when its tuples came, and how many rows they are."""
        for reading in now.readings:
            for spans in reading.spans.get(STARTED, ()):
                yield from ((span.origins, span.rows) for span in spans)
        for name in operators_in(now.running.inputs):
            outcome = self._done[name].outcome if name in together else None
            if outcome is not None:
                yield outcome.origins, outcome.rows

    def _find_published(self) -> None:
        """Finds out what others will see of each member's output, and has it in the store."""
        for identity, step in self._done.items():
            if step.outcome is None or step.outcome.output is None:
                continue
            readers = [each for each in self._done.values() if identity in each.running.inputs]
            is_read = all(each.reached >= step.reached for each in readers)
            remains = step.remains if is_read else Remains.ALL
            step.published = _remaining(step.outcome.output, remains, step)
            if step.published is not None and step.running.around.store.is_durable:
                _ = step.published.names

    # -- the end ---------------------------------------------------------------------------

    def give_up_unless_whole(self) -> None:
        """Has nothing to be committed if the execution did not come to its end.

        Whoever it failed in has failed, or all of them if that is not known.
        """
        if self.error is None:
            return
        is_known = any(step.error is not None for step in self.steps)
        for step in self.steps:
            step.running.discard(step)
            step.error = step.error if is_known else self.error

    @property
    def is_outdated(self) -> bool:
        """Whether somebody has begun to read what the members put out among themselves."""
        return any(
            step.remains is not Remains.ALL and self.unit.remains(step.running) is Remains.ALL
            for step in self.steps
        )

    def discard(self) -> None:
        """Gives up what the execution has written, so that it can be repeated."""
        for step in self.steps:
            step.running.discard(step)
            step.error = None
        self.error, self.lost, self.is_executed = None, None, False

    def unclaim(self) -> None:
        """What it was to do is there to be done again."""
        for step in self.steps:
            step.running.unclaim(step.after)

    def throw_away(self) -> None:
        """Gives it up with all it has written; it is unclaimed already."""
        if not self.is_over:
            self.is_over = True
            for step in self.steps:
                step.running.discard(step)
                step.unpin()


def _without_readers(failed: OperatorStep, steps: list[OperatorStep]) -> list[OperatorStep]:
    """The steps, upstream first, that read nothing of one that has failed."""
    gone, kept = {failed.running.identity}, []
    for step in steps:
        if gone.intersection(step.running.inputs):
            gone.add(step.running.identity)
        else:
            kept.append(step)
    return kept


def _remaining(page: Page, remains: Remains, step: OperatorStep) -> Page | None:
    """What of a page is needed when its step is over."""
    if remains is Remains.ALL:
        return page
    if remains is Remains.NOTHING or page.last_end is None or page.last_end <= step.reached:
        return None
    if not page.is_in_driver:
        return page
    rest = Page.of(step.running.around.store, remains.of(page.table, step.reached))
    rest.origins = page.origins
    return rest
