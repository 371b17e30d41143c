"""The nodes only rewrites make: what outer joins, negation and set operations are reduced to."""

from dataclasses import dataclass
from typing import Union

from millpond.cql.algebra import _RelationToStream
from millpond.cql.expressions import Call, Expression, Literal, Value
from millpond.cql.kept import kept
from millpond.cql.node import Node
from millpond.schema import Field, Schema, Type

__all__ = ["Arrivals", "Combine", "InList", "Match", "Moments", "Snapshots", "Totals"]

TAG = "~query"
"""The name of the last column of rows that belong to one of several queries: its number."""

ONE_OF = "one_of"
"""The function of a value and an ``InList``: whether the value is in it."""


@dataclass(frozen=True)
class InList:
    """The constants of which a value has to be one: the members of an IN list, however many."""

    values: tuple[Value, ...]
    type: Type

    def __str__(self) -> str:
        told = ", ".join(str(Literal(value, self.type)) for value in self.values)
        return told if len(self.values) == 1 else f"({told})"


Constant = Union[Literal, InList]
"""What a query has in a place of its shape."""


def in_list_of(part: Expression) -> tuple[Expression, Expression, bool] | None:
    """The value and the IN list of a conjunct that asks for one, and whether it asks for none."""
    is_negated = isinstance(part, Call) and part.function == "not"
    asked = part.arguments[0] if isinstance(part, Call) and is_negated else part
    if not isinstance(asked, Call) or asked.function != ONE_OF:
        return None
    return asked.arguments[0], asked.arguments[1], is_negated


@dataclass(frozen=True, eq=False, repr=False)
class Combine(Node):
    """The weighted sum of two relations: left + sign · right, row by row.

    UNION ALL is sign +1; "the rows of L without a partner" is L - (the rows with one); n times
    a relation is the relation with sign n - 1 to itself.
    """

    left: Node
    right: Node
    sign: int

    @kept
    def schema(self) -> Schema:
        return self.left.schema

    def label(self) -> str:
        times = "" if abs(self.sign) == 1 else str(abs(self.sign))
        return f"Combine {'+' if self.sign > 0 else '-'}{times}"


@dataclass(frozen=True, eq=False, repr=False)
class Arrivals(_RelationToStream):
    """The Istream of a relation in which nothing leaves while an equal row enters.

    No minus is read and nothing is remembered: what enters is passed on.
    """


@dataclass(frozen=True, eq=False, repr=False)
class Moments(_RelationToStream):
    """The Rstream of a relation whose elements last one tick: what starts, equal rows summed up."""


@dataclass(frozen=True, eq=False, repr=False)
class Totals(_RelationToStream):
    """The same but for the columns ``sums``: rows of one tick that differ only there are as many,
    with the same sum in each of these columns, but few different ones."""

    sums: tuple[int, ...]

    def label(self) -> str:
        names = self.schema.names
        by = [name for position, name in enumerate(names) if position not in self.sums]
        told = ", ".join(["count", *(f"sum of {names[position]}" for position in self.sums)])
        return f"Totals of each tick: {told}" + (f" BY {', '.join(by)}" if by else "")


@dataclass(frozen=True, eq=False, repr=False)
class Snapshots(_RelationToStream):
    """Rstream: the whole relation at every instant at which one of ``movers`` moves."""

    movers: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, *self.movers)

    @kept
    def subqueries(self) -> tuple[Node, ...]:
        return ()

    def _over(self, new: tuple[Node, ...]) -> Node:
        return Snapshots(new[0], new[1:])

    def label(self) -> str:
        return "Rstream"


@dataclass(frozen=True, eq=False, repr=False)
class Match(Node):
    """The pairs of a row and a query for which a predicate holds, with the query's number.

    Expressions see the columns of the input and behind them some of the query's constants. If the
    input ``is_tagged`` each row belongs to one query already. ``since``: a query sees of this
    stream what comes after a time of its own. ``window``: rows of a stream are there as long as the
    constant in this place says, in ticks. ``draws``: the last column that expressions see of the
    input is a tuple's draw, by which samples of this stream decide.
    """

    input: Node
    is_tagged: bool
    constants: tuple[int, ...]
    types: tuple[Type, ...]
    predicate: Expression | None
    expressions: tuple[Expression, ...]
    since: str | None = None
    window: int | None = None
    draws: str | None = None

    @property
    def width(self) -> int:
        """How many columns expressions see before the constants."""
        return len(self.input.schema) + (self.draws is not None)

    @kept
    def schema(self) -> Schema:
        fields = [Field(str(each), each.type) for each in self.expressions]
        return Schema((*fields, Field(TAG, Type.BIGINT)))

    @kept
    def is_stream(self) -> bool:
        return self.input.is_stream and self.window is None

    def label(self) -> str:
        on = "" if self.predicate is None else f" ON {self.predicate}"
        window = "" if self.window is None else f", Window RANGE ?{self.window + 1}"
        return f"Match queries{on}{window}"
