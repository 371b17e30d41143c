"""The checked query: a graph over CQL's three operator classes.

stream-to-relation (windows), relation-to-relation (relational algebra) and relation-to-stream
(Istream, Dstream, Rstream). ``Filter``, ``Project`` and ``Sample`` also apply to streams. A node
checks itself when built and knows its schema and whether it is a stream. ``written`` says what the
expressions of a node were in the script; nodes are equal whatever it says.
"""

from dataclasses import dataclass, field

from millpond.cql.expressions import AggregateCall, Column, Expression, Frame, SortKey
from millpond.cql.kept import kept
from millpond.cql.node import Node
from millpond.cql.written import Written
from millpond.errors import MillpondError
from millpond.schema import Field, Schema, Type


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise MillpondError(f"internal: malformed plan: {message}")


@dataclass(frozen=True, eq=False, repr=False)
class StreamScan(Node):
    """A base stream of the catalog."""

    name: str
    fields_: Schema

    @kept
    def schema(self) -> Schema:
        return self.fields_

    @kept
    def is_stream(self) -> bool:
        return True

    def label(self) -> str:
        return f"Stream {self.name}"


@dataclass(frozen=True, eq=False, repr=False)
class RelationScan(Node):
    """A base relation of the catalog, changing over time unless declared ``static``."""

    name: str
    fields_: Schema
    is_static: bool = False

    @kept
    def schema(self) -> Schema:
        return self.fields_

    def label(self) -> str:
        return "One row" if self.name == ONE_ROW.name else f"Relation {self.name}"


ONE_ROW = RelationScan("~one", Schema((Field("one", Type.INT),)), is_static=True)
"""A relation of one row that was there from the beginning, of which no column can be named: what a
SELECT without FROM reads."""


@dataclass(frozen=True, eq=False, repr=False)
class _Unary(Node):
    input: Node

    @kept
    def schema(self) -> Schema:
        return self.input.schema

    @kept
    def is_stream(self) -> bool:
        return self.input.is_stream


