"""The join of two relations."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from millpond.planning.branches import Outputs, branches
from millpond.planning.physical import JoinOperator
from millpond.planning.predicates import conjuncts
from millpond.spark.expressions import lower
from millpond.spark.fragments import ALIVE, STARTED, Fragment
from millpond.spark.frames import Frame, Selection, broadcast, joined, union
from millpond.spark.operators.running import RunningOperator
from millpond.spark.surroundings import Surroundings

BROADCAST_ROWS = 200_000
"""The new side of a join is broadcast up to this many rows."""


class RunningJoin(RunningOperator):
    """The inner join of two relations: new with old, old with new, new with new."""

    needs = frozenset({STARTED, ALIVE})

    def __init__(self, operator: JoinOperator, around: Surroundings, cursor: int) -> None:
        self._width = len(operator.left.schema)
        pair = [F.col(f"c{i}") for i in range(self._width + len(operator.right.schema))]
        self._on = _overlap()
        for part in conjuncts(operator.condition):
            self._on = lower(part, pair) & self._on
        (after,) = branches(operator.post)
        kept = None if after.predicate is None else lower(after.predicate, pair)
        columns = [
            F.greatest("l_ts", "r_ts").alias("_ts"),
            F.least("l_te", "r_te").alias("_te"),
            (F.col("l_w") * F.col("r_w")).alias("_w"),
            *(lower(e, pair).alias(f"c{i}") for i, e in enumerate(after.expressions)),
        ]
        self._selection = Selection(around.frames.session, columns, kept)
        super().__init__(operator, around, cursor)

    def outputs(self, index: int) -> Outputs:
        """All columns of both sides, numbered through."""
        side, first = ("l", 0) if index == 0 else ("r", self._width)
        names = tuple(side + name for name in ("_ts", "_te", "_w"))
        return Outputs.all_of(self.operator.inputs[index], names, first)

    def run(self, after: int, until: int) -> pa.Table:
        """All pairs of which at least one began in this step."""
        left, right = self.fragments
        new_left = self._new(left, after, until)
        new_right = self._new(right, after, until)
        old_right = right.frame(ALIVE, after, until) if new_left is not None else None
        old_left = left.frame(ALIVE, after, until) if new_right is not None else None
        pairs = union(
            self._join(new_left, union(old_right, new_right)), self._join(old_left, new_right)
        )
        return self.plans.collect(pairs, self.output_schema)

    def _new(self, fragment: Fragment, after: int, until: int) -> Frame | None:
        frame = fragment.frame(STARTED, after, until)
        if frame is not None and fragment.waiting(after, until) <= BROADCAST_ROWS:
            return broadcast(frame)
        return frame

    def _join(self, left: Frame | None, right: Frame | None) -> Frame | None:
        if left is None or right is None:
            return None
        return self._selection.of(joined(left, right, self._on))


def _overlap() -> Column:
    return F.greatest("l_ts", "r_ts") < F.least("l_te", "r_te")
