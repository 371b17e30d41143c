"""Selections and projections that stand alone: what starts, as it is put out."""

import pyarrow as pa

from millpond.execution.fragments import STARTED
from millpond.execution.jobs import Job, Rows
from millpond.execution.operators.running import RunningOperator, arrow_types
from millpond.execution.operators.streams import stream_schema
from millpond.execution.steps import Outcome, Step
from millpond.execution.surroundings import Surroundings
from millpond.execution.work import WriteRows
from millpond.identities import OperatorId
from millpond.kernels.aggregate import element_schema
from millpond.planning.branches import ELEMENT, Outputs
from millpond.planning.physical import LinearOperator


class RunningLinear(RunningOperator):
    """A selection or a projection; it keeps nothing."""

    def __init__(
        self, identity: OperatorId, operator: LinearOperator, around: Surroundings, cursor: int
    ) -> None:
        order = "_seq" if operator.is_base else "_w"
        self._names = ("_ts", order) if operator.is_stream else ELEMENT
        super().__init__(identity, operator, around, cursor)

    @property
    def output_schema(self) -> pa.Schema:
        """That of its input: tuples of a stream, elements of a computed one, or of a relation."""
        types = arrow_types(self.operator.schema)
        if not self.operator.is_stream:
            return element_schema(types)
        return stream_schema(types).set(1, pa.field(self._names[1], pa.int64()))

    def outputs(self, index: int) -> Outputs:
        """The row."""
        return Outputs.all_of(self.operator.inputs[index], self._names)

    def run_here(self, step: Step, rows: Rows) -> Outcome:
        """What starts, in the driver."""
        parts = [(step.readings[0], (STARTED,))]
        return self.in_driver(rows.gathered(self, parts, self.output_schema))

    def job(self, step: Step) -> Job:
        """What starts, on the executors."""
        work = WriteRows(self.destination_of(step), self.output_schema)
        parts = [(step.readings[0], (STARTED,))]
        return Job(parts, work, self.job_keys, self.buckets, self.written)
