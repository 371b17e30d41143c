"""The join of two relations."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from millpond.planning.branches import Outputs, branches
from millpond.planning.physical import JoinOperator
from millpond.planning.predicates import conjuncts
from millpond.spark.expressions import lower
from millpond.spark.fragments import ALIVE, STARTED, Reading
from millpond.spark.frames import Frame, Selection, broadcast, joined, union
from millpond.spark.operators.running import RunningOperator
from millpond.spark.steps import EXECUTORS, Outcome, Step
from millpond.spark.surroundings import Surroundings
from millpond.spark.workers import Place, WriteRows, lines_of, page_of

BROADCAST_ROWS = 200_000
"""The new side of a join is broadcast up to this many rows."""


class RunningJoin(RunningOperator):
    """The inner join of two relations: new with old, old with new, new with new."""

    needs = frozenset({STARTED, ALIVE})

    def __init__(
        self, identity: str, operator: JoinOperator, around: Surroundings, cursor: int
    ) -> None:
        self._width = len(operator.left.schema)
        self._condition = operator.condition
        (self._post,) = branches(operator.post)
        self._pair_columns = self._width + len(operator.right.schema)
        self._selection = Selection(self._columns)
        super().__init__(identity, operator, around, cursor)

    def _pair(self) -> list[Column]:
        return [F.col(f"c{i}") for i in range(self._pair_columns)]

    def _on(self) -> Column:
        pair, on = self._pair(), F.greatest("l_ts", "r_ts") < F.least("l_te", "r_te")
        for part in conjuncts(self._condition):
            on = lower(part, pair) & on
        return on

    def _columns(self) -> tuple[list[Column], Column | None]:
        pair, post = self._pair(), self._post
        columns = [
            F.greatest("l_ts", "r_ts").alias("_ts"),
            F.least("l_te", "r_te").alias("_te"),
            (F.col("l_w") * F.col("r_w")).alias("_w"),
            *(lower(e, pair).alias(f"c{i}") for i, e in enumerate(post.expressions)),
        ]
        return columns, None if post.predicate is None else lower(post.predicate, pair)

    def outputs(self, index: int) -> Outputs:
        """All columns of both sides, numbered through."""
        side, first = ("l", 0) if index == 0 else ("r", self._width)
        names = tuple(side + name for name in ("_ts", "_te", "_w"))
        return Outputs.all_of(self.operator.inputs[index], names, first)

    def run(self, step: Step) -> Outcome:
        """All pairs of which at least one began in this step."""
        left, right = step.readings
        new_left, new_right = _new(left), _new(right)
        old_right = right.frame(ALIVE) if new_left is not None else None
        old_left = left.frame(ALIVE) if new_right is not None else None
        pairs = union(
            self._join(new_left, union(old_right, new_right)), self._join(old_left, new_right)
        )
        if self.is_elsewhere(step):
            return self._on_executors(pairs)
        return self.in_driver(self.plans.collect(pairs, self.output_schema))

    def _on_executors(self, pairs: Frame | None) -> Outcome:
        if pairs is None:
            return Outcome(None, EXECUTORS)
        store = self.around.frames.store
        work = WriteRows(Place.of(store), self.output_schema)
        lines = self.plans.run(pairs, lambda rows: lines_of(rows, work))
        return Outcome(page_of(store, lines), EXECUTORS)

    def _join(self, left: Frame | None, right: Frame | None) -> Frame | None:
        if left is None or right is None:
            return None
        return self._selection.of(joined(left, right, self._on))


def _new(reading: Reading) -> Frame | None:
    frame = reading.frame(STARTED)
    if frame is not None and reading.rows(STARTED) <= BROADCAST_ROWS:
        return broadcast(frame)
    return frame
