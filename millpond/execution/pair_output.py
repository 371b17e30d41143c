"""What a join puts out for a pair of rows that it has found."""

from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from millpond.cql.expressions import Expression
from millpond.kernels.expressions import Condition, Program, can_lower
from millpond.planning.branches import ELEMENT


@dataclass(frozen=True)
class PairOutput:
    """What becomes of a pair: conditions it must meet, and the expressions it is put out as."""

    conditions: tuple[Expression, ...]
    expressions: tuple[Expression, ...]
    width: int
    """How many columns a pair has."""

    @property
    def is_lowered(self) -> bool:
        """Whether it has the same bits without Spark."""
        return all(map(can_lower, (*self.conditions, *self.expressions)))

    def applied(self, pairs: pa.Table) -> pa.Table:
        """The elements that the pairs become."""
        condition, program = _compiled(self)
        kept = condition.holds(pairs.columns[3:], pairs.num_rows)
        if kept is not None and not kept.all():
            pairs = pairs.filter(pa.array(kept))
        data = program.arrays(pairs.columns[3:], pairs.num_rows)
        names = [*ELEMENT, *(f"c{i}" for i in range(len(data)))]
        return pa.Table.from_arrays([*pairs.columns[:3], *data], names=names)


@lru_cache(maxsize=256)
def _compiled(output: PairOutput) -> tuple[Condition, Program]:
    return Condition(list(output.conditions)), Program(list(output.expressions))
