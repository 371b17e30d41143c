"""Checked expressions: typed, resolved, with columns named by position in the input schema.

One ``Call`` node stands for every operator and scalar function; ``cql/functions.py`` lists them.
Positions make equal subplans equal objects, whatever aliases the user chose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Union

from millpond.cql.node import Node
from millpond.functions.user_function import UserFunction
from millpond.schema import Type

Value = Union[
    None, bool, int, float, str, bytes, date, datetime, Decimal, tuple["Value", ...], dict[Any, Any]
]
"""A tuple is an ARRAY, a dict a STRUCT or MAP; none stands in a ``Literal``."""


@dataclass(frozen=True)
class Literal:
    """A constant. TIMESTAMP values are naive UTC datetimes."""

    value: Value
    type: Type

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if isinstance(self.value, bytes):
            return f"X'{self.value.hex().upper()}'"
        return format(self.value, "f") if isinstance(self.value, Decimal) else str(self.value)


@dataclass(frozen=True)
class Column:
    """The column at ``position`` of the node's input (of left ++ right for a join)."""

    position: int
    type: Type
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.name or f"#{self.position}"


@dataclass(frozen=True)
class OuterColumn:
    """Inside a subquery: the column at ``position`` of the row of a query around it.

    ``level``: how many queries further out that one is; 1 is the directly enclosing one.
    """

    position: int
    type: Type
    name: str = field(default="", compare=False)
    level: int = 1

    def __str__(self) -> str:
        return f"{'outer(' * self.level}{self.name or self.position}{')' * self.level}"


@dataclass(frozen=True)
class Call:
    """A scalar operator or function applied to arguments.

    ``case`` takes (condition, value)* and an optional last value; ``in`` takes the value, then
    the list; ``cast`` casts its one argument to ``type``.
    """

    function: str
    arguments: tuple[Expression, ...]
    type: Type

    def __str__(self) -> str:
        if self.function == "array":
            return f"ARRAY[{', '.join(map(str, self.arguments))}]"
        if self.function == "map":
            return f"MAP[{', '.join(map(str, self.arguments))}]"
        if self.function == "struct":
            pairs = zip(self.arguments, self.type.fields, strict=True)
            return f"STRUCT({', '.join(f'{part} AS {field.name}' for part, field in pairs)})"
        if self.function == "field" and isinstance(self.arguments[1], Literal):
            return f"{self.arguments[0]}.{self.arguments[1].value!s}"
        if self.function == "[]":
            return f"{self.arguments[0]}[{self.arguments[1]}]"
        if len(self.arguments) == 2 and not self.function[0].isalpha():
            return f"({self.arguments[0]} {self.function} {self.arguments[1]})"
        if self.function in ("and", "or", "like") and len(self.arguments) == 2:
            return f"({self.arguments[0]} {self.function.upper()} {self.arguments[1]})"
        if self.function == "cast":
            return f"cast({self.arguments[0]} AS {self.type})"
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class UserCall(Call):
    """A call of a function that the user has registered; NULLs reach it."""

    definition: UserFunction


@dataclass(frozen=True)
class Exists:
    """EXISTS (subquery); negation is ``not`` around it."""

    subquery: Node
    type: Type = Type.BOOLEAN

    def __str__(self) -> str:
        return f"exists({self.subquery.label()})"


@dataclass(frozen=True)
class InSubquery:
    """value IN (subquery of one column), with SQL's three truth values."""

    value: Expression
    subquery: Node
    type: Type = Type.BOOLEAN

    def __str__(self) -> str:
        return f"({self.value} IN {self.subquery.label()})"


@dataclass(frozen=True)
class Quantified:
    """value comparison ALL|ANY (subquery of one column)."""

    value: Expression
    comparison: str
    quantifier: str
    subquery: Node
    type: Type = Type.BOOLEAN

    def __str__(self) -> str:
        return f"({self.value} {self.comparison} {self.quantifier} {self.subquery.label()})"


