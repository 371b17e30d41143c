"""Physical operators as pure data, and the graph they form.

An operator reads *fragments*: trees of linear nodes (Filter, Project, Sample, RangeWindow,
HopWindow, WithTime, Combine) whose leaves are queues. Nothing is materialised inside a fragment:
it is fused into the operator that reads it. Everything stateful is an operator of its own and
writes one queue. So are selections and projections next to functions of the user, or all in a graph
that has linear nodes *apart*, and those that are cut off (`parts.py`): a queue can stand behind
them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from millpond.cql.algebra import (
    OverCall,
    RowsWindow,
    over_label,
    rank_label,
    session_label,
    time_filter_label,
    window_bounds,
)
from millpond.cql.expressions import AggregateCall, Column, Expression, SortKey
from millpond.cql.kept import kept
from millpond.cql.node import Node
from millpond.cql.row_patterns import (
    Definition,
    RowPattern,
    Skip,
    Slot,
    match_schema,
    pattern_label,
)
from millpond.identities import GroupId, QueryName, QueueId
from millpond.planning.nodes import Match, Totals
from millpond.schema import Field, Schema, Type

SELF = QueueId("self")
"""The queue name by which a fragment after a join refers to the join's pairs."""


@dataclass(frozen=True, eq=False, repr=False)
class QueueRead(Node):
    """A leaf of a fragment: a queue of stream elements or of relation elements."""

    queue: QueueId
    fields_: Schema
    of_stream: bool
    is_base: bool = False

    @property
    def schema(self) -> Schema:
        return self.fields_

    @property
    def is_stream(self) -> bool:
        return self.of_stream

    def label(self) -> str:
        return f"Read {self.queue}"


def queues_in(fragments: Iterable[Node]) -> tuple[QueueId, ...]:
    """The names of the queues that fragments read, without repetition."""
    nodes = (node for fragment in fragments for node in fragment.walk())
    return tuple(dict.fromkeys(node.queue for node in nodes if isinstance(node, QueueRead)))


@dataclass(frozen=True)
class Operator:
    """What all physical operators share."""

    @kept
    def inputs(self) -> tuple[Node, ...]:
        """The fragments the operator reads."""
        values = [getattr(self, f.name) for f in fields(self)]
        return tuple(value for value in values if isinstance(value, Node))

    @property
    def schema(self) -> Schema:
        """The columns the operator writes."""
        return self.inputs[0].schema

    @property
    def is_stream(self) -> bool:
        """Whether it writes stream elements rather than relation elements."""
        return False

    def label(self) -> str:
        """One line for EXPLAIN."""
        return type(self).__name__.removesuffix("Operator")

    @kept
    def _queues(self) -> tuple[QueueId, ...]:
        return queues_in(self.inputs)

    def queues(self) -> tuple[QueueId, ...]:
        """The names of the queues it reads, without repetition."""
        return self._queues


@dataclass(frozen=True)
class LinearOperator(Operator):
    """A selection or a projection that stands alone."""

    input: Node

    @property
    def is_stream(self) -> bool:
        return self.input.is_stream

    @kept
    def is_base(self) -> bool:
        """Whether it writes tuples of a stream as they came, with their numbers."""
        return writes_tuples(self.input)

    def label(self) -> str:
        return self.input.label()


@dataclass(frozen=True)
class TimeFilterOperator(Operator):
    """Rows as long as the time is before what they say, or has not passed it: what starts is put
    out with an end that is no later, and nothing is kept."""

    input: Node
    until: Expression
    units_a_tick: int
    is_inclusive: bool

    def label(self) -> str:
        return time_filter_label(self.until, self.is_inclusive)


@dataclass(frozen=True)
class MatchOperator(Operator):
    """Rows matched with the constants of a ``group`` of queries of one shape."""

    input: Node
    group: GroupId
    match: Match

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def schema(self) -> Schema:
        return self.match.schema

    @property
    def is_stream(self) -> bool:
        return self.input.is_stream and self.match.window is None

    @kept
    def reads_tuples(self) -> bool:
        """Whether it reads tuples of a stream as they came, with their numbers."""
        return writes_tuples(self.input)

    @property
    def is_base(self) -> bool:
        """Whether it writes them like that too."""
        return self.reads_tuples and self.is_stream

    def label(self) -> str:
        return f"{self.match.label()} of {self.group}"


def writes_tuples(fragment: Node) -> bool:
    """Whether what is read are tuples of a stream as they came, with their numbers."""
    leaves = (node for node in fragment.walk() if isinstance(node, QueueRead))
    return fragment.is_stream and all(leaf.is_base for leaf in leaves)


@dataclass(frozen=True)
class JoinOperator(Operator):
    """The inner join of two relations; ``post`` is applied to each pair.

    Joins that are equal but for their ``number`` run apart from one another.
    """

    left: Node
    right: Node
    condition: Expression | None
    post: Node
    number: int = 0

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def schema(self) -> Schema:
        return self.post.schema

    def label(self) -> str:
        on = "" if self.condition is None else f" ON {self.condition}"
        return f"Join{on}" + (f" (apart, {self.number})" if self.number else "")


@dataclass(frozen=True)
class AggregateOperator(Operator):
    """Groups and aggregates; ``is_append_only``: no row of the input is ever taken back;
    ``only_come``: none ever leaves either, told where rows are kept."""

    input: Node
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    fields_: Schema
    is_append_only: bool
    only_come: bool = False

    @property
    def schema(self) -> Schema:
        return self.fields_

    def label(self) -> str:
        by = f" BY {', '.join(map(str, self.keys))}" if self.keys else ""
        return f"Aggregate {', '.join(map(str, self.aggregates))}{by}"


