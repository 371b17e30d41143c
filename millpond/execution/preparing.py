"""Prepares steps: how far one goes, and whether a unit may begin one."""

from millpond.execution.batches import batch_rows, growing_rows, sliced_rows
from millpond.execution.cutting import Cutting
from millpond.execution.operators.running import RunningOperator
from millpond.execution.picture import Picture
from millpond.execution.running_operators import RunningOperators
from millpond.execution.under_way import UnderWay
from millpond.execution.unit_steps import UnitStep
from millpond.execution.units import Unit
from millpond.identities import OperatorId
from millpond.planning.graph import operators_in
from millpond.scheduling.decisions import RunOperator

WORK_BYTES = 96
"""What a step has in memory beside each row it reads: its hash, its places in several orders."""

LEAST_STEP_ROWS = 1_000
"""A step may read so many rows, however large they are."""


class Preparing:
    """Claims what a step is to do, as a strategy has decided."""

    def __init__(
        self, operators: RunningOperators, picture: Picture, under_way: UnderWay, cutting: Cutting
    ) -> None:
        self._operators = operators
        self._picture = picture
        self._under_way = under_way
        self._cutting = cutting

    def is_held(self, unit: Unit) -> bool:
        """Whether a unit is to begin nothing new for now."""
        is_to_change = self._operators.units.is_held(unit) or self._cutting.holds(unit)
        return is_to_change or self._under_way.is_orphaned(unit)

    def unit_for(self, decision: RunOperator) -> Unit | None:
        """The unit that is meant; None if it was dropped, or joined with others, since then."""
        name = OperatorId.numbered(decision.operator)
        unit = self._operators.units.of.get(name)
        return unit if unit is not None and unit.identity == name else None

    def step(self, unit: Unit, decision: RunOperator) -> UnitStep | None:
        """A step of a unit; None if it can begin none, which was otherwise when it was seen."""
        is_busy = unit.keeps_state and unit.identity in self._under_way.steps
        if is_busy or unit.horizon <= unit.claimed or self.is_held(unit):
            return None
        steps = unit.prepare(unit.limited(self._batch(decision, unit)))
        step = UnitStep(unit, steps, thread=decision.thread, weight=decision.weight)
        for member in unit.members:
            measured = self._operators.statistics[member.identity]
            measured.input_bytes = self._row_bytes(member, unit) or measured.input_bytes
        self._under_way.add(step)
        return step

    def _batch(self, decision: RunOperator, unit: Unit) -> int:
        """About how many rows a step is to read at most: for an engine a tuple is a batch."""
        most = min(self._operators.around.limits.step_rows, self._fitting(unit))
        if decision.max_tuples is not None:
            most = growing_rows(self._growth_bytes(unit), self._operators.backlog.bytes, most)
        waiting = unit.waiting(unit.horizon)
        known = unit.experience(min(waiting, most), self._rows_read)
        known = known.beside(self._picture.turns.seconds)
        slice_seconds = self._operators.around.limits.slice_seconds
        return batch_rows(decision, known, waiting, sliced_rows(slice_seconds, known, most))

    def _rows_read(self, operator: OperatorId) -> int:
        return self._operators.statistics[operator].tally.rows_in

    def _fitting(self, unit: Unit) -> int:
        """How many rows a step may read for them, and what it makes of them, to take no more than
        its share of memory."""
        size = max(member.row_bytes for member in unit.members) + WORK_BYTES
        statistics = self._operators.statistics
        size += sum(statistics[member.identity].made_bytes for member in unit.members)
        return max(LEAST_STEP_ROWS, int(self._operators.around.limits.step_bytes / size))

    def _growth_bytes(self, unit: Unit) -> float:
        """How many bytes more wait behind a unit for each row it reads, than waited before it."""
        statistics, growth = self._operators.statistics, 0.0
        for member in unit.members:
            measured = statistics[member.identity]
            readers = self._operators.graph.readers(member.identity)
            if any(each not in unit.identities for each in readers):
                growth += measured.made_bytes
            if any(queue not in unit.identities for queue in member.inputs):
                growth -= measured.input_bytes
        return growth

    def _row_bytes(self, member: RunningOperator, unit: Unit) -> float:
        """The size of the rows a member reads: what is in its queues, or others hand on to it."""
        statistics = self._operators.statistics
        inputs = operators_in(member.inputs)
        made = [statistics[each] for each in inputs if each in unit.identities]
        sizes = [each.output_bytes for each in made if each.tally.rows_out]
        return member.row_bytes or (sum(sizes) / len(sizes) if sizes else 0.0)
