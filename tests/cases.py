"""A test case: declarations, queries, and a schedule of what reaches the engine when.

The inputs of the reference evaluator are computed from the schedule, so that cutting a case down
keeps it consistent. ``str(case)`` is a Python script that repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tests import reference

EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Stream:
    """A declared stream; its first column is its timestamp."""

    name: str
    schema: tuple[tuple[str, str], ...]
    delay: int = 0

    def ddl(self):
        """The CREATE statement."""
        delay = f" DELAY {self.delay}" if self.delay else ""
        by = f" TIMESTAMP BY {self.schema[0][0]}{delay}"
        return f"CREATE STREAM {self.name} ({columns(self.schema)}){by} FROM push();"


@dataclass(frozen=True)
class Relation:
    """A declared relation; its content and its changes are pushed."""

    name: str
    schema: tuple[tuple[str, str], ...]

    def ddl(self):
        """The CREATE statement."""
        return (
            f"CREATE RELATION {self.name} ({columns(self.schema)}) FROM push() "
            "WITH (changes = true);"
        )


def columns(schema):
    """A schema as it is written in a CREATE statement."""
    return ", ".join(f"{name} {type_name}" for name, type_name in schema)


# Actions. ``call`` names the engine's method and its arguments.


@dataclass(frozen=True)
class Push:
    """Tuples arrive on a stream, in this order."""

    target: str
    rows: tuple[tuple, ...]

    def call(self, case):
        """The call on the engine."""
        names = case.names(self.target)
        return "push", (self.target, [dict(zip(names, row, strict=True)) for row in self.rows])


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


@dataclass(frozen=True)
class Advance:
    """A heartbeat: nothing at or before ``ts`` will follow."""

    target: str
    ts: int

    def call(self, case):
        """The call on the engine."""
        return "advance", (self.target, self.ts)


@dataclass(frozen=True)
class Run:
    """The engine works until it has nothing to do."""

    def call(self, case):
        """The call on the engine."""
        return "run_until_idle", ()


@dataclass(frozen=True)
class Case:
    """One database, its queries, and one schedule."""

    streams: tuple[Stream, ...]
    relations: tuple[Relation, ...]
    views: dict[str, str]
    queries: dict[str, str]
    schedule: tuple[Push | Change | Advance | Run, ...]
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
        """The statements that register the queries."""
        return [self.create(name) for name in self.queries]

    def create(self, query):
        """The statement that registers a query."""
        policy = " ON ERROR SKIP" if query in self.skipping else ""
        return f"CREATE QUERY {query}{policy} AS {self.queries[query]};"

    def names(self, target):
        """The column names of a stream or relation."""
        (entry,) = (e for e in self.streams + self.relations if e.name == target)
        return [name for name, _ in entry.schema]

    def ticks(self, value):
        """A timestamp value as a count of ticks."""
        if isinstance(value, datetime):
            return (value - EPOCH) // timedelta(microseconds=1) // self.tick_microseconds
        return value

    def admitted(self, stream):
        """(elements, late tuples) of a stream, from the schedule."""
        arrivals = []
        for action in self.schedule:
            if getattr(action, "target", None) == stream.name:
                if isinstance(action, Advance):
                    arrivals.append(("advance", action.ts))
                else:
                    arrivals += [("tuple", self.ticks(row[0]), row) for row in action.rows]
        return reference.admit(arrivals, stream.delay)

    def late(self):
        """The late tuples of each stream."""
        return {s.name: [row for _, row in self.admitted(s)[1]] for s in self.streams}

    def expected(self, query):
        """What the reference evaluator says a query's output is."""
        policy = "skip" if query in self.skipping else "stop"
        return reference.evaluate(self.queries[query], *self.reference_arguments(), policy)

    def left_out(self, query):
        """What the reference evaluator says a query with ON ERROR SKIP leaves out."""
        return reference.left_out(self.queries[query], *self.reference_arguments())

    def reference_arguments(self):
        """The arguments of ``reference.evaluate`` after the text."""
        streams = {s.name: (s.schema, self.admitted(s)[0]) for s in self.streams}
        relations = {r.name: (r.schema, self.changes(r)) for r in self.relations}
        return streams, relations, self.views, self.tick_microseconds

    def changes(self, relation):
        """The changes of a relation as (ts or None, +1 or -1, row), from the schedule."""
        return [
            (ts, 1 if op == "+" else -1, row)
            for action in self.schedule
            if isinstance(action, Change) and action.target == relation.name
            for ts, op, row in action.rows
        ]

    def with_schedule(self, schedule):
        """The same case under another schedule."""
        return replace(self, schedule=tuple(schedule))

    def only(self, query):
        """The same case with one of its queries."""
        return replace(self, queries={query: self.queries[query]})

    def __str__(self):
        lines = [f"# {self.title}"] if self.title else []
        lines.append("import datetime")
        lines.append("from millpond import Engine")
        lines.append(f"with Engine(settings={{'strategy': {self.strategy!r}}}) as e:")
        statements = self.ddl().splitlines() + self.query_ddl()
        lines += ['    e.execute("""', *("        " + s for s in statements), '    """)']
        for action in self.schedule:
            method, arguments = action.call(self)
            lines.append(f"    e.{method}({', '.join(map(repr, arguments))})")
        lines.append("    e.finish()")
        lines += [f"    print(e.results({name!r}).to_pylist())" for name in self.queries]
        return "\n".join(lines)