DRAWS = 2**40
"""The draw of an element in samples is one of so many numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class Sample(_Unary):
    """Keeps each stream element with probability ``percent`` / 100, decided by a hash."""

    percent: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.input.is_stream, "Sample of a relation")

    @property
    def limit(self) -> int:
        """Elements with smaller draws are kept."""
        return round(self.percent / 100 * DRAWS)

    def label(self) -> str:
        return f"Sample {self.percent:g}%"


@dataclass(frozen=True, eq=False, repr=False)
class WithTime(_Unary):
    """The elements of a stream with their times as the last column.

    They are TIMESTAMPs if a tick's length is known, and count ticks otherwise. ``is_numbered``: the
    sequence number follows, 0 in a computed stream.
    """

    tick_microseconds: int | None = None
    is_numbered: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.input.is_stream, "the times of a relation")

    @kept
    def schema(self) -> Schema:
        own = [Field("time", _time_type(self.tick_microseconds)), Field("number", Type.BIGINT)]
        return Schema((*self.input.schema.fields, *own[: 1 + self.is_numbered]))

    def label(self) -> str:
        return "With time and number" if self.is_numbered else "With time"


@dataclass(frozen=True, eq=False, repr=False)
class _Window(_Unary):
    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.input.is_stream, "window over a relation")

    @kept
    def is_stream(self) -> bool:
        return False


@dataclass(frozen=True, eq=False, repr=False)
class RangeWindow(_Window):
    """The last ``length_ticks`` ticks (None: unbounded; 0: now), moving every ``slide_ticks``."""

    length_ticks: int | None
    slide_ticks: int | None = None

    def label(self) -> str:
        if self.length_ticks is None:
            return "Window UNBOUNDED"
        slide = f" SLIDE {self.slide_ticks}" if self.slide_ticks else ""
        is_now = self.length_ticks == 0 and not slide
        return "Window NOW" if is_now else f"Window RANGE {self.length_ticks}{slide}"


@dataclass(frozen=True, eq=False, repr=False)
class HopWindow(_Window):
    """Windows of ``length_ticks`` of which one begins every ``slide_ticks``, ``offset_ticks`` after
    time 0; their begin and end are the last columns.

    An element is there once for each window that it falls into, until this ends. Begin and end are
    TIMESTAMPs if a tick's length is known, and count ticks otherwise.
    """

    length_ticks: int
    slide_ticks: int
    offset_ticks: int = 0
    tick_microseconds: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.length_ticks > 0 and self.slide_ticks > 0, "a window without length")

    @property
    def at_once(self) -> int:
        """How many windows an element falls into, at most."""
        return -(-self.length_ticks // self.slide_ticks)

    @kept
    def schema(self) -> Schema:
        return Schema((*self.input.schema.fields, *window_bounds(self.tick_microseconds)))

    def label(self) -> str:
        is_tumble = self.length_ticks == self.slide_ticks
        kind = "TUMBLE" if is_tumble else "HOP"
        slide = "" if is_tumble else f" SLIDE {self.slide_ticks}"
        offset = f" OFFSET {self.offset_ticks}" if self.offset_ticks else ""
        return f"Window {kind} {self.length_ticks}{slide}{offset}"


@dataclass(frozen=True, eq=False, repr=False)
class UntilWindow(_Window):
    """The elements of a stream from their times on, each ``until`` the time is what it says; see
    ``TimeFilter``."""

    until: Expression
    units_a_tick: int
    written: Written | None = field(default=None, compare=False)

    def label(self) -> str:
        return f"Window UNTIL {self.until}"


TELLINGS = ("running", "own", "final")


@dataclass(frozen=True, eq=False, repr=False)
class SessionWindow(_Window):
    """Elements of a partition that come less than ``gap_ticks`` after one another; the begin of
    their session and its end, a gap after the last of them, are the last columns.

    An element is there from its time until its session ends. ``told`` is which end is told, and
    when: that of the session as it is at each instant (``running``); that which the session would
    have without later elements, in which nothing changes (``own``); or that of sessions that are
    over, at the instant of their end alone (``final``).
    """

    gap_ticks: int
    partition: tuple[Column, ...] = ()
    tick_microseconds: int | None = None
    told: str = "running"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.gap_ticks > 0, "a session without a gap")
        _require(self.told in TELLINGS, f"sessions told as {self.told}")

    @kept
    def schema(self) -> Schema:
        return Schema((*self.input.schema.fields, *window_bounds(self.tick_microseconds)))

    def label(self) -> str:
        return f"Window {session_label(self.gap_ticks, self.partition, self.told)}"


def session_label(gap_ticks: int, partition: tuple[Column, ...], told: str) -> str:
    """Which sessions there are, and what is told of them."""
    by = f" PARTITION BY {', '.join(map(str, partition))}" if partition else ""
    how = {"running": "", "own": ", ends of elements", "final": ", at their ends"}[told]
    return f"SESSION {gap_ticks}{by}{how}"


def _time_type(tick_microseconds: int | None) -> Type:
    return Type.BIGINT if tick_microseconds is None else Type.TIMESTAMP


WINDOW_BOUNDS = ("window_start", "window_end")
"""The columns that TUMBLE, HOP and SESSION add."""


def window_bounds(tick_microseconds: int | None) -> tuple[Field, ...]:
    """These columns: TIMESTAMPs if a tick's length is known, and counts of ticks otherwise."""
    return tuple(Field(name, _time_type(tick_microseconds)) for name in WINDOW_BOUNDS)


@dataclass(frozen=True, eq=False, repr=False)
class RowsWindow(_Window):
    """The last ``rows`` elements (of each partition), moving every ``slide_rows`` elements.

    In plans of many queries it may be a column, the same in all elements of a partition.
    """

    rows: int | Column
    slide_rows: int | None = None
    partition: tuple[Column, ...] = ()

    def label(self) -> str:
        by = f"PARTITION BY {', '.join(map(str, self.partition))} " if self.partition else ""
        slide = f" SLIDE {self.slide_rows}" if self.slide_rows else ""
        return f"Window {by}ROWS {self.rows}{slide}"


@dataclass(frozen=True, eq=False, repr=False)
class Filter(_Unary):
    """Keeps the rows for which ``predicate`` is true."""

    predicate: Expression
    written: Written | None = field(default=None, compare=False)

    def label(self) -> str:
        return f"Filter {self.predicate}"


