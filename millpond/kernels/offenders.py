"""The rows on which expressions fail, for people to look at, found without Spark."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.cql.coercion import as_text
from millpond.cql.expressions import Column, Expression
from millpond.kernels.columns import marked
from millpond.kernels.expressions import Columns, Program, can_lower
from millpond.planning.attempts import success
from millpond.schema import Schema, Type


class Offenders:
    """Looks among rows of a schema for those on which any of some expressions fails."""

    def __init__(self, expressions: Sequence[Expression], schema: Schema) -> None:
        self._successes = Program([success(expression) for expression in expressions])
        self._texts = Program([_text(position, schema) for position in range(len(schema))])

    def among(self, columns: Columns, rows: int, most: int) -> list[str]:
        """Some of them as text, their columns separated by commas."""
        if not rows:
            return []
        fails = np.zeros(rows, dtype=np.bool_)
        for succeeds in self._successes.arrays(columns, rows):
            fails |= ~np.asarray(succeeds)
        chosen = pa.array(marked(fails)[:most])
        few = [pc.take(column, chosen) for column in columns]
        texts = [column.to_pylist() for column in self._texts.arrays(few, len(chosen))]
        lines = zip(*texts, strict=True)
        return [", ".join("NULL" if text is None else str(text) for text in line) for line in lines]


def can_find(expressions: Sequence[Expression]) -> bool:
    """Whether it can be told without Spark where the expressions fail."""
    return all(can_lower(success(expression)) for expression in expressions)


def _text(position: int, schema: Schema) -> Expression:
    """A column as text, or as it is where Spark alone writes it as CQL does."""
    column = Column(position, schema[position].type, schema[position].name)
    is_text = schema[position].type is Type.STRING
    written = as_text(column)
    return column if is_text or not can_lower(written) else written
