"""A test case: declarations, queries, and a schedule of what reaches the engine when.

The inputs of the reference evaluator are computed from the schedule, so that cutting a case down
keeps it consistent. ``str(case)`` is a Python script that repeats it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property

from tests import reference
from tests.history import History
from tests.reference_values import Map, Named


@dataclass(frozen=True)
class Stream:
    """A declared stream; its first column is its timestamp."""

    name: str
    schema: tuple[tuple[str, str], ...]
    delay: int = 0
    constraints: tuple[str, ...] = ()

    def ddl(self):
        """The CREATE statement."""
        delay = f" DELAY {self.delay}" if self.delay else ""
        by = f" TIMESTAMP BY {self.schema[0][0]}{delay}"
        by += "".join(f" {each}" for each in self.constraints)
        return f"CREATE STREAM {self.name} ({columns(self.schema)}){by} FROM push();"


@dataclass(frozen=True)
class Relation:
    """A declared relation; its changes have times, or take effect when they are made."""

    name: str
    schema: tuple[tuple[str, str], ...]
    timed: bool = True

    def ddl(self):
        """The CREATE statement."""
        changes = " WITH (changes = true)" if self.timed else ""
        return f"CREATE RELATION {self.name} ({columns(self.schema)}) FROM push(){changes};"


def columns(schema):
    """A schema as it is written in a CREATE statement."""
    return ", ".join(f"{name} {type_name}" for name, type_name in schema)


def named_literal(value):
    """A STRUCT or MAP as it is written in a statement."""
    if isinstance(value, Map):
        parts = [literal(each) for pair in value.items() for each in pair]
        return f"MAP[{', '.join(parts)}]" if parts else "'{}'"
    return f"STRUCT({', '.join(f'{literal(each)} AS {name}' for name, each in value.items())})"


def literal(value):
    """A value as it is written in a statement."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, Named):
        return named_literal(value)
    if isinstance(value, tuple):
        return f"ARRAY[{', '.join(map(literal, value))}]" if value else "'[]'"
    if isinstance(value, Decimal):
        return f"DECIMAL '{value}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


# Actions. ``call`` names the engine's method and its arguments; ``happen`` says what that means.


@dataclass(frozen=True)
class Push:
    """Tuples arrive on a stream, in this order; or rows are added to a relation now."""

    target: str
    rows: tuple[tuple, ...]

    def call(self, case):
        """The call on the engine."""
        names = case.names(self.target)
        return "push", (self.target, [dict(zip(names, row, strict=True)) for row in self.rows])

    def happen(self, history):
        """What it does."""
        if self.target in history.arrivals:
            history.arrive(self.target, self.rows)
        else:
            history.change_now(self.target, 1, self.rows)


@dataclass(frozen=True)
class Change:
    """A relation changes; an element is (ts, '+' or '-', row), ts None meaning the beginning."""

    target: str
    rows: tuple[tuple, ...]

    def call(self, case):
        """The call on the engine."""
        names = case.names(self.target)
        rows = [(ts, op, dict(zip(names, row, strict=True))) for ts, op, row in self.rows]
        return "push_changes", (self.target, rows)

    def happen(self, history):
        """What it does: the changes come in order of time, so all before the last is promised."""
        for ts, op, row in self.rows:
            history.change(self.target, ts, 1 if op == "+" else -1, row)
        last = max((ts for ts, _, _ in self.rows if ts is not None), default=None)
        if last is not None:
            history.promise(self.target, last - 1)


@dataclass(frozen=True)
class Insert:
    """INSERT INTO a relation."""

    target: str
    rows: tuple[tuple, ...]

    def call(self, case):
        """The call on the engine."""
        rows = ", ".join(f"({', '.join(map(literal, row))})" for row in self.rows)
        return "execute", (f"INSERT INTO {self.target} VALUES {rows}",)

    def happen(self, history):
        """What it does."""
        history.change_now(self.target, 1, self.rows)


