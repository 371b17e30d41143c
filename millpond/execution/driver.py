"""Steps in the driver: rows and states come here, and no job is begun."""

import itertools
from collections.abc import Mapping, Sequence

import pyarrow as pa

from millpond.execution.executor import FarExecutor
from millpond.execution.jobs import Parts, evaluated
from millpond.execution.operators.running import OperatorStep
from millpond.execution.pair_output import PairOutput
from millpond.execution.steps import Outcome, Runner
from millpond.execution.surroundings import Limits
from millpond.identities import OperatorId

MOST_OFFENDERS = 5
"""So many of the rows that make a step fail are shown."""


class DriverExecutor:
    """Executes steps in the thread that asks.

    Expressions are evaluated here or, where Spark alone gives the right bits, there.
    """

    def __init__(self, limits: Limits, far: FarExecutor) -> None:
        self._limits = limits
        self._far = far

    def execute(self, step: OperatorStep) -> Outcome:
        """Runs an operator on its rows."""
        return step.running.run_here(step, self)

    def together(
        self,
        first: OperatorStep,
        others: Sequence[OperatorStep],
        done: Mapping[OperatorId, OperatorStep],
    ) -> None:
        """None: a step costs no more alone than with others."""

    def gathered(self, running: Runner, parts: Parts, schema: pa.Schema) -> pa.Table:
        """The rows of some parts, with their expressions evaluated."""
        if not self._limits.asks_spark:
            rows = evaluated(parts, schema)
            if rows is not None:
                return rows
        return self._far.gathered(running, parts, schema)

    def put_out(
        self, running: Runner, output: PairOutput, pairs: pa.Table, schema: pa.Schema
    ) -> pa.Table:
        """What becomes of the pairs of a join."""
        if output.is_lowered and not self._limits.asks_spark:
            return output.applied(pairs).cast(schema)
        return self._far.put_out(running, output, pairs, schema)

    def offenders(self, step: OperatorStep) -> tuple[str, ...]:
        """Some of the rows on which an expression of a step fails.

        They are here, and Spark may not have been started.
        """
        if not self._limits.asks_spark:
            here = [reading.offending_here(MOST_OFFENDERS) for reading in step.readings]
            known = [rows for rows in here if rows is not None]
            if len(known) == len(here):
                return tuple(itertools.chain(*known))[:MOST_OFFENDERS]
        return self._far.offenders(step)
