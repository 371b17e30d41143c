"""Rows as long as the time is before what they say."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.execution.fragments import STARTED
from millpond.execution.jobs import Job, Rows
from millpond.execution.operators.running import RunningOperator
from millpond.execution.steps import Outcome, Step
from millpond.execution.surroundings import Surroundings
from millpond.execution.work import WriteRows
from millpond.identities import OperatorId
from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.planning.branches import Outputs
from millpond.planning.physical import TimeFilterOperator
from millpond.schema import BEGINNING, FOREVER

UNTIL = "_until"


@dataclass(frozen=True)
class Ended:
    """What starts, with ends that are no later than the last column says; without those that have
    none, and those that end before they begin."""

    units_a_tick: int
    is_inclusive: bool

    def __call__(self, rows: pa.Table) -> pa.Table:
        kept = rows.filter(rows[UNTIL].is_valid())
        over = self.over(integers(kept[UNTIL]))
        ends = np.minimum(integers(kept["_te"]), over)
        position = kept.schema.get_field_index("_te")
        ended = kept.set_column(position, kept.schema.field("_te"), pa.array(ends))
        lasting = pa.array(integers(kept["_ts"]) < ends)
        return ended.drop_columns([UNTIL]).filter(lasting)

    def over(self, times: Ints) -> Ints:
        """The first instants at which the time is not before these any more."""
        ticks, rest = np.divmod(times, self.units_a_tick)
        later = self.is_inclusive | (rest != 0)
        over: Ints = np.clip(np.minimum(ticks, FOREVER) + later, BEGINNING + 1, FOREVER)
        return over


class RunningTimeFilter(RunningOperator):
    """A comparison with the time; it keeps nothing: its output has the ends."""

    def __init__(
        self, identity: OperatorId, operator: TimeFilterOperator, around: Surroundings, cursor: int
    ) -> None:
        self._until = operator.until
        self._ended = Ended(operator.units_a_tick, operator.is_inclusive)
        super().__init__(identity, operator, around, cursor)

    @property
    def read_schema(self) -> pa.Schema:
        """Elements of a relation, and until when each is there."""
        return self.output_schema.append(pa.field(UNTIL, pa.int64()))

    def outputs(self, index: int) -> Outputs:
        """The row, and until when it is there."""
        row = Outputs.all_of(self.operator.inputs[index]).expressions
        return Outputs((*row, (self._until, UNTIL)))

    def run_here(self, step: Step, rows: Rows) -> Outcome:
        """What starts, in the driver."""
        parts = [(step.readings[0], (STARTED,))]
        return self.in_driver(self._ended(rows.gathered(self, parts, self.read_schema)))

    def job(self, step: Step) -> Job:
        """What starts, on the executors."""
        work = WriteRows(self.destination_of(step), self.read_schema, self._ended)
        parts = [(step.readings[0], (STARTED,))]
        return Job(parts, work, self.job_keys, self.buckets, self.written)