@dataclass(frozen=True)
class Delete:
    """DELETE FROM a relation."""

    target: str
    predicate: str = ""

    def call(self, case):
        """The call on the engine."""
        where = f" WHERE {self.predicate}" if self.predicate else ""
        return "execute", (f"DELETE FROM {self.target}{where}",)

    def happen(self, history):
        """What it does."""
        gone = history.selected(self.target, "*", self.predicate)
        history.change_now(self.target, -1, gone)


@dataclass(frozen=True)
class Update:
    """UPDATE of one column of a relation."""

    target: str
    column: str
    value: str
    predicate: str = ""

    def call(self, case):
        """The call on the engine."""
        where = f" WHERE {self.predicate}" if self.predicate else ""
        return "execute", (f"UPDATE {self.target} SET {self.column} = {self.value}{where}",)

    def happen(self, history):
        """What it does: the old rows go and the new ones come at the same time."""
        names = history.case.names(self.target)
        new = ", ".join(self.value if name == self.column else name for name in names)
        gone = history.selected(self.target, "*", self.predicate)
        come = history.selected(self.target, new, self.predicate)
        history.change_now(self.target, -1, gone)
        history.change_now(self.target, 1, come)


@dataclass(frozen=True)
class Advance:
    """A heartbeat: nothing at or before ``ts`` will follow."""

    target: str
    ts: int

    def call(self, case):
        """The call on the engine."""
        return "advance", (self.target, self.ts)

    def happen(self, history):
        """What it does."""
        history.advance(self.target, self.ts)


@dataclass(frozen=True)
class Punctuate:
    """A punctuation: no tuple that follows is like ``where``, which none in the schedule is."""

    target: str
    where: str

    def call(self, case):
        """The call on the engine."""
        return "punctuate", (self.target, self.where)

    def happen(self, history):
        """Nothing: answers must not notice."""


@dataclass(frozen=True)
class Run:
    """The engine works until it has nothing to do."""

    def call(self, case):
        """The call on the engine."""
        return "run_until_idle", ()

    def happen(self, history):
        """What it does."""
        history.run()


@dataclass(frozen=True)
class Register:
    """A query comes while data flows; ``start``: it sees streams from a time on, if it can.

    Whether an engine still knows what was is not for the reference to say: it may refuse.
    """

    query: str
    start: str = ""
    """BEGINNING or a number of ticks; nothing: what comes from now on."""

    def call(self, case):
        """The call on the engine."""
        return "execute", (case.create(self.query, self.start),)

    def happen(self, history):
        """What it does."""
        history.register(self.query, self.start)


@dataclass(frozen=True)
class Drop:
    """A query goes; what it has put out by then is part of its answer."""

    query: str

    def call(self, case):
        """The call on the engine."""
        return "drop", (self.query,)

    def happen(self, history):
        """Nothing: other queries must not notice."""


@dataclass(frozen=True)
class Alter:
    """A window of a query gets another length, when the query has answered all it can.

    An engine whose operators have not come equally far may refuse it.
    """

    query: str
    change: str
    """What follows WINDOW OF."""
    text: str
    """The query as it is then."""

    def call(self, case):
        """The call on the engine, which has nothing to do just then."""
        return "execute", (f"ALTER QUERY {self.query} SET WINDOW OF {self.change}",)

    def happen(self, history):
        """What it does."""
        history.run()
        history.alter(self.query, self.text)