@dataclass(frozen=True, eq=False, repr=False)
class TimeFilter(_Unary):
    """The rows of a relation ``until`` the time is what they say, or has passed it.

    That is a number, of which ``units_a_tick`` make a tick. A row where it is NULL is never there.
    ``is_rest``: all the others instead, at each instant. ``is_second``: another one, of the same
    condition in the script, reads the same rows for the rest of the time.
    """

    until: Expression
    units_a_tick: int
    is_inclusive: bool = False
    is_rest: bool = False
    is_second: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(not self.input.is_stream, "the time compared in a stream")
        _require(self.until.type is Type.BIGINT, "a time that is no number")

    def label(self) -> str:
        label = time_filter_label(self.until, self.is_inclusive)
        return f"Rest of {label}" if self.is_rest else label


def time_filter_label(until: Expression, is_inclusive: bool) -> str:
    """How long rows are there."""
    return f"Filter time {'<=' if is_inclusive else '<'} {until}"


@dataclass(frozen=True, eq=False, repr=False)
class Project(_Unary):
    """Computes ``expressions``, calling them ``names``; keeps duplicates."""

    expressions: tuple[Expression, ...]
    names: tuple[str, ...]
    written: tuple[Written, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(len(self.expressions) == len(self.names), "Project names")

    @kept
    def schema(self) -> Schema:
        return Schema(
            tuple(Field(n, e.type) for n, e in zip(self.names, self.expressions, strict=True))
        )

    def label(self) -> str:
        pairs = zip(self.expressions, self.names, strict=True)
        return "Project " + ", ".join(str(e) if str(e) == n else f"{e} AS {n}" for e, n in pairs)


JOIN_KINDS = ("inner", "left", "right", "full", "semi", "anti")


@dataclass(frozen=True, eq=False, repr=False)
class Join(Node):
    """A join of two relations; ``condition`` sees left ++ right; None means the cross product."""

    left: Node
    right: Node
    kind: str
    condition: Expression | None
    written: Written | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.kind in JOIN_KINDS, f"join kind {self.kind}")
        _require(not (self.left.is_stream or self.right.is_stream), "join of a stream")

    @kept
    def schema(self) -> Schema:
        if self.kind in ("semi", "anti"):
            return self.left.schema
        return self.left.schema + self.right.schema

    def label(self) -> str:
        on = "" if self.condition is None else f" ON {self.condition}"
        return f"Join {self.kind.upper()}{on}"


@dataclass(frozen=True, eq=False, repr=False)
class LateralJoin(Join):
    """A join whose right side names columns of the left one: its rows are those for each row."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.kind in ("inner", "left"), f"lateral join kind {self.kind}")

    def label(self) -> str:
        return super().label().replace("Join", "LateralJoin", 1)


@dataclass(frozen=True, eq=False, repr=False)
class Aggregate(_Unary):
    """Groups by ``keys``; the schema is the keys, then the aggregates.

    Without keys it is a singleton: one row at every instant, also over nothing.
    """

    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    names: tuple[str, ...]
    written: tuple[Written, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(len(self.names) == len(self.keys) + len(self.aggregates), "Aggregate names")
        _require(not self.input.is_stream, "aggregate of a stream")

    @kept
    def schema(self) -> Schema:
        types: tuple[Type, ...] = tuple(e.type for e in self.keys) + tuple(
            a.type for a in self.aggregates
        )
        return Schema(tuple(Field(n, t) for n, t in zip(self.names, types, strict=True)))

    def label(self) -> str:
        by = f" BY {', '.join(map(str, self.keys))}" if self.keys else ""
        return f"Aggregate {', '.join(map(str, self.aggregates))}{by}"


@dataclass(frozen=True, eq=False, repr=False)
class Distinct(_Unary):
    """One copy of each row."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(not self.input.is_stream, "distinct of a stream")


RANKINGS = ("row_number", "rank", "dense_rank")


