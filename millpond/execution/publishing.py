"""Commits steps: publishes what they have written, all of it at once, in order of time.

What nobody has to do is published too: an operator whose inputs are quiet passes the time on.
"""

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

from millpond.cql.needed_functions import functions_in
from millpond.errors import StateError, StoreError
from millpond.execution.cutting import Cutting
from millpond.execution.failures import in_words, named_if_ended
from millpond.execution.listener import Listener
from millpond.execution.operators.running import OperatorStep, RunningOperator
from millpond.execution.picture import Picture
from millpond.execution.regrouping import Regrouping
from millpond.execution.running_operators import RunningOperators
from millpond.execution.statistics import Tally
from millpond.execution.telling import Telling
from millpond.execution.under_way import UnderWay
from millpond.execution.unit_steps import UnitStep
from millpond.identities import OperatorId
from millpond.kernels.aggregate import last_keys_in
from millpond.planning.physical import OutputOperator
from millpond.storage.pages import Page
from millpond.storage.queues import Queue

MOST_REPETITIONS = 3
"""A step during which Spark dies so often fails."""


class Publishing:
    """Publishes steps, and the passing of time."""

    def __init__(
        self,
        operators: RunningOperators,
        picture: Picture,
        listener: Listener,
        under_way: UnderWay,
        telling: Telling,
        cutting: Cutting,
        regrouping: Regrouping,
    ) -> None:
        self.tally = Tally()
        """All steps of this run."""
        self._operators = operators
        self._picture = picture
        self._listener = listener
        self._under_way = under_way
        self._telling = telling
        self._cutting = cutting
        self._regrouping = regrouping
        self._trouble: StoreError | None = None
        """Why the store could not be written, until somebody was told."""

    # -- steps -----------------------------------------------------------------------------

    def commit_finished(self) -> None:
        """Commits the steps that have been executed, as far as those before them are."""
        under_way = self._under_way
        while under_way.finished:
            step = under_way.finished.popleft()
            identity = step.unit.identity
            if step in under_way.steps.get(identity, ()):
                self._commit_ready(identity)
            else:  # its operator was dropped or failed meanwhile
                step.throw_away()
                if step in under_way.orphans:
                    under_way.orphans.remove(step)
                    there = self._operators.running.keys()
                    self._telling.changed |= step.unit.identities & there

    def _commit_ready(self, identity: OperatorId) -> None:
        """Commits the finished steps of a unit, in order of time."""
        steps = self._under_way.steps.get(identity, deque())
        while steps and steps[0].is_finished:
            step = steps[0]
            if step.lost is not None and step.repetitions < MOST_REPETITIONS:
                if self._under_way.repeat(step):
                    self._listener.lost_spark()
                return
            self._telling.changed |= step.unit.identities
            steps.popleft()
            if not self._committed(step):
                return
        if not steps:
            self._under_way.steps.pop(identity, None)

    def _committed(self, step: UnitStep) -> bool:
        """Publishes what the members of a unit have done; whether all of them have done it."""
        error = step.error
        trouble = error if isinstance(error, StoreError) else self._cannot_publish(step)
        if step.is_outdated or trouble is not None:
            step.unclaim()
            step.throw_away()
        if trouble is not None:
            self._trouble = self._operators.around.store.moves_on(trouble)
            self._under_way.forget(step.unit)  # what came after it must not be published before it
            return False
        if step.is_outdated:
            return True
        step.give_up_unless_whole()
        step.is_over = True
        for each in step.steps:
            if each.outcome is not None:
                self._commit(each)
        failed = [each for each in step.steps if each.error is not None]
        if not failed:
            return True
        self._under_way.forget(step.unit)
        for each in step.steps:
            if each.outcome is None:
                each.running.unclaim(each.after)
                each.unpin()
        for each in failed:
            self._fail(each)
        return False

    def _cannot_publish(self, step: UnitStep) -> StoreError | None:
        """Why what was put out cannot be read, where that is needed to publish it."""
        try:
            for each in step.steps:
                if each.outcome is not None and each.error is None:
                    self._listener.to_commit(each.running.identity, each)
        except StoreError as error:
            return error
        return None

    def raise_trouble(self) -> None:
        """Says why a step could not be written, or read: it is there to be done again, as its
        queries have done nothing wrong."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble

    def _commit(self, step: OperatorStep) -> None:
        running, outcome = step.running, step.outcome
        identity = running.identity
        if outcome is None:
            raise StateError("internal: a step without an outcome is committed")
        if step.is_idle:
            self._skip(running, step.reached)
            running.commit(step)
            return
        page = step.published
        self._listener.committed(identity, step)
        self._tell_readers(running, page, step.reached)
        self._operators.queues[identity].passed(outcome.rows - (0 if page is None else page.rows))
        self._publish(running, step.reached, page, lambda: running.commit(step), compacts=True)
        if outcome.output is not None and outcome.output is not page:
            outcome.output.free()
        measured = self._operators.statistics[identity]
        measured.record(step.rows, outcome)
        self._regrouping.notice_if_quick(identity, outcome)
        self.tally.record(step.rows, measured.input_bytes, outcome)
        self._telling.measured()

    def _tell_readers(self, running: RunningOperator, page: Page | None, until: int) -> None:
        """Gives what a query has put out to whoever reads its results."""
        if isinstance(running.operator, OutputOperator):
            self._listener.put_out(running.operator.query, page, until)

    def _publish(
        self,
        running: RunningOperator,
        until: int,
        page: Page | None,
        move_on: Callable[[], None],
        compacts: bool,
    ) -> None:
        """Has others see that an operator came to a time, and the page that it has put out.

        ``move_on`` has the operator itself be there, with its state. ``compacts``: fewer pages are
        to hold what it has read; after a restart the log says where they were.
        """
        operators, identity = self._operators, running.identity
        if page is not None and not isinstance(running.operator, OutputOperator):
            operators.queues[identity].add(page)
        move_on()
        operators.queues[identity].advance(until)
        read = dict.fromkeys((*running.inputs, *(queue.name for queue, _ in running.past)))
        for queue in (operators.queues[name] for name in read):
            queue.free()
            if compacts:
                self._compact(queue)
        operators.count([*read, identity])
        self._cutting.let_go(identity)
        self._telling.changed |= {identity, *operators.graph.readers(identity)}

    def replay(self, identity: OperatorId, until: int, page: Page | None, state: Any) -> None:
        """Publishes a step of an earlier run again, or a time in which nothing happened."""
        running = self._operators.running[identity]

        def restore() -> None:
            if state is not None and running.state is not None:
                running.state.restore(state)
            running.skip(until)

        self._publish(running, until, page, restore, compacts=False)

    def _fail(self, step: OperatorStep) -> None:
        """Says that an operator could not do its step, and why."""
        identity, running = step.running.identity, self._operators.running
        if identity in running:  # else it has gone with one that failed before it
            called = functions_in(step.running.operator)
            error = named_if_ended(step.error, called)
            said = in_words(error, lambda: self._picture.place_of(identity))
            self._listener.failed(identity, step, said)
        if identity in running:  # it goes on for others of its group
            step.running.forgive(last_keys_in(step.error))
            self._telling.changed.add(identity)
            self._under_way.wake()

    # -- queues ----------------------------------------------------------------------------

    def _compact(self, queue: Queue) -> None:
        """Has fewer pages hold what a queue keeps, once what nobody needs is gone; where the store
        fails that can wait."""
        compaction = None
        try:
            compaction = queue.compaction()
            if compaction is not None:
                self._listener.compacted(queue.name, compaction)
        except StoreError:
            if compaction is not None and compaction.page is not None:
                compaction.page.free()
            return
        if compaction is not None:
            queue.compact(compaction)
            queue.free()

    # -- quiet inputs ----------------------------------------------------------------------

    def pass_heartbeats(self) -> None:
        """Moves operators that have nothing to do, so that no reader waits for a quiet input.

        Only what changed is looked at, inputs before their readers: those have higher numbers.
        """
        units = self._operators.units
        waiting = list({units.of[each].identity.number for each in self._telling.changed})
        heapq.heapify(waiting)
        while waiting:
            unit = units.of[OperatorId.numbered(heapq.heappop(waiting))]
            until, is_at_work = unit.horizon, self._under_way.is_at_work
            if until > unit.cursor and not is_at_work(unit) and not unit.has_work(until):
                for member in unit.members:
                    if member.cursor < until:
                        self._skip(member, until)
                for reader in self._operators.units_reading(unit):
                    heapq.heappush(waiting, reader.identity.number)

    def _skip(self, running: RunningOperator, until: int) -> None:
        self._listener.skipped(running.identity, until)
        self._tell_readers(running, None, until)
        self._publish(running, until, None, lambda: running.skip(until), compacts=True)
