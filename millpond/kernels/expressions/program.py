"""Expressions compiled into one list of steps; what occurs twice is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.cql.expressions import Call, Column, Expression, Literal, walk
from millpond.errors import MillpondError
from millpond.kernels.expressions.faults import raise_first
from millpond.kernels.expressions.operand import Value, of_column, of_literal, to_array
from millpond.kernels.expressions.table import Function, function_of

Columns = Sequence[pa.ChunkedArray | pa.Array]


@dataclass(frozen=True, slots=True)
class Step:
    """One call: the function, and the places of its arguments."""

    function: Function
    arguments: tuple[int, ...]


class Program:
    """Some expressions over the same columns."""

    def __init__(self, expressions: Sequence[Expression]) -> None:
        self._places: dict[Hashable, int] = {}
        self._steps: list[Step | Value | Column] = []
        self._results = [
            (expression, None if isinstance(expression, Column) else self._place(expression))
            for expression in expressions
        ]

    def __reduce__(self) -> tuple[type[Program], tuple[list[Expression]]]:
        """Sent to another process, a program is compiled again there."""
        return Program, ([expression for expression, _ in self._results],)

    def _place(self, expression: Expression) -> int:
        """Where the expression's value will be."""
        if isinstance(expression, Column):
            return self._once(expression, lambda: expression)
        if isinstance(expression, Literal):  # by its text, for -0.0 equals 0.0
            return self._once(
                (expression.type, repr(expression.value)), lambda: of_literal(expression)
            )
        if not isinstance(expression, Call):
            raise MillpondError(f"internal: {expression} was not unnested")
        places = tuple(self._place(argument) for argument in expression.arguments)
        key = (expression.function, expression.type, places)
        return self._once(key, lambda: _step(expression, places))

    def _once(self, key: Hashable, make: Callable[[], Step | Value | Column]) -> int:
        if key not in self._places:
            self._places[key] = len(self._steps)
            self._steps.append(make())
        return self._places[key]

    def run(self, columns: Columns) -> list[Value]:
        """The values of the expressions, with their faults."""
        values = self._computed(columns)
        return [
            of_column(columns[e.position], e.type) if isinstance(e, Column) else values[place or 0]
            for e, place in self._results
        ]

    def arrays(self, columns: Columns, rows: int) -> list[pa.Array | pa.ChunkedArray]:
        """The values of the expressions as Arrow columns; raises the first fault."""
        if rows == 0:  # a constant has one row, and so has no place among none
            return [pa.array([], ARROW_TYPES[e.type]) for e, _ in self._results]
        values = self._computed(columns)
        for _, place in self._results:
            raise_first(None if place is None else values[place].faults)
        return [
            columns[e.position]
            if isinstance(e, Column)
            else to_array(values[place or 0], e.type, rows)
            for e, place in self._results
        ]

    def _computed(self, columns: Columns) -> list[Value]:
        values: list[Value] = []
        with np.errstate(all="ignore"):
            for step in self._steps:
                if isinstance(step, Step):
                    values.append(step.function(*[values[place] for place in step.arguments]))
                elif isinstance(step, Column):
                    values.append(of_column(columns[step.position], step.type))
                else:
                    values.append(step)
        return values


def _step(call: Call, places: tuple[int, ...]) -> Step:
    function = function_of(call)
    if function is None:
        raise MillpondError(f"internal: {call} runs on Spark only")
    return Step(function, places)


def lower(expression: Expression) -> Callable[[Columns, int], pa.Array | pa.ChunkedArray]:
    """The expression as a function of input columns and the number of their rows."""
    program = Program([expression])
    return lambda columns, rows: program.arrays(columns, rows)[0]


def can_lower(expression: Expression) -> bool:
    """Whether every part of the expression has the same bits here as on Spark."""
    return all(
        isinstance(part, (Column, Literal))
        or (isinstance(part, Call) and function_of(part) is not None)
        for part in walk(expression)
    )
