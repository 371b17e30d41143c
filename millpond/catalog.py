"""The names a script may use: streams, relations, views, queries and functions of the user.

The settings of time are here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Union
from unicodedata import category

from millpond.errors import CqlWarning, Position, StateError
from millpond.functions.processes import FunctionProcesses
from millpond.functions.user_function import UserFunction
from millpond.identities import KEPT, QueryId, RelationId, StreamId
from millpond.schema import Field, Schema, Type
from millpond.settings import format_bytes
from millpond.spelling import suggestion
from millpond.time_zones import UTC

OURS = "@#~"
"""Characters of names that the engine makes itself: ``r@2``, ``q#left_out``, ``~one``. No declared
name has one of them, so that none is ever taken for one of ours."""


def name_complaint(name: str) -> str:
    """Why nothing may be called so, or the empty string.

    >>> name_complaint("r@2")
    '"r@2": names have no @, # or ~, which are for names that the engine makes itself'
    """
    if not name:
        return "a name has at least one character"
    if any(character in OURS for character in name):
        return (
            f'"{name}": names have no @, # or ~, which are for names that the engine makes itself'
        )
    for character in name:
        if category(character) in _UNWRITABLE or character in "\ufffe\uffff":
            code = f"U+{ord(character):04X}"
            return f"{name!a}: {code} is a control character, which no name has"
    return ""


_UNWRITABLE = ("Cc", "Cs", "Zl", "Zp")
"""Control characters, halves of pairs, separators of lines: XML, logs or terminals lose them."""


@dataclass(frozen=True)
class Connector:
    """A source or sink call such as ``csv('requests.csv', header = true)``."""

    name: str
    arguments: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        parts = [repr(a) for a in self.arguments] + [f"{k} = {v!r}" for k, v in self.options]
        return f"{self.name}({', '.join(parts)})"


ORDERED_TYPES = (Type.INT, Type.BIGINT, Type.DATE, Type.TIMESTAMP)
"""What a stream can be ordered by."""

MOST_ROWS = 100_000
"""A constraint is within so many rows at most: as many values of a stream are remembered."""

VIOLATES, MISSED_BY = "violates", "missed_by"
"""The columns behind those of a tuple that broke a constraint: the constraint's name, and the
queries whose answers go on without the tuple."""


@dataclass(frozen=True)
class Constraint:
    """What is promised of a stream, ``within`` so many rows or ticks.

    ``ordered``: a tuple comes at most that far behind one with a larger value. ``clustered``: at
    most so far behind the last one with its value. ``unique``: at most so far behind the first one
    with its values. ``references``: tuples of ``target`` with a tuple's values come at most that
    far behind it. A tuple that breaks it is put aside; ``on_violation`` says what becomes of the
    queries that rely on it: they ``stop``, or it is only counted (``count``), or k grows, too
    (``widen``).
    """

    name: str
    column: int
    within: int
    is_of_rows: bool
    on_violation: str = "stop"
    kind: str = "ordered"
    more_columns: tuple[int, ...] = ()
    target: str = ""
    """The stream that is referenced, and which of its columns have the values."""
    target_columns: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        """All columns of which it speaks."""
        return self.column, *self.more_columns


def goes_by_the_clock(schema: Schema, time_column: int | None, tick_microseconds: int) -> bool:
    """Whether it is known how a stream's time goes on by the wall clock: numbers may count anything
    unless somebody has said how long a tick is."""
    is_number = time_column is not None and schema[time_column].type is not Type.TIMESTAMP
    return tick_microseconds > 1 or not is_number


@dataclass(frozen=True)
class StreamEntry:
    """A declared stream. ``timestamp_column`` None means time of arrival."""

    name: str
    schema: Schema
    timestamp_column: int | None = None
    delay_ticks: int = 0
    source: Connector = Connector("push")
    late_percent: float = 0.0
    """How many of its tuples may come too late, where the delay follows how they come and
    ``delay_ticks`` is the longest; 0: it does not."""
    has_other_delay: bool = field(default=False, compare=False)
    """Whether ALTER has changed the delay that was declared."""
    skips_bad_rows: bool = False
    """Whether rows that its source cannot read are put aside; else the first one is an error."""
    dead_letters: Connector | None = None
    """The sink that gets them, if one does."""
    constraints: tuple[Constraint, ...] = ()
    created_with: tuple[Constraint, ...] | None = field(default=None, compare=False)
    """The constraints of its CREATE, if ALTER STREAM has changed them since."""
    idle_microseconds: int = 0
    """How long it may be silent before its time goes on without it; 0: for ever."""
    has_other_idle: bool = field(default=False, compare=False)
    """Whether ALTER has changed that."""
    ahead_microseconds: int | None = None
    """How far the time of a tuple may be ahead of the wall clock; None: however far."""
    has_other_ahead: bool = field(default=False, compare=False)
    """Whether ALTER has changed that."""

    skew_ticks: int | None = None
    """How far its time may be behind that of other streams; None: however far."""
    punctuation_column: int | None = None
    """The column that carries punctuations: a row that has a text there is one, and no tuple."""
    punctuations_violated: str = "stop"
    """What becomes of queries that rely on those when a tuple contradicts one."""
    kept_percent: float = 100.0
    """How many of its tuples are kept for queries that tolerate fewer."""
    shed_percent: float | None = None
    """How many the engine has decided to keep instead; it counts while a latency is set."""

    def constraint(self, name: str) -> Constraint | None:
        """The constraint of a name, if there is one."""
        return next((c for c in self.constraints if c.name.lower() == name.lower()), None)

    @cached_property
    def identity(self) -> StreamId:
        """By which the stream is found."""
        return StreamId(self.name)


def promised(
    constraint: Constraint, entry: StreamEntry, catalog: Catalog, name: Callable[[str], str] = str
) -> str:
    """What a constraint promises of a stream, as it is written; ``name`` writes names."""
    own = _listed(constraint.columns, entry, name)
    if constraint.kind == "unique":
        return f"UNIQUE {own}"
    target = catalog.get(constraint.target) if constraint.target else None
    if isinstance(target, StreamEntry):
        theirs = _listed(constraint.target_columns, target, name)
        return f"FOREIGN KEY {own} REFERENCES {name(target.name)} {theirs}"
    return f"{constraint.kind.upper()} BY {own}"


def _listed(columns: Iterable[int], entry: StreamEntry, name: Callable[[str], str]) -> str:
    return f"({', '.join(name(entry.schema[column].name) for column in columns)})"


@dataclass(frozen=True)
class RelationEntry:
    """A declared relation.

    ``has_changes``: the source carries columns ts and op (+, -). ``is_static``: promised never to
    change after it was read, so that joins with it need no history.
    """

    name: str
    schema: Schema
    key: tuple[int, ...] = ()
    source: Connector = Connector("push")
    has_changes: bool = False
    is_static: bool = False
    on_conflict: str = "ignore"
    """What two rows of one key are: an error (``refuse``), the later one (``replace``), or two
    rows (``ignore``: the key is a remark, as in stores of before it was looked at)."""

    @property
    def checks_key(self) -> bool:
        """Whether there is one row at most for each key."""
        return bool(self.key) and self.on_conflict != "ignore"

    @cached_property
    def identity(self) -> RelationId:
        """By which the relation is found."""
        return RelationId(self.name)


@dataclass(frozen=True)
class ViewEntry:
    """A named query. ``plan`` is a ``cql.algebra.Node``, and part of the plans that read it."""

    name: str
    plan: Any
    is_stream_unsaid: bool = field(default=False, compare=False)
    """Whether it is a stream by default only: its text says neither Istream nor AS STREAM."""
    warnings: tuple[CqlWarning, ...] = field(default=(), compare=False)

    @property
    def schema(self) -> Schema:
        """The columns of the view."""
        schema: Schema = self.plan.schema
        return schema


@dataclass(frozen=True)
class Tolerance:
    """What a query tolerates: answers from a sample of its stream, with bounds that hold at a
    confidence. And what has to be known of tuples that are dropped: how many there are by the
    ``keys`` (columns of the stream), and the least and largest values of the ``ranged`` ones."""

    least_percent: float = 0.0
    confidence_percent: float = 95.0
    stream: str = ""
    keys: tuple[int, ...] = ()
    ranged: tuple[int, ...] = ()
    grain_ticks: int = 1
    """Its windows move by so many ticks: dropped tuples of one such length count together."""
    error: float = 0.0
    """How far its bounds are to be from its answers at most; 0 if it does not say so."""
    is_relative: bool = True
    """Whether that is in percent of the answers."""
    drawn_by: tuple[int, ...] = ()
    """The column whose values are drawn, for different ones to be counted: all tuples of a value
    are kept, or none; nothing if tuples are drawn one by one."""
    false_negatives: float | None = None
    """How many rows may be missing of an answer that is a set of rows, in percent of those that are
    there; None if it does not say so, or its answers are numbers."""
    false_positives: float | None = None
    """How many of its rows may be wrong, in percent of them."""

    shed_by: tuple[int, ...] = ()
    """The column that says how important a tuple is, from 0 to 1: at a rate p it is kept at
    p^(1 - importance)."""
    shed_name: str = ""
    """What it is called."""
    shortest_ticks: int | None = None
    """So long its window is at least where memory is short; None: as long as it says."""
    window_bytes: int | None = None
    """What its window may take before it is shortened, if that is said."""

    @property
    def is_of_sets(self) -> bool:
        """Whether its answers are sets of rows, and not numbers with bounds."""
        return self.false_negatives is not None or self.false_positives is not None

    @property
    def needed_percent(self) -> float:
        """How many tuples have to be kept. Of each hundred 100 p are delivered, so for each that is
        (1 - p) / p are missed in the mean.

        >>> Tolerance(10.0, false_negatives=300.0).needed_percent
        25.0
        """
        missed = self.false_negatives
        needed = 100 / (1 + missed / 100) if missed is not None else 0.0
        return max(self.least_percent, needed)

    @cached_property
    def kept(self) -> str:
        """Names what a drop point keeps of the stream for all queries with the same needs."""
        keys, ranged = (",".join(map(str, each)) for each in (self.keys, self.ranged))
        by = "".join(f";by {each}" for each in self.drawn_by)
        by += "".join(f";shed {each}" for each in self.shed_by)
        by += "" if self.shortest_ticks is None else f";at least {self.shortest_ticks}"
        return f"{self.stream}{KEPT}({keys};{ranged};{self.grain_ticks}{by})"

    @property
    def young(self) -> str:
        """Names those tuples of it that stay for the shortest window only."""
        return f"{self.kept};young"

    @property
    def cut(self) -> str:
        """Names what is known of them afterwards."""
        return f"{self.kept};cut"

    @property
    def all_kept(self) -> tuple[str, ...]:
        """The names of all that is kept."""
        is_whole = self.shortest_ticks is None
        return (self.kept,) if is_whole else (self.kept, self.young, self.cut)

    def __str__(self) -> str:
        parts = [f"SAMPLE AT LEAST {self.least_percent:g} PERCENT"] if self.least_percent else []
        parts += [f"ERROR {self.tolerated_error}"] if self.error else []
        is_cut = self.shortest_ticks is not None
        parts += [f"WINDOW AT LEAST RANGE {self.shortest_ticks}"] if is_cut else []
        has_bytes = self.window_bytes is not None
        parts += [f"MEMORY {format_bytes(self.window_bytes or 0)}"] if has_bytes else []
        for kind, rate in (
            ("NEGATIVES", self.false_negatives),
            ("POSITIVES", self.false_positives),
        ):
            parts += [] if rate is None else [f"FALSE {kind} {rate:g} PERCENT"]
        parts += [f"SHED BY {self._shed_column}"] if self.shed_by else []
        if not self.is_of_sets:
            parts += [f"CONFIDENCE {self.confidence_percent:g} PERCENT"]
        return f"TOLERATE ({', '.join(parts)})"

    @property
    def _shed_column(self) -> str:
        return '"' + self.shed_name.replace('"', '""') + '"'

    @property
    def tolerated_error(self) -> str:
        """The error as CQL writes it; nothing if it does not say one."""
        unit = " PERCENT" if self.is_relative else ""
        return f"{self.error:g}{unit}" if self.error else ""


KEPT_COLUMNS = (Field("dropped", Type.BIGINT), Field("weight", Type.DOUBLE))
"""The last columns of a stream's kept tuples: 0 and the weight of a tuple that was kept, or for
how many dropped ones a row stands, and what the weight of each would have been."""


def kept_entry(entry: StreamEntry, name: str) -> StreamEntry:
    """The stream of the tuples of a stream that were kept, and of what is known of the others."""
    return replace(
        entry,
        name=name,
        schema=Schema((*entry.schema.fields, *KEPT_COLUMNS)),
        source=Connector("push"),
        skips_bad_rows=False,
        dead_letters=None,
        constraints=(),
        created_with=None,
        punctuation_column=None,
    )


@dataclass(frozen=True)
class QueryEntry:
    """A registered continuous query. ``plan`` is a ``cql.algebra.Node``.

    ``on_error``: what an expression that fails does: ``stop`` the query, or ``skip`` the row.
    """

    name: str
    plan: Any
    weight: float = 1.0
    active: bool = True
    sink: Connector | None = None
    text: str = field(default="", compare=False)
    on_error: str = "stop"
    begins: int | None = None
    """The first time of which it sees its streams, where its statement says FROM."""
    position: Position = field(default=Position(1, 1), compare=False)
    """Where its text begins."""
    warnings: tuple[CqlWarning, ...] = field(default=(), compare=False)
    tolerates: Tolerance | None = None
    """What it tolerates; None: its answers are exact."""
    reduced: tuple[str, ...] = field(default=(), compare=False)
    """What its statement has reduced; its text is the one that this made."""
    partition: str = ""
    """The partition whose threads do its work; empty if none."""

    @cached_property
    def identity(self) -> QueryId:
        """By which the query is found."""
        return QueryId(self.name)


@dataclass(frozen=True)
class PartitionEntry:
    """A declared partition of the HMTS paper: some threads, by one strategy, for the queries that
    say so and for the operators that were put in it by hand."""

    name: str
    strategy: str = ""
    """As SET strategy has it; empty: the one that is set."""
    threads: int = 1
    priority: float = 1.0
    operators: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        """It has no columns."""
        return Schema(())

    def __str__(self) -> str:
        strategy = f"STRATEGY '{self.strategy}' " if self.strategy else ""
        return f"{strategy}THREADS {self.threads} PRIORITY {self.priority:g}"


Entry = Union[StreamEntry, RelationEntry, ViewEntry, QueryEntry, PartitionEntry]

KINDS: dict[str, type[Entry]] = {
    "stream": StreamEntry,
    "relation": RelationEntry,
    "view": ViewEntry,
    "query": QueryEntry,
    "partition": PartitionEntry,
}
"""What the catalog holds, by the word for it."""


def kind_of(entry: Entry) -> str:
    """The word for a catalog entry."""
    return next(kind for kind, entries in KINDS.items() if isinstance(entry, entries))


@dataclass
class Catalog:
    """All declared names; names are unique over all kinds and case-insensitive."""

    tick_microseconds: int = 1
    entries: dict[str, Entry] = field(default_factory=dict)
    functions: dict[str, UserFunction] = field(default_factory=dict)
    """Those of the user, by their names in lower case."""
    function_processes: FunctionProcesses = field(
        default_factory=FunctionProcesses, compare=False, repr=False
    )
    """Where they run apart, if that is wanted."""
    time_zone: str = UTC
    """In which statements read the calendar."""
    _unnamed: int = field(default=1, compare=False, repr=False)
    """No name q1, q2, … with a smaller number is free."""

    def free_name(self) -> str:
        """The first of q1, q2, … that is free."""
        while f"q{self._unnamed}" in self.entries:
            self._unnamed += 1
        return f"q{self._unnamed}"

    def get(self, name: str) -> Entry | None:
        """The entry called ``name``, or None; what a drop point keeps of a stream has one too."""
        found = self.entries.get(name.lower())
        if found is None and KEPT in name:
            stream = self.entries.get(name.lower().partition(KEPT)[0])
            return kept_entry(stream, name) if isinstance(stream, StreamEntry) else None
        return found

    def add(self, entry: Entry) -> None:
        """Declares a new name."""
        self.refuse(entry)
        self.entries[entry.name.lower()] = entry

    def refuse(self, entry: Entry) -> None:
        """Refuses what cannot be declared under its name."""
        complaint = name_complaint(entry.name)
        if complaint:
            raise StateError(complaint)
        if entry.name.lower() in self.entries:
            raise StateError(f'"{entry.name}" exists already; DROP it first or choose another name')

    def replace(self, entry: Entry) -> None:
        """Changes an existing name's entry."""
        self.entries[entry.name.lower()] = entry

    def remove(self, name: str) -> Entry:
        """Forgets a name."""
        entry = self.entries.pop(name.lower(), None)
        if entry is None:
            known = (each.name for each in self.entries.values())
            raise StateError(f'nothing is called "{name}"{suggestion(name, known)}')
        number = name[1:]
        if name[:1] in "qQ" and number.isascii() and number.isdigit():
            self._unnamed = max(1, min(self._unnamed, int(number)))
        return entry

    def of_kind(self, kind: type[Entry]) -> Iterable[Any]:
        """All entries of one kind, in order of declaration."""
        return [entry for entry in self.entries.values() if isinstance(entry, kind)]

    def copy(self) -> Catalog:
        """An independent copy, to try statements on."""
        functions, processes = dict(self.functions), self.function_processes
        entries = dict(self.entries)
        return Catalog(self.tick_microseconds, entries, functions, processes, self.time_zone)


def warned(catalog: Catalog) -> list[ViewEntry | QueryEntry]:
    """The views and queries of which there are warnings."""
    entries = [e for e in catalog.entries.values() if isinstance(e, (ViewEntry, QueryEntry))]
    return [entry for entry in entries if entry.warnings]


@dataclass(frozen=True)
class Declaration:
    """A CREATE that was executed."""

    name: str
    kind: str
    text: str
    position: Position
