"""What a filter and a projection cost on Arrow tables, without Spark.

One JSON line a case: microseconds of the processor for one page, so that other work on the machine
does not count.

    python -m benchmarks.arrow_expressions [--quick] [--rows 1000] [--out DIR]
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from benchmarks.reporting import Report, options
from millpond.cql.algebra import Sample
from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.kernels.branches import ArrowBranch
from millpond.planning.branches import Branch, Outputs
from millpond.planning.physical import QueueRead
from millpond.planning.window_times import WindowTimes
from millpond.schema import Field, Schema, Type

FIELDS = (Field("a", Type.BIGINT), Field("b", Type.DOUBLE), Field("c", Type.STRING))
STREAM = QueueRead("stream", Schema(FIELDS), of_stream=True, is_base=True)
A, B, C = (Column(i, field.type) for i, field in enumerate(FIELDS))
SEVEN = Literal(7, Type.BIGINT)
HALF = Call(">", (A, Literal(500, Type.BIGINT)), Type.BOOLEAN)
FEW = Call("=", (C, Literal("s3", Type.STRING)), Type.BOOLEAN)
COMPUTED = (
    A,
    Call("+", (Call("*", (A, SEVEN), Type.BIGINT), SEVEN), Type.BIGINT),
    Call("/", (B, Literal(2.0, Type.DOUBLE)), Type.DOUBLE),
    Call("concat", (C, Literal("x", Type.STRING)), Type.STRING),
)
BY_ROW = (
    Call("upper", (Call("split_part", (C, C, SEVEN), Type.STRING),), Type.STRING),
    Call("cast", (Call("substring", (C, Literal(2, Type.INT)), Type.STRING),), Type.BIGINT),
)


def branch(
    predicate: Expression | None, expressions: tuple[Expression, ...], sample: Sample | None = None
) -> ArrowBranch:
    """A branch over a Range window of the stream."""
    read = Branch(STREAM, expressions, predicate, WindowTimes(100, None), sample)
    wanted = tuple((Column(i, e.type), f"c{i}") for i, e in enumerate(expressions))
    return ArrowBranch(read, Outputs(wanted), seed=7)


CASES: dict[str, Callable[[], ArrowBranch]] = {
    "window": lambda: branch(None, (A, B, C)),
    "filter": lambda: branch(HALF, (A, B, C)),
    "sample": lambda: branch(None, (A, B, C), Sample(STREAM, 10.0)),
    "project": lambda: branch(None, COMPUTED),
    "filter and project": lambda: branch(Call("and", (HALF, FEW), Type.BOOLEAN), COMPUTED),
    "text row by row": lambda: branch(None, BY_ROW),
}


def page(rows: int) -> pa.Table:
    """A page of the stream."""
    draw = np.random.default_rng(1)
    return pa.table(
        {
            "_ts": np.arange(rows),
            "_seq": np.arange(rows),
            "c0": draw.integers(0, 1000, rows),
            "c1": draw.random(rows),
            "c2": [f"s{i % 17}" for i in range(rows)],
        }
    )


def seconds_a_page(compiled: ArrowBranch, rows: pa.Table, repeats: int) -> float:
    """The least time of the processor for one page, over some rounds of so many pages."""
    found = []
    for _ in range(7):
        begun = time.process_time()
        for _ in range(repeats):
            compiled.rows(rows)
        found.append((time.process_time() - begun) / repeats)
    return min(found)


def main() -> None:
    given = options(__doc__ or "", "rows a page").parse_args()
    report = Report("arrow_expressions", given.out)
    rows = page(given.rows or 1000)
    for case, make in CASES.items():
        compiled = make()
        passed = compiled.rows(rows).num_rows
        spent = seconds_a_page(compiled, rows, 20 if given.quick else 200)
        report.value(case, spent * 1e6, "us a page", rows=rows.num_rows, passed=passed)
    report.close()


if __name__ == "__main__":
    main()
