"""DELETE and UPDATE: which rows of a relation are meant, and what they become."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.cql.expressions import Expression
from millpond.errors import InputError
from millpond.kernels.columns import integers
from millpond.kernels.expressions import lower


def evaluate(
    rows: pa.Table, predicate: Expression | None, expressions: tuple[Expression, ...]
) -> pa.Table:
    """The expressions over the rows (_ts, _w, c0…) that the predicate picks, each as often."""
    try:
        if predicate is not None:
            picked = lower(predicate)(rows.columns[2:], rows.num_rows)
            rows = rows.filter(pc.fill_null(picked, False))
        values = [lower(each)(rows.columns[2:], rows.num_rows) for each in expressions]
    except InputError as error:
        raise InputError(f"the changed rows: {error}") from error
    repeated = np.repeat(np.arange(rows.num_rows), integers(rows["_w"]))
    names = [f"v{i}" for i in range(len(values))]
    return pa.Table.from_arrays(values, names=names).take(pa.array(repeated))