@dataclass(frozen=True)
class CountOperator(Operator):
    """Counts equal rows: DISTINCT, EXCEPT and INTERSECT."""

    left: Node
    right: Node | None
    rule: str

    def label(self) -> str:
        return self.rule.replace("_", " ").capitalize()


@dataclass(frozen=True)
class RowsWindowOperator(Operator):
    """The last rows of a stream, of each partition."""

    input: Node
    rows: int | Column
    slide_rows: int | None
    partition: tuple[Column, ...]

    def label(self) -> str:
        return RowsWindow(
            QueueRead(QueueId(""), self.input.schema, True),
            self.rows,
            self.slide_rows,
            self.partition,
        ).label()


@dataclass(frozen=True)
class SessionOperator(Operator):
    """The sessions of a stream, each partition's own; elements are read when they come, and again a
    gap later."""

    input: Node
    gap_ticks: int
    partition: tuple[Column, ...]
    tick_microseconds: int | None
    told: str

    @kept
    def schema(self) -> Schema:
        return Schema((*self.input.schema.fields, *window_bounds(self.tick_microseconds)))

    def label(self) -> str:
        return f"Window {session_label(self.gap_ticks, self.partition, self.told)}"


@dataclass(frozen=True)
class RowPatternOperator(Operator):
    """The matches of a pattern in each partition of a stream; where they have an end, elements are
    read when they come, and again when matches that began with them are over."""

    input: Node
    pattern: RowPattern
    partition: tuple[Column, ...]
    order: int
    definitions: tuple[Definition, ...]
    slots: tuple[Slot, ...]
    told: tuple[int, ...]
    within_ticks: int | None
    skip: Skip

    @kept
    def schema(self) -> Schema:
        return match_schema(self.partition, self.slots, self.told)

    @property
    def is_stream(self) -> bool:
        return True

    def label(self) -> str:
        said = (self.pattern, self.partition, self.slots, self.within_ticks, self.skip)
        return f"Match rows {pattern_label(*said)}"


@dataclass(frozen=True)
class RankOperator(Operator):
    """The ranks of rows, up to a limit; ``is_append_only``: no row of the input ever leaves."""

    input: Node
    partition: tuple[Column, ...]
    order: tuple[SortKey, ...]
    function: str
    limit: int | None
    is_append_only: bool

    @kept
    def schema(self) -> Schema:
        return Schema((*self.input.schema.fields, Field(self.function, Type.BIGINT)))

    def label(self) -> str:
        return f"Rank {rank_label(self.function, self.partition, self.order, self.limit)}"


@dataclass(frozen=True)
class OverOperator(Operator):
    """What a function says of rows in order, of each."""

    input: Node
    partition: tuple[Column, ...]
    order: tuple[SortKey, ...]
    call: OverCall

    @kept
    def schema(self) -> Schema:
        return Schema((*self.input.schema.fields, Field(self.call.function, self.call.type)))

    def label(self) -> str:
        return f"Over {over_label(self.call, self.partition, self.order)}"


@dataclass(frozen=True)
class DifferenceOperator(Operator):
    """Istream (sign +1) and Dstream (sign -1): the net change at each instant."""

    input: Node
    sign: int

    @property
    def is_stream(self) -> bool:
        return True

    def label(self) -> str:
        return "Istream" if self.sign > 0 else "Dstream"


@dataclass(frozen=True)
class ArrivalsOperator(Operator):
    """An Istream that reads no minus: what enters."""

    input: Node

    @property
    def is_stream(self) -> bool:
        return True


@dataclass(frozen=True)
class MomentsOperator(Operator):
    """An Rstream of what lasts one tick: what starts, equal rows summed up."""

    input: Node

    @property
    def is_stream(self) -> bool:
        return True


@dataclass(frozen=True)
class TotalsOperator(Operator):
    """What starts and lasts one tick: few rows that are as many and have the same ``sums``."""

    input: Node
    sums: tuple[int, ...]

    @property
    def is_stream(self) -> bool:
        return True

    def label(self) -> str:
        return Totals(QueueRead(QueueId(""), self.input.schema, False), self.sums).label()


@dataclass(frozen=True)
class SnapshotsOperator(Operator):
    """Rstream: the relation at every instant at which one of ``movers`` moves."""

    input: Node
    movers: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, *self.movers)

    @property
    def is_stream(self) -> bool:
        return True

    def label(self) -> str:
        return "Rstream"


@dataclass(frozen=True)
class OutputOperator(Operator):
    """Delivers a query: ``changes`` of a relation, ``arrivals`` in it, ``moments`` of it, or a
    ``stream``'s elements.

    ``is_net``: no instant takes a row out and puts an equal one in, so nothing has to be summed.
    """

    input: Node
    query: QueryName
    mode: str
    is_net: bool = False
    begins: int | None = field(default=None, compare=False)
    """What was there before this time is put out then: the query has answered otherwise before."""

    @property
    def is_stream(self) -> bool:
        return self.mode != "changes"

    @property
    def is_summed(self) -> bool:
        """Whether equal rows must meet."""
        return self.mode == "moments" or (self.mode == "changes" and not self.is_net)

    def label(self) -> str:
        return f"Output {self.query} ({self.mode})"