@dataclass(frozen=True, eq=False, repr=False)
class Rank(_Unary):
    """Rows with their ranks among those of their ``partition`` as the last column.

    Rows are in order by ``order``, and those that tie by all their columns; ``function`` is one of
    RANKINGS. With a ``limit`` only those are there whose rank is no larger.
    """

    partition: tuple[Column, ...]
    order: tuple[SortKey, ...]
    function: str
    limit: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.function in RANKINGS, f"ranking {self.function}")
        _require(not self.input.is_stream, "ranks in a stream")

    @kept
    def schema(self) -> Schema:
        return Schema((*self.input.schema.fields, Field(self.function, Type.BIGINT)))

    def label(self) -> str:
        return f"Rank {rank_label(self.function, self.partition, self.order, self.limit)}"


def rank_label(
    function: str, partition: tuple[Column, ...], order: tuple[SortKey, ...], limit: int | None
) -> str:
    """Which ranks are given, and to which rows."""
    most = "" if limit is None else f" <= {limit}"
    by = f" PARTITION BY {', '.join(map(str, partition))}" if partition else ""
    return f"{function}{most}{by} ORDER BY {', '.join(map(str, order))}"


OVER_FUNCTIONS = (
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "first_value",
    "last_value",
    "lag",
    "lead",
    "ntile",
)


@dataclass(frozen=True)
class OverCall:
    """A function OVER rows in order; ``argument`` is None for count(*) and ntile.

    ``number``: how many rows lag and lead go, how many parts ntile makes.
    """

    function: str
    argument: Column | None
    frame: Frame
    type: Type
    number: int = 0

    def __str__(self) -> str:
        told = "*" if self.argument is None else str(self.argument)
        if self.function == "ntile":
            return f"ntile({self.number})"
        if self.function in ("lag", "lead"):
            return f"{self.function}({told}, {self.number})"
        return f"{self.function}({told})"


@dataclass(frozen=True, eq=False, repr=False)
class Over(_Unary):
    """Rows with what a function says of each, as the last column.

    It looks at rows of the same ``partition``, which are in order by ``order``, and those that tie
    by all their columns.
    """

    partition: tuple[Column, ...]
    order: tuple[SortKey, ...]
    call: OverCall

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.call.function in OVER_FUNCTIONS, f"{self.call.function} OVER")
        _require(not self.input.is_stream, "functions OVER a stream")

    @kept
    def schema(self) -> Schema:
        return Schema((*self.input.schema.fields, Field(self.call.function, self.call.type)))

    def label(self) -> str:
        return f"Over {over_label(self.call, self.partition, self.order)}"


def over_label(call: OverCall, partition: tuple[Column, ...], order: tuple[SortKey, ...]) -> str:
    """Which function it is, and which rows it looks at."""
    by = f" PARTITION BY {', '.join(map(str, partition))}" if partition else ""
    sorts = f" ORDER BY {', '.join(map(str, order))}" if order else ""
    frame = "" if call.function in ("lag", "lead", "ntile") else f" {call.frame}"
    return f"{call}{by}{sorts}{frame}"


SET_OPERATIONS = ("union", "except", "intersect")


@dataclass(frozen=True, eq=False, repr=False)
class SetOperation(Node):
    """UNION, EXCEPT or INTERSECT of two relations with the same types; ``all`` keeps counts."""

    left: Node
    right: Node
    operation: str
    all: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.operation in SET_OPERATIONS, f"set operation {self.operation}")
        _require(self.left.schema.types == self.right.schema.types, "set operation types")
        _require(not (self.left.is_stream or self.right.is_stream), "set operation of a stream")

    @kept
    def schema(self) -> Schema:
        return self.left.schema

    def label(self) -> str:
        return self.operation.capitalize() + (" ALL" if self.all else "")


@dataclass(frozen=True, eq=False, repr=False)
class _RelationToStream(_Unary):
    def __post_init__(self) -> None:
        super().__post_init__()
        _require(not self.input.is_stream, "relation-to-stream operator on a stream")

    @kept
    def is_stream(self) -> bool:
        return True


@dataclass(frozen=True, eq=False, repr=False)
class Istream(_RelationToStream):
    """The rows that come in, at the instants they come in."""


@dataclass(frozen=True, eq=False, repr=False)
class Dstream(_RelationToStream):
    """The rows that go, at the instants they go."""


@dataclass(frozen=True, eq=False, repr=False)
class Rstream(_RelationToStream):
    """The whole relation, at every instant at which an input of the query moves."""
