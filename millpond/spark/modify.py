"""DELETE and UPDATE: which rows of a relation are meant, and what they become."""

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millpond.cql.expressions import Expression
from millpond.kernels.columns import integers
from millpond.spark.expressions import lower
from millpond.spark.failures import in_plain_words
from millpond.spark.session import for_steps


def evaluate(
    session: SparkSession,
    rows: pa.Table,
    predicate: Expression | None,
    expressions: tuple[Expression, ...],
) -> pa.Table:
    """The expressions over the rows (_ts, _w, c0…) that the predicate picks, each as often."""
    columns = [F.col(f"c{i}") for i in range(rows.num_columns - 2)]
    picked = [lower(expression, columns).alias(f"v{i}") for i, expression in enumerate(expressions)]
    frame = for_steps(session).createDataFrame(rows)
    if predicate is not None:
        frame = frame.filter(lower(predicate, columns))
    with in_plain_words(lambda: "the changed rows"):
        table = frame.select(F.col("_w"), *picked).toArrow()
    repeated = [i for i, count in enumerate(integers(table["_w"]).tolist()) for _ in range(count)]
    return table.drop_columns(["_w"]).take(pa.array(repeated, pa.int64()))
