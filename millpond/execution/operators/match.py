"""Rows matched with the constants of the queries of one shape; it keeps nothing."""

import pyarrow as pa

from millpond.execution.fragments import STARTED
from millpond.execution.jobs import Job, Rows
from millpond.execution.operators.running import RunningOperator, arrow_types
from millpond.execution.operators.streams import stream_schema
from millpond.execution.steps import Outcome, Step
from millpond.execution.surroundings import Surroundings
from millpond.execution.work import WriteRows
from millpond.identities import OperatorId, StreamId
from millpond.kernels.aggregate import element_schema
from millpond.kernels.matching import Matching, MatchRows
from millpond.kernels.sampling import hash_of_stream
from millpond.planning.branches import ELEMENT, Outputs
from millpond.planning.physical import MatchOperator


class RunningMatch(RunningOperator):
    """What starts, once for each query it matches; of a stream perhaps with the query's window.

    The queries that are there when a step is executed are all that may match what it reads: one
    that is registered later sees what comes later.
    """

    keeps_columns = False

    def __init__(
        self, identity: OperatorId, operator: MatchOperator, around: Surroundings, cursor: int
    ) -> None:
        self._names: tuple[str, ...] = ELEMENT
        if operator.input.is_stream:
            self._names = ("_ts", "_seq" if operator.reads_tuples else "_w")
        match = operator.match
        draws = None
        if match.draws is not None:
            (draws,) = hash_of_stream(around.limits.seed, StreamId(match.draws).queue).tolist()
        self._matching = Matching(
            match.width,
            match.is_tagged,
            match.constants,
            match.predicate,
            match.expressions,
            match.since,
            match.window,
            draws,
        )
        self._queries = around.groups[operator.group]
        super().__init__(identity, operator, around, cursor)

    @property
    def output_schema(self) -> pa.Schema:
        """Times as in the input, then the row with the number of the query."""
        return self._schema(arrow_types(self.operator.schema), self.operator.is_stream)

    def _schema(self, types: tuple[pa.DataType, ...], is_stream: bool) -> pa.Schema:
        if not is_stream:
            return element_schema(types)
        return stream_schema(types).set(1, pa.field(self._names[1], pa.int64()))

    @property
    def _read_schema(self) -> pa.Schema:
        read = self.operator.inputs[0]
        return self._schema(arrow_types(read.schema), read.is_stream)

    def outputs(self, index: int) -> Outputs:
        """The row."""
        return Outputs.all_of(self.operator.inputs[index], self._names)

    def run_here(self, step: Step, rows: Rows) -> Outcome:
        """What starts, matched in the driver."""
        started = rows.gathered(self, [(step.readings[0], (STARTED,))], self._read_schema)
        found = self._queries.matcher(self._matching).rows(started)
        return self.in_driver(found.cast(self.output_schema))

    def job(self, step: Step) -> Job:
        """What starts, matched on the executors."""
        destination = self.destination_of(step)
        name = self._queries.file(self.around.store)
        match = MatchRows(self._matching, destination.directory, name)
        work = WriteRows(destination, self._read_schema, match)
        parts = [(step.readings[0], (STARTED,))]
        return Job(parts, work, self.job_keys, self.buckets, self.written)
