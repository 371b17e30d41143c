"""The names a script may use: streams, relations, views, queries and functions of the user.

The settings of time are here too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Union
from unicodedata import category

from millpond.errors import CqlWarning, Position, StateError
from millpond.functions.processes import FunctionProcesses
from millpond.functions.user_function import UserFunction
from millpond.identities import QueryId, RelationId, StreamId
from millpond.schema import Schema
from millpond.spelling import suggestion

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


VIOLATES = "violates"
"""The column behind those of a tuple that broke a constraint: the constraint's name."""


@dataclass(frozen=True)
class Constraint:
    """What is promised of a stream: ORDERED BY a column, ``within`` so many rows or ticks.

    A tuple comes at most that far behind one with a larger value. A tuple that breaks it is put
    aside; ``on_violation`` says what becomes of the queries that rely on it: they ``stop``, or it
    is only counted.
    """

    name: str
    column: int
    within: int
    is_of_rows: bool
    on_violation: str = "stop"


@dataclass(frozen=True)
class StreamEntry:
    """A declared stream. ``timestamp_column`` None means time of arrival."""

    name: str
    schema: Schema
    timestamp_column: int | None = None
    delay_ticks: int = 0
    source: Connector = Connector("push")
    has_other_delay: bool = field(default=False, compare=False)
    """Whether ALTER has changed the delay that was declared."""
    skips_bad_rows: bool = False
    """Whether rows that its source cannot read are put aside; else the first one is an error."""
    dead_letters: Connector | None = None
    """The sink that gets them, if one does."""
    constraints: tuple[Constraint, ...] = ()
    created_with: tuple[Constraint, ...] | None = field(default=None, compare=False)
    """The constraints of its CREATE, if ALTER STREAM has changed them since."""

    def constraint(self, name: str) -> Constraint | None:
        """The constraint of a name, if there is one."""
        return next((c for c in self.constraints if c.name.lower() == name.lower()), None)

    @cached_property
    def identity(self) -> StreamId:
        """By which the stream is found."""
        return StreamId(self.name)


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

    @cached_property
    def identity(self) -> QueryId:
        """By which the query is found."""
        return QueryId(self.name)


Entry = Union[StreamEntry, RelationEntry, ViewEntry, QueryEntry]

KINDS: dict[str, type[Entry]] = {
    "stream": StreamEntry,
    "relation": RelationEntry,
    "view": ViewEntry,
    "query": QueryEntry,
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
    _unnamed: int = field(default=1, compare=False, repr=False)
    """No name q1, q2, … with a smaller number is free."""

    def free_name(self) -> str:
        """The first of q1, q2, … that is free."""
        while f"q{self._unnamed}" in self.entries:
            self._unnamed += 1
        return f"q{self._unnamed}"

    def get(self, name: str) -> Entry | None:
        """The entry called ``name``, or None."""
        return self.entries.get(name.lower())

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
        return Catalog(self.tick_microseconds, dict(self.entries), functions, processes)


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
