"""DELETE and UPDATE of a relation: rows go, and others come, decided on the present content."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from millpond.connectors import arrow_schema
from millpond.cql.expressions import Column, Expression
from millpond.cql.statements import Delete, Update
from millpond.kernels import modify
from millpond.kernels.expressions import can_lower
from millpond.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def changed_rows(
    action: Delete | Update, schema: Schema, rows: pa.Table, spark: Callable[[], SparkSession]
) -> tuple[pa.Table, pa.Table | None]:
    """The rows that a statement removes, and for UPDATE those it puts in their place.

    Spark is asked for only where an expression needs it.
    """
    everything = tuple(Column(i, f.type, f.name) for i, f in enumerate(schema.fields))
    types = arrow_schema(schema)

    def evaluated(expressions: tuple[Expression, ...]) -> pa.Table:
        predicate = action.predicate
        parts = expressions if predicate is None else (*expressions, predicate)
        if all(map(can_lower, parts)):
            table = modify.evaluate(rows, predicate, expressions)
        else:
            from millpond.spark.modify import evaluate

            table = evaluate(spark(), rows, predicate, expressions)
        return table.rename_columns(types.names).cast(types)

    old = evaluated(everything)
    return old, evaluated(action.expressions) if isinstance(action, Update) else None