@dataclass(frozen=True)
class Case:
    """One database, its queries, and one schedule."""

    streams: tuple[Stream, ...]
    relations: tuple[Relation, ...]
    views: dict[str, str]
    queries: dict[str, str]
    schedule: tuple
    strategy: str = "fifo"
    tick_microseconds: int = 1
    title: str = field(default="", compare=False)
    skipping: frozenset[str] = frozenset()
    """The queries with ON ERROR SKIP."""

    def ddl(self):
        """The statements that declare everything but the queries."""
        tick = [f"SET tick = '{self.tick_microseconds} microseconds';"]
        views = [f"CREATE VIEW {name} AS {text};" for name, text in self.views.items()]
        declared = [entry.ddl() for entry in self.streams + self.relations]
        return "\n".join((tick if self.tick_microseconds != 1 else []) + declared + views)

    def query_ddl(self):
        """The statements that register the queries that are there from the start."""
        return [self.create(name) for name in self.queries if name not in self.latecomers]

    def create(self, query, start=""):
        """The statement that registers a query."""
        policy = " ON ERROR SKIP" if query in self.skipping else ""
        policy += f" FROM {start}" if start else ""
        return f"CREATE QUERY {query}{policy} AS {self.queries[query]};"

    @property
    def latecomers(self):
        """The queries that are registered while data flows."""
        return [action.query for action in self.schedule if isinstance(action, Register)]

    @property
    def altered(self):
        """The queries that are altered while data flows."""
        return [action.query for action in self.schedule if isinstance(action, Alter)]

    @property
    def dropped(self):
        """The queries that are dropped while data flows."""
        return [action.query for action in self.schedule if isinstance(action, Drop)]

    def names(self, target):
        """The column names of a stream or relation."""
        (entry,) = (e for e in self.streams + self.relations if e.name == target)
        return [name for name, _ in entry.schema]

    @cached_property
    def history(self):
        """What the schedule comes to."""
        return History(self)

    def admitted(self, stream):
        """(elements, late tuples) of a stream."""
        return self.history.admitted(stream)

    def late(self):
        """The late tuples of each stream."""
        return {s.name: [row for _, row in self.admitted(s)[1]] for s in self.streams}

    def expected(self, query):
        """What the reference evaluator says a query's output is, if it is never dropped."""
        policy = "skip" if query in self.skipping else "stop"
        lives = self.history.lives_of(query)
        return reference.evaluate_lives(
            [(since, text, self._arguments(missed)) for since, text, missed in lives], policy
        )

    def left_out(self, query):
        """What the reference evaluator says a query with ON ERROR SKIP leaves out."""
        return reference.left_out(self.queries[query], *self.reference_arguments(query))

    def reference_arguments(self, query=None):
        """The arguments of ``reference.evaluate`` after the text, as it is at last."""
        return self._arguments(self.history.missed_by(query))

    def _arguments(self, missed):
        """The same for a query for which some is over."""
        elements, changes = self.history.seen_without(missed)
        streams = {s.name: (s.schema, elements[s.name]) for s in self.streams}
        relations = {r.name: (r.schema, changes[r.name]) for r in self.relations}
        return streams, relations, self.views, self.tick_microseconds

    def inputs_of(self, text):
        """The streams and relations that a query reads, itself or by views."""
        words = set(re.findall(r"\w+", text))
        inside = (self.inputs_of(each) for name, each in self.views.items() if name in words)
        named = {each.name for each in self.streams + self.relations} & words
        return named.union(*inside)

    def changes(self, relation):
        """The changes of a relation as (ts or None, +1 or -1, row)."""
        return self.history.changes[relation.name]

    def with_schedule(self, schedule):
        """The same case under another schedule."""
        return replace(self, schedule=tuple(schedule))

    def only(self, query):
        """The same case with one of its queries."""
        return self.without([name for name in self.queries if name != query])

    def without(self, queries):
        """The same case without some of its queries."""
        return replace(
            self,
            queries={n: text for n, text in self.queries.items() if n not in queries},
            skipping=self.skipping - set(queries),
            schedule=tuple(a for a in self.schedule if getattr(a, "query", None) not in queries),
        )

    def __str__(self):
        lines = [f"# {self.title}"] if self.title else []
        lines += ["import datetime", "from decimal import Decimal"]
        lines.append("from millpond import Engine")
        lines.append(f"with Engine(settings={{'strategy': {self.strategy!r}}}) as e:")
        statements = self.ddl().splitlines() + self.query_ddl()
        lines += ['    e.execute("""', *("        " + s for s in statements), '    """)']
        for action in self.schedule:
            if isinstance(action, Alter):
                lines.append("    e.run_until_idle()")
            if isinstance(action, Drop):
                lines.append(f"    print(e.results({action.query!r}).to_pylist())")
            method, arguments = action.call(self)
            lines.append(f"    e.{method}({', '.join(map(repr, arguments))})")
        lines.append("    e.finish()")
        kept = [name for name in self.queries if name not in self.dropped]
        lines += [f"    print(e.results({name!r}).to_pylist())" for name in kept]
        return "\n".join(lines)