@dataclass(frozen=True)
class ScalarSubquery:
    """A subquery used as a value: a global aggregation, hence exactly one row and one column."""

    subquery: Node
    type: Type

    def __str__(self) -> str:
        return f"scalar({self.subquery.label()})"


Expression = Union[
    Literal, Column, OuterColumn, Call, Exists, InSubquery, Quantified, ScalarSubquery
]


@dataclass(frozen=True)
class SortKey:
    """A column by which rows are in order."""

    column: Column
    is_descending: bool
    nulls_first: bool

    def __str__(self) -> str:
        descending = " DESC" if self.is_descending else ""
        is_usual = self.nulls_first != self.is_descending
        return f"{self.column}{descending}" + ("" if is_usual else _NULLS[self.nulls_first])


_NULLS = {True: " NULLS FIRST", False: " NULLS LAST"}


@dataclass(frozen=True)
class Frame:
    """Which rows a function OVER looks at, seen from each: those from ``start`` to ``end``.

    ``unit`` says whether they count rows or are differences of the sort key (``range``). Before a
    row they are negative; None is the end of its partition.
    """

    unit: str
    start: int | None
    end: int | None

    def __str__(self) -> str:
        bounds = f"{_bound(self.start, 'PRECEDING')} AND {_bound(self.end, 'FOLLOWING')}"
        return f"{self.unit.upper()} BETWEEN {bounds}"


def _bound(offset: int | None, unbounded: str) -> str:
    if offset is None:
        return f"UNBOUNDED {unbounded}"
    side = "PRECEDING" if offset < 0 else "FOLLOWING"
    return f"{abs(offset)} {side}" if offset else "CURRENT ROW"


JOINING = ("string_agg", "array_agg")
"""Aggregates that tell all rows, one behind the other."""


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate function over a group.

    ``function`` is the name of one of ``cql/aggregates.py``, or of one of the user's, which is the
    ``definition`` then. ``argument`` is None for count(*); a row in which it is NULL does not
    count. ``parameter`` is percentile's fraction or what stands between the texts of string_agg.
    """

    function: str
    argument: Expression | None
    type: Type
    distinct: bool = False
    parameter: float | str | None = None
    offset: int | None = field(default=None, compare=False)
    """Where it stands in the statement."""
    more: tuple[Expression, ...] = ()
    """What else it reads of a row: the value of max_by and min_by, whose argument is what they go
    by, or other arguments of the user's; then when the row came, where that is known."""
    definition: UserFunction | None = None

    @property
    def arguments(self) -> tuple[Expression, ...]:
        """All that it reads of a row."""
        return () if self.argument is None else (self.argument, *self.more)

    @property
    def reads_rows(self) -> bool:
        """Whether it goes by rows in order, and not by values alone."""
        is_own = self.definition is not None
        return is_own or self.function in ("max_by", "min_by", "first", "last", *JOINING)

    def __str__(self) -> str:
        inner = "*" if self.argument is None else ", ".join(map(str, self._said))
        extra = "" if self.parameter is None else f", {self.parameter!r}"
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{inner}{extra})"

    @property
    def _said(self) -> tuple[Expression, ...]:
        """The arguments as they are written in a call."""
        if self.function in ("max_by", "min_by") and self.definition is None:
            return (self.arguments[1], self.arguments[0])
        return self.arguments[: 1 if self.definition is None else len(self.definition.parameters)]


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct operands, not entering subqueries."""
    if isinstance(expression, Call):
        return expression.arguments
    if isinstance(expression, (InSubquery, Quantified)):
        return (expression.value,)
    return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all below it, not entering subqueries."""
    yield expression
    for child in children(expression):
        yield from walk(child)


def with_children(expression: Expression, new: tuple[Expression, ...]) -> Expression:
    """The same expression over other operands."""
    if isinstance(expression, Call):
        return replace(expression, arguments=new)
    if isinstance(expression, (InSubquery, Quantified)):
        return replace(expression, value=new[0])
    return expression
