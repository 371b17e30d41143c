"""A branch of a fragment as Spark columns: its select list and its condition.

``millpond/kernels/branches.py`` does the same on Arrow tables.
"""

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from millpond.cql.algebra import DRAWS, Sample
from millpond.kernels.branches import MARKS
from millpond.planning.branches import Branch, Outputs
from millpond.planning.predicates import conjuncts, substitute
from millpond.schema import FOREVER
from millpond.spark.expressions import lower
from millpond.spark.window_columns import enter_column, leave_column


def _all_of(parts: Sequence[SparkColumn]) -> SparkColumn | None:
    """The conjunction, if there is any part."""
    condition = None
    for part in parts:
        condition = part if condition is None else condition & part
    return condition


class BranchColumns:
    """What one operator wants of a branch, over the columns of the branch's queue."""

    def __init__(self, branch: Branch, outputs: Outputs, seed: int) -> None:
        self._branch = branch
        self._window = branch.window
        self._outputs = outputs
        self._seed = seed

    def of(self, ended: bool) -> tuple[list[SparkColumn], SparkColumn | None]:
        """The select list and the condition; elements that ended come as their own minus."""
        branch, outputs = self._branch, self._outputs
        inputs = [*(F.col(f"c{i}") for i in range(len(branch.leaf.schema))), *map(F.col, MARKS)]
        meta = self._stream_columns() if len(outputs.names) == 2 else self._element(ended)
        columns = [
            *(column.alias(name) for column, name in zip(meta, outputs.names, strict=True)),
            *(
                lower(substitute(e, branch.expressions), inputs).alias(name)
                for e, name in outputs.expressions
            ),
        ]
        return columns, self._condition(inputs)

    def _stream_columns(self) -> list[SparkColumn]:
        """Time and order: of arrival for base streams, the weight for computed ones."""
        return [F.col("_ts"), F.col("_seq") if self._branch.leaf.is_base else self._weight()]

    def _element(self, ended: bool) -> list[SparkColumn]:
        start, end = F.col("_ts"), F.col("_te")
        if self._window is not None:
            start, end = enter_column(self._window), leave_column(self._window)
        weight = self._weight() * F.lit(self._branch.sign)
        return [end, F.lit(FOREVER), -weight] if ended else [start, end, weight]

    def _weight(self) -> SparkColumn:
        leaf, sample = self._branch.leaf, self._branch.sample
        if leaf.of_stream and leaf.is_base:
            return F.lit(1).cast("long")
        if sample is None:
            return F.col("_w")
        data = [F.col(f"c{i}") for i in range(len(leaf.schema))]
        copies = F.filter(
            F.sequence(F.lit(1).cast("long"), F.col("_w")),
            lambda n: self._is_sampled(sample, F.col("_ts"), *data, n),
        )
        return F.size(copies).cast("long")

    def _condition(self, inputs: Sequence[SparkColumn]) -> SparkColumn | None:
        """The branch's predicate, its sampling, and for slides that the tuple is ever inside."""
        selected = _all_of([lower(part, inputs) for part in conjuncts(self._branch.predicate)])
        drawn = self._drawn(inputs)
        if drawn is not None and selected is not None:  # AND might ask it of other rows too
            selected = F.when(drawn, selected).otherwise(F.lit(False))
        parts = [drawn if selected is None else selected]
        if self._window is not None and self._window.is_partial:
            parts.append(enter_column(self._window) < leave_column(self._window))
        return _all_of([part for part in parts if part is not None])

    def _drawn(self, inputs: Sequence[SparkColumn]) -> SparkColumn | None:
        """Which rows the sample keeps of those that it draws from."""
        sample = self._branch.sample
        if sample is None:
            return None
        parts = [lower(part, inputs) for part in conjuncts(self._branch.below)]
        is_base = self._branch.leaf.is_base
        return _all_of(
            [*parts, self._is_sampled(sample, F.col("_seq")) if is_base else self._weight() > 0]
        )

    def _is_sampled(self, sample: Sample, *identity: SparkColumn) -> SparkColumn:
        """By a hash of the tuple's identity, so that no cut and no schedule matters."""
        marker = F.xxhash64(F.lit(self._seed), F.lit(self._branch.leaf.queue), *identity)
        return F.pmod(marker, F.lit(DRAWS)) < sample.limit
