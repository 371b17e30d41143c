"""Random valid CQL queries over given streams, relations and views.

Everything is written with types in mind, so that no query is refused; sizes are estimated, so that
the naive evaluator stays quick. Numbers stay exactly representable except in plain projections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import pairwise

from tests.pattern_generator import PatternGenerator

DECIMAL = "DECIMAL(12, 3)"
NUMBERS = ("INT", "BIGINT", "DOUBLE", DECIMAL)
ARRAYS = ("ARRAY<INT>", "ARRAY<BIGINT>", "ARRAY<STRING>")
STRUCT, MAP = "STRUCT<n INT, w STRING>", "MAP<STRING, INT>"
FIELDS = (("n", "INT"), ("w", "STRING"))
NESTED = (STRUCT, MAP)
TYPES = (*NUMBERS, "STRING", "BINARY", "BOOLEAN", "DATE", "TIMESTAMP", *ARRAYS[:2], *NESTED)
STRINGS = ("", "a", "b", "ab", "B")
BINARIES = (b"", b"a", b"\xca\xfe", b"ab", b"\x00")
DATES = tuple(map(date.fromisoformat, ("2023-12-31", "2024-01-01", "2024-02-29")))
TIMESTAMPS = tuple(
    map(datetime.fromisoformat, ("2023-12-31 23:59:59", "2024-01-01 00:00:00.000012"))
)
LENGTHS = ("SECOND", "MINUTES", "HOURS", "DAY")
WIDTHS = ("10 seconds", "7 minutes", "1 hour", "3 microseconds")
ZONES = ("Europe/Berlin", "Asia/Kolkata", "America/Sao_Paulo")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
MAX_PAIRS = 2000
EPOCH = datetime(1970, 1, 1)
VALUES = {"DATE": DATES, "TIMESTAMP": TIMESTAMPS}


def summed(type_name):
    """The type of a sum."""
    return type_name if type_name in ("DOUBLE", DECIMAL) else "BIGINT"


def element_of(type_name):
    """The type of the elements of an ARRAY."""
    return type_name.removeprefix("ARRAY<").removesuffix(">")


def mean(type_name):
    """The type of a mean."""
    return DECIMAL if type_name == DECIMAL else "DOUBLE"


@dataclass(frozen=True)
class Table:
    """Something a FROM clause can name; ``rows`` is about how many rows or elements it has."""

    name: str
    schema: tuple[tuple[str, str], ...]
    is_stream: bool
    rows: int
    is_view: bool = False
    in_ticks: bool = False
    """Whether a time in it is a number, as the bounds of its windows are then."""

    @property
    def liking(self):
        """How often it is drawn: streams and views are where things happen."""
        return 1 + self.is_stream + self.is_view


@dataclass(frozen=True)
class Column:
    """A column an expression can name."""

    qualifier: str
    name: str
    type: str


@dataclass(frozen=True)
class Source:
    """A FROM clause or an item of it; ``comma`` marks a join that still lacks its condition."""

    text: str
    columns: tuple[Column, ...]
    names_stream: bool
    rows: int
    comma: bool = False
    ends: tuple[str, ...] = ()
    """The columns that hold the end of a window."""
    is_one_stream: bool = False
    """Whether it is one stream through a window, and nothing else."""
    times: tuple[tuple[str, str], ...] = ()
    """The streams in it, and the type of their times."""


@dataclass(frozen=True)
class Query:
    """A query; ``is_stream`` says whether it says Istream, Dstream or Rstream itself."""

    text: str
    schema: tuple[tuple[str, str], ...]
    rows: int
    aggregation: bool = False
    names_stream: bool = False
    is_stream: bool = False
    can_end: bool = False
    """Whether EMIT FINAL can stand behind it."""
    unread: tuple[str, ...] = ()
    """The parts of its WITH that it does not read."""

    def becomes_stream(self):
        """Whether the query is a stream at the top level, where the default Istream applies."""
        return self.is_stream or (self.names_stream and not self.aggregation)


class QueryGenerator(PatternGenerator):
    """Draws queries; all choices come from one ``random.Random``."""

    def __init__(self, random, tables):
        self.random = random
        self.tables = list(tables)
        self.aliases = self.outputs = self.nested = 0
        self.beyond = ()
        """The columns of the query around the one that a subquery is being drawn for."""
        self.of_time = 0.08
        """How often a WHERE compares with the time."""
        self.of_patterns = 0.05
        """How often a stream is one of the matches in it."""
        self.is_in_order = False

    def chance(self, probability):
        return self.random.random() < probability

    def weighted(self, **weights):
        """One of the names, drawn with its weight."""
        return self.random.choices(list(weights), list(weights.values()))[0]

    def some(self, items, least, most):
        return self.random.sample(items, min(len(items), self.random.randint(least, most)))

    # Whole queries.

    def top_level(self):
        """A query as a user would register it."""
        self.aliases = 0
        if self.chance(0.12):
            return self.with_names()
        query = self.relation(self.random.choice([0, 1, 1, 2]))
        if self.chance(0.06):
            query = self.bare_operation(query)
        kind = self.weighted(said=4, outright=2, default=4)
        if kind == "outright":
            return self.outright(query)
        return self.to_stream(query) if kind == "said" else query

    def with_names(self):
        """WITH and a query that may read what it names."""
        known, heads = list(self.tables), []
        for number in range(self.random.randint(1, 2)):
            query = self.relation(self.random.choice([0, 1]))
            names = tuple(f"n{number}{place}" for place in range(len(query.schema)))
            is_renamed = self.chance(0.4)
            schema = tuple((n, t) for n, (_, t) in zip(names, query.schema, strict=True))
            columns = f" ({', '.join(names)})" if is_renamed else ""
            heads.append(f"w{number}{columns} AS ({query.text})")
            table = self.table_of(f"w{number}", query)
            table = replace(table, schema=schema) if is_renamed else table
            self.tables += [table] * 4
        query = self.relation(self.random.choice([0, 1]))
        query = self.to_stream(query) if self.chance(0.4) else query
        self.tables = known
        read, unread = query.text, []
        for number, head in reversed(list(enumerate(heads))):
            if re.search(rf"\bw{number}\b", read):
                read += head
            else:
                unread.append(head)
        text = f"WITH {', '.join(heads)} {query.text}"
        return replace(query, text=text, unread=(*query.unread, *unread))

    def bare_operation(self, query):
        """A set operation of a query with tables that have its types, by their names alone."""
        types = [type_name for _, type_name in query.schema]
        fitting = [t for t in self.tables if [x for _, x in t.schema] == types]
        if not fitting:
            return self.bare_tables()
        table = self.random.choice(fitting)
        word = self.random.choice(["UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
        return replace(
            query,
            text=f"({query.text}) {word} {table.name}",
            rows=query.rows + table.rows,
            names_stream=query.names_stream or table.is_stream,
            can_end=False,
        )

    def bare_tables(self):
        """A set operation of one table with itself through another window."""
        table = self.random.choice(self.tables)
        word = self.random.choice(["UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
        window = " [ROWS 2]" if table.is_stream else ""
        text = f"{table.name} {word} {table.name}{window}"
        return Query(text, table.schema, 2 * table.rows, names_stream=table.is_stream)

    def outright(self, query):
        """A query that is said to be a relation or a stream."""
        word = self.random.choice(["RELATION", "STREAM"])
        is_stream = word == "STREAM"
        return replace(
            query, text=f"{word} {query.text}", is_stream=is_stream, names_stream=is_stream
        )

    def relation(self, depth):
        """A query without a relation-to-stream operator."""
        kind = self.weighted(select=5, grouped=4, combined=1.5)
        if kind == "combined":
            return self.combined(depth)
        return self.grouped(depth) if kind == "grouped" else self.select(depth)

    def to_stream(self, query):
        """Istream, Dstream or Rstream of a query, in either syntax, or EMIT FINAL behind it."""
        if query.can_end and self.chance(0.6):
            return replace(query, text=f"{query.text} EMIT FINAL", is_stream=True)
        kind = self.weighted(ISTREAM=3, DSTREAM=2, RSTREAM=2)
        as_word = query.text.startswith("SELECT ") and " DISTINCT " not in query.text[:20]
        combined = any(f" {word} " in query.text for word in ("UNION", "EXCEPT", "INTERSECT"))
        items, keyword, rest = query.text.removeprefix("SELECT ").partition(" FROM ")
        is_plain = "(" not in items and "," in items
        if as_word and not combined and is_plain and self.chance(0.3):
            text = f"SELECT {kind.capitalize()}({items}){keyword}{rest}"
        elif as_word and not combined and self.chance(0.6):
            text = f"SELECT {kind} " + query.text.removeprefix("SELECT ")
        else:
            text = f"{kind}({query.text})"
        rows = query.rows * (15 if kind == "RSTREAM" else 2)
        return replace(query, text=text, is_stream=True, rows=rows)

    def select(self, depth):
        """SELECT … FROM … WHERE … without aggregation."""
        source = self.source(depth)
        distinct = "DISTINCT " if self.chance(0.12) else ""
        if self.chance(0.08) and len({c.name for c in source.columns}) == len(source.columns):
            items, schema = "*", tuple((c.name, c.type) for c in source.columns)
        else:
            items, schema = self.projection(source, depth)
        rest = f" FROM {source.text}{self.where(source, depth)}"
        if not distinct and self.chance(0.24):
            return self.ranked(items, schema, source, rest)
        text = f"SELECT {distinct}{items}{rest}"
        stream, ends = source.names_stream, bool(source.ends)
        return Query(text, schema, source.rows, names_stream=stream, can_end=ends)

    def ranked(self, items, schema, source, rest):
        """A SELECT with a LIMIT, or with ranks of which mostly the first are asked for."""
        columns = source.columns
        if self.chance(0.35):
            ties = " WITH TIES" if self.chance(0.4) else ""
            rest += f" ORDER BY {self.order(columns)} LIMIT {self.random.randint(1, 4)}{ties}"
            text = f"SELECT {items}{rest}"
            return Query(text, schema, 4, aggregation=True, names_stream=source.names_stream)
        by = f"{self.partition(columns)} " if self.chance(0.6) else ""
        if self.chance(0.6):
            return self.over(items, schema, source, rest, by)
        function = self.random.choice(["ROW_NUMBER", "RANK", "DENSE_RANK"])
        self.outputs += 1
        rank = f"n{self.outputs}"
        over = f"{function}() OVER ({by}ORDER BY {self.order(columns)}) AS {rank}"
        text = f"SELECT {items}, {over}{rest}"
        schema = (*schema, (rank, "BIGINT"))
        if self.chance(0.7):
            symbol = self.random.choice(["<=", "<", "="])
            text = f"SELECT * FROM ({text}) r WHERE {rank} {symbol} {self.random.randint(1, 3)}"
        return Query(text, schema, source.rows, aggregation=True, names_stream=source.names_stream)

    def over(self, items, schema, source, rest, by):
        """A SELECT with one or two functions of rows in order."""
        texts = []
        for _ in range(self.random.choice([1, 1, 2])):
            call, type_name, has_frame, has_order = self.over_call(source.columns)
            order = f"ORDER BY {self.order(source.columns)}" if has_order else ""
            if has_frame and has_order and self.chance(0.6):
                order = self.framed(source.columns, order)
            self.outputs += 1
            while f"o{self.outputs}" in dict(schema):  # a column of a view that kept its name
                self.outputs += 1
            texts.append(f"{call} OVER ({by}{order}) AS o{self.outputs}")
            schema = (*schema, (f"o{self.outputs}", type_name))
        text = f"SELECT {items}, {', '.join(texts)}{rest}"
        return Query(text, schema, source.rows, aggregation=True, names_stream=source.names_stream)

    def over_call(self, columns):
        """(text, type, whether a frame may follow, whether there is an order)."""
        kind = self.weighted(
            rows=1, count=1, sum=2, avg=1, min=1, max=1, first_value=2, last_value=2, lag=2, lead=2,
            ntile=2,
        )  # fmt: skip
        has_order = kind in ("lag", "lead", "ntile", "first_value", "last_value")
        if kind == "ntile":
            return f"ntile({self.random.randint(1, 3)})", "BIGINT", False, True
        if kind == "rows":
            return "count(*)", "BIGINT", True, self.chance(0.8)
        type_name = self.type_of(columns, NUMBERS if kind in ("sum", "avg") else TYPES)
        argument = self.argument(type_name, columns)
        if kind in ("lag", "lead"):
            far = f", {self.random.randint(0, 3)}" if self.chance(0.5) else ""
            return f"{kind}({argument}{far})", type_name, False, True
        argument = self.digits(kind, argument, type_name)
        types = {"count": "BIGINT", "sum": summed(type_name), "avg": mean(type_name)}
        call, result = f"{kind}({argument})", types.get(kind, type_name)
        if self.chance(0.1) and kind in ("count", "sum", "avg", "min", "max"):
            call += f" FILTER (WHERE {self.predicate(columns, 1)})"
        return call, result, True, has_order or self.chance(0.85)

    def framed(self, columns, order):
        """An order with a frame; one by differences goes by a whole number or a TIMESTAMP."""
        keys = [c for c in columns if c.type in ("INT", "BIGINT", "TIMESTAMP")]
        kind = self.weighted(ROWS=3, RANGE=1, difference=3 if keys else 0)
        if kind != "difference":
            bounds = self.frame(kind == "ROWS", "{}")
            return f"{order} {kind} {bounds}"
        key = self.random.choice(keys)
        unit = "INTERVAL '{}' MICROSECONDS" if key.type == "TIMESTAMP" else "{}"
        order = f"ORDER BY {self.written(key, columns)}{self.random.choice(['', ' DESC'])}"
        order += self.random.choice(["", "", " NULLS FIRST", " NULLS LAST"])
        return f"{order} RANGE {self.frame(True, unit)}"

    def frame(self, has_offsets, unit):
        """Where a frame begins and ends."""
        least = -2 if has_offsets else 0
        most = 2 if has_offsets else 0
        start = self.random.choice([None, *range(least, most + 1)])
        end = self.random.choice([None, *range(least if start is None else start, most + 1)])
        if start is not None and start <= 0 == end and self.chance(0.5):
            return self.frame_bound(start, unit, "PRECEDING")
        first = self.frame_bound(start, unit, "PRECEDING")
        return f"BETWEEN {first} AND {self.frame_bound(end, unit, 'FOLLOWING')}"

    def frame_bound(self, offset, unit, unbounded):
        if offset is None:
            return f"UNBOUNDED {unbounded}"
        if offset == 0:
            return "CURRENT ROW"
        return f"{unit.format(abs(offset))} {'PRECEDING' if offset < 0 else 'FOLLOWING'}"

    def order(self, columns):
        """One or two sort keys."""
        keys = []
        for column in self.some(columns, 1, 2):
            key = self.written(column, columns)
            key += self.random.choice(["", " ASC", " DESC", " DESC"])
            keys.append(key + self.random.choice(["", "", " NULLS FIRST", " NULLS LAST"]))
        return ", ".join(keys)

    def projection(self, source, depth):
        pairs = []
        for _ in range(self.random.randint(1, 4)):
            if self.chance(0.55):
                column = self.random.choice(source.columns)
                pairs.append((self.written(column, source.columns), column.type, column.name))
            elif depth > 0 and self.chance(0.12):
                pairs.append((*self.scalar(source.columns), None))
            elif source.times and self.chance(0.1):
                alias, type_name = self.random.choice(source.times)
                pairs.append((f"tstamp({alias})", type_name, None))
            else:
                type_name = self.type_of(source.columns)
                pairs.append((self.expression(type_name, source.columns, 2), type_name, None))
        return self.aliased(pairs)

    def type_of(self, columns, allowed=TYPES):
        """A type, mostly one that some column has."""
        present = [c.type for c in columns if c.type in allowed]
        return self.random.choice(present if present and self.chance(0.85) else allowed)

    def aliased(self, pairs):
        """The select list and schema of (text, type, own name or None); names become unique."""
        items, schema = [], []
        for text, type_name, own in pairs:
            if own and own not in dict(schema) and self.chance(0.5):
                items.append(text)
                schema.append((own, type_name))
            else:
                self.outputs += 1
                while f"c{self.outputs}" in dict(schema):  # a column of a view that kept its name
                    self.outputs += 1
                items.append(f"{text} AS c{self.outputs}")
                schema.append((f"c{self.outputs}", type_name))
        return ", ".join(items), tuple(schema)

    def grouped(self, depth):
        """A query with GROUP BY, HAVING or aggregates."""
        source = self.source(depth)
        keys = [self.key(c, source.columns) for c in self.some(source.columns, 0, 2)]
        ends = [c for c in source.columns if f"{c.qualifier}.{c.name}" in source.ends]
        can_end = bool(ends) and self.chance(0.7)
        if can_end:
            keys.append((f"{ends[0].qualifier}.window_end", ends[0].type, "window_end"))
        pairs = [key for key in keys if self.chance(0.85)]
        self.is_in_order = source.is_one_stream
        pairs += [self.aggregate(source.columns) for _ in range(self.random.randint(0, 3))]
        if not pairs:
            pairs = [self.aggregate(source.columns)]
        self.is_in_order = False
        items, schema = self.aliased(pairs)
        text = f"SELECT {items} FROM {source.text}{self.where(source, depth)}"
        if keys:
            names = list(dict.fromkeys(key[0] for key in keys))
            text += " GROUP BY " + (", ".join(names) if can_end else self.grouping(names))
        if self.chance(0.25):
            text += f" HAVING {self.having(keys, source)}"
        stream = source.names_stream
        return Query(text, schema, 5, aggregation=True, names_stream=stream, can_end=can_end)

    def grouping(self, keys):
        """What stands behind GROUP BY: mostly the keys, at times several sets of them."""
        kind = self.weighted(plain=8, ROLLUP=1, CUBE=1, sets=1)
        if kind == "plain":
            return ", ".join(keys)
        if kind != "sets":
            inside = self.some(keys, 1, 2)
            outside = [key for key in keys if key not in inside]
            return ", ".join([*outside, f"{kind} ({', '.join(inside)})"])
        rest = self.random.choice(["()", keys[0], f"ROLLUP ({keys[-1]})"])
        return f"GROUPING SETS (({', '.join(keys)}), {rest})"

    def key(self, column, columns):
        """A grouping expression: (text, type, own name); never a constant."""
        text = self.written(column, columns)
        if self.chance(0.7):
            return text, column.type, column.name
        if column.type in NUMBERS:
            return f"{text} % 2", column.type, None
        if column.type == "STRING":
            return f"upper({text})", "STRING", None
        return f"({text} IS NULL)", "BOOLEAN", None

    def aggregate(self, columns):
        """(text, type, None) of an aggregate or an expression over aggregates."""
        first, type_name = self.aggregate_call(columns)
        if type_name in NUMBERS and self.chance(0.2):
            if self.chance(0.5):
                second, other = self.aggregate_call(columns, numeric=True)
                types = {type_name, other}
                type_name = next((t for t in ("DOUBLE", DECIMAL) if t in types), "BIGINT")
                return f"{first} {self.random.choice('+-')} {second}", type_name, None
            return f"coalesce({first}, 0)", type_name, None
        return first, type_name, None

    def aggregate_call(self, columns, numeric=False):
        """An aggregate, at times of some rows only: (text, type)."""
        text, type_name = self.unfiltered_call(columns, numeric)
        if self.chance(0.12):
            text += f" FILTER (WHERE {self.predicate(columns, 1)})"
        return text, type_name

    def unfiltered_call(self, columns, numeric):
        kind = self.weighted(
            rows=4, count=2, distinct=2, combinations=0.7, sum=3, avg=2, min=2, max=2, stddev=1,
            variance=1, percentile=1.5, approx_count_distinct=1, by=1.5, string_agg=0.7,
            array_agg=0.7,
            end=2 if self.is_in_order else 0,
        )  # fmt: skip
        if kind == "rows":
            return "count(*)", "BIGINT"
        if kind == "combinations":
            chosen = [self.written(column, columns) for column in self.some(columns, 2, 3)]
            return f"count(DISTINCT {', '.join(chosen)})", "BIGINT"
        if kind in ("count", "distinct", "approx_count_distinct"):
            argument = self.argument(self.type_of(columns), columns)
            opening = {"distinct": "count(DISTINCT "}.get(kind, f"{kind}(")
            return f"{opening}{argument})", "BIGINT"
        if kind == "string_agg" and not numeric:
            between = self.random.choice(["', '", "''", "'a'"])
            return f"string_agg({self.argument('STRING', columns)}, {between})", "STRING"
        if kind == "array_agg" and not numeric:
            type_name = self.random.choice(ARRAYS)
            return f"array_agg({self.argument(element_of(type_name), columns)})", type_name
        types = TYPES if kind in ("min", "max", "by", "end") else NUMBERS
        type_name = self.type_of(columns, NUMBERS if numeric else types)
        argument = self.argument(type_name, columns)
        if kind in ("by", "string_agg", "array_agg"):
            by = self.argument(self.type_of(columns), columns)
            return f"{self.random.choice(['max_by', 'min_by'])}({argument}, {by})", type_name
        if kind == "end":
            return f"{self.random.choice(['first', 'last'])}({argument})", type_name
        if kind == "percentile":
            return f"percentile({argument}, {self.random.choice([0, 0.25, 0.5, 0.9, 1])})", "DOUBLE"
        if kind == "sum":
            return f"sum({argument})", summed(type_name)
        if kind == "avg":
            return f"avg({self.digits(kind, argument, type_name)})", mean(type_name)
        result = type_name if kind in ("min", "max") else "DOUBLE"
        return f"{kind}({argument})", result

    def digits(self, kind, argument, type_name):
        """An argument with the digits of its type, which those of a mean follow from."""
        is_needed = kind == "avg" and type_name == DECIMAL
        return f"CAST({argument} AS {DECIMAL})" if is_needed else argument

    def argument(self, type_name, columns):
        """What is aggregated: mostly a column, and always something that depends on the row."""
        fitting = [c for c in columns if c.type == type_name]
        if fitting and self.chance(0.75):
            return self.written(self.random.choice(fitting), columns)
        if fitting and type_name in NUMBERS and self.chance(0.4):
            left, right = (self.written(self.random.choice(fitting), columns) for _ in range(2))
            return f"{left} {self.random.choice('+-*')} {right}"
        return self.expression(type_name, columns, 1)

    def having(self, keys, source):
        conditions, columns = [], source.columns
        for _ in range(self.random.randint(1, 2)):
            if keys and self.chance(0.25):
                conditions.append(f"{self.random.choice(keys)[0]} IS NOT NULL")
            elif self.chance(2 * self.of_time) and (turning := self.turning(source, True)):
                conditions.append(f"({turning})")
            else:
                call, type_name = self.aggregate_call(columns, numeric=True)
                limit = self.literal("BIGINT" if type_name == "INT" else type_name)
                conditions.append(f"{call} {self.random.choice(COMPARISONS)} {limit}")
        return self.random.choice([" AND ", " OR "]).join(conditions)

    def combined(self, depth):
        """UNION, EXCEPT or INTERSECT of two or three branches."""
        known = [type_name for table in self.tables for _, type_name in table.schema]
        types = [self.random.choice(known) for _ in range(self.random.randint(1, 2))]
        left = self.branch(types, depth)
        for _ in range(self.random.choice([1, 1, 1, 1, 2])):
            right = self.branch(types, depth)
            word = self.random.choice(["UNION", "EXCEPT", "INTERSECT"])
            word += self.random.choice(["", " ALL"])
            opened = f"({left.text})" if " UNION " in left.text or " EXCEPT " in left.text else None
            text = f"{opened or left.text} {word} {right.text}"
            if " INTERSECT " in left.text:
                text = f"({left.text}) {word} {right.text}"
            left = Query(
                text,
                left.schema,
                left.rows + right.rows,
                left.aggregation or right.aggregation,
                left.names_stream or right.names_stream,
            )
        return left

    def constants(self, types):
        """A SELECT without FROM."""
        pairs = [(f"CAST({self.literal(t)} AS {t})", t, None) for t in types]
        items, schema = self.aliased(pairs)
        return Query(f"SELECT {items}{' WHERE FALSE' if self.chance(0.1) else ''}", schema, 1)

    def branch(self, types, depth):
        """A SELECT whose columns have the given types."""
        if self.chance(0.06):
            return self.constants(types)
        source = self.source(depth, most=1)
        aggregation = self.chance(0.15)
        draw = self.aggregate_of if aggregation else self.simple
        items, schema = self.aliased([(draw(t, source.columns), t, None) for t in types])
        text = f"SELECT {items} FROM {source.text}{self.where(source, 0)}"
        return Query(text, schema, source.rows, aggregation, source.names_stream)

    def aggregate_of(self, type_name, columns):
        """An aggregate of exactly the given type."""
        if type_name == "BOOLEAN":
            return "count(*) > 1"
        if type_name == "BIGINT":
            return "count(*)"
        return f"max({self.simple(type_name, columns)})"

    def simple(self, type_name, columns):
        """A column or literal of exactly the given type."""
        fitting = [c for c in columns if c.type == type_name]
        if fitting:
            return self.written(self.random.choice(fitting), columns)
        literal = self.literal("INT" if type_name == "BIGINT" else type_name)
        return f"CAST({literal} AS BIGINT)" if type_name == "BIGINT" else literal

    # FROM.

    def source(self, depth, most=3):
        """A FROM clause of one to three items."""
        count = min(most, int(self.weighted(**{"1": 5, "2": 4, "3": 1})))
        first = self.item(depth, MAX_PAIRS)
        if count == 1:
            return first
        kinds = {"comma": 2, "JOIN": 3, "LEFT JOIN": 2, "RIGHT JOIN": 1, "FULL JOIN": 1}
        kinds |= {"CROSS JOIN": 0.7, "LEFT SEMI JOIN": 1.2, "LEFT ANTI JOIN": 1.2}
        comma = self.weighted(**kinds) == "comma"
        for _ in range(count - 1):
            if not comma and not self.nested and self.chance(0.1):
                first = self.lateral(first)
                continue
            other = self.item(depth - 1, MAX_PAIRS // max(first.rows, 1))
            del_comma = {k: w for k, w in kinds.items() if k != "comma"}
            first = self.join("," if comma else self.weighted(**del_comma), first, other)
        return first

    def join(self, kind, left, right):
        columns = left.columns + right.columns
        text = f"{left.text}{'' if kind == ',' else ' '}{kind} {right.text}"
        if kind not in (",", "CROSS JOIN"):
            text += f" ON {self.join_condition(left.columns, right.columns)}"
        if "SEMI" in kind or "ANTI" in kind:
            columns = left.columns
        rows = max(1, left.rows * right.rows // 3)
        names_stream = left.names_stream or right.names_stream
        times = left.times if columns == left.columns else left.times + right.times
        is_mixed = len({c.type for c in columns if c.name == "window_end"}) > 1
        ends = () if is_mixed else left.ends
        return Source(text, columns, names_stream, rows, kind == ",", ends, times=times)

    def lateral(self, left):
        """A join with a subquery that is one for each row of the left side."""
        self.nested += 1
        source, where = self.inner(left.columns)
        self.nested -= 1
        kind, alias = self.weighted(rows=3, whole=2, grouped=1, first=2), f"l{self.aliases}"
        if kind in ("rows", "first"):
            types = [self.type_of(source.columns) for _ in range(self.random.randint(1, 2))]
            items, schema = self.aliased([(self.simple(t, source.columns), t, None) for t in types])
            order = f" ORDER BY {self.order(source.columns)} LIMIT {self.random.randint(1, 2)}"
            rest = order if kind == "first" else ""
        else:
            key = self.key(self.random.choice(source.columns), source.columns)
            pairs = [self.aggregate(source.columns), *([key] if kind == "grouped" else [])]
            items, schema = self.aliased(pairs)
            rest = f" GROUP BY {key[0]}" if kind == "grouped" else ""
            rest += " HAVING count(*) > 1" if self.chance(0.2) else ""
        query = f"LATERAL (SELECT {items} FROM {source.text}{where}{rest}) {alias}"
        columns = tuple(Column(alias, name, type_name) for name, type_name in schema)
        word = self.random.choice([" CROSS JOIN", " JOIN", " LEFT JOIN"])
        on = "" if "CROSS" in word else f" ON {self.predicate(left.columns + columns, 1)}"
        return replace(
            left,
            text=f"{left.text}{word} {query}{on}",
            columns=left.columns + columns,
            rows=max(1, left.rows * source.rows // 3),
            comma=False,
            ends=(),
            is_one_stream=False,
        )

    def join_condition(self, left, right):
        """Mostly an equality; sometimes with more to it, sometimes none at all."""
        columns = left + right
        equality = self.equality(left, right)
        if equality is None or self.chance(0.12):
            return self.predicate(columns, 1)
        if self.chance(0.3):
            word = self.random.choice(["AND", "AND", "OR"])
            return f"{equality} {word} {self.predicate(columns, 1)}"
        return equality

    def equality(self, left, right):
        """x = y of one column of either side, None if no types fit."""
        pairs = [
            (x, y)
            for x in left
            for y in right
            if x.type == y.type or (x.type in NUMBERS and y.type in NUMBERS)
        ]
        if not pairs:
            return None
        named = [(x, y) for x, y in pairs if x.name == y.name != "t"]
        x, y = self.random.choice(named if named and self.chance(0.8) else pairs)
        return f"{x.qualifier}.{x.name} = {y.qualifier}.{y.name}"

    def item(self, depth, most_rows):
        """One item of FROM, with about ``most_rows`` rows at most."""
        weights = {"table": 10, "relation": 1, "windowed": 1, "stream": 1, "constants": 0.3}
        kind = self.weighted(**weights) if depth > 0 else "table"
        if kind == "table":
            table = self.random.choices(self.tables, [t.liking for t in self.tables])[0]
        elif kind in ("relation", "constants"):
            types = [self.random.choice(TYPES) for _ in range(2)]
            query = self.constants(types) if kind == "constants" else self.relation(depth - 1)
            opening = self.random.choice(["(", "Relation("])
            table = self.table_of(f"{opening}{query.text})", query)
        else:
            query = self.stream_query(depth - 1, kind)
            table = replace(self.table_of(f"({query.text})", query), is_stream=True)
        found = self.windowed(table, most_rows, must=kind == "windowed")
        type_name = "BIGINT" if table.in_ticks else "TIMESTAMP"
        own = (found.columns[0].qualifier, type_name)
        return replace(found, times=(own,)) if table.is_stream else found

    def table_of(self, name, query, is_view=False):
        """A query that others read."""
        text = query.text
        for part in query.unread:
            text = text.replace(part, "")
        words = set(re.findall(r"\w+", text))
        in_ticks = any(table.in_ticks for table in self.tables if table.name in words)
        is_stream = is_view and query.becomes_stream()
        return Table(name, query.schema, is_stream, query.rows, is_view, in_ticks)

    def stream_query(self, depth, kind):
        """A stream-valued subquery; a ``windowed`` one may rely on the default Istream."""
        query = self.relation(depth)
        if kind == "windowed" and query.becomes_stream():
            return query
        return self.to_stream(query)

    def windowed(self, table, most_rows, must):
        """The table under a new alias, with a window if it is a stream."""
        if table.is_stream and table.rows <= 60 and self.chance(self.of_patterns):
            table = self.matched(table)
        self.aliases += 1
        alias = f"t{self.aliases}"
        columns = tuple(Column(alias, name, type_name) for name, type_name in table.schema)
        text = f"{table.name} {self.random.choice(['', 'AS '])}{alias}"
        if not table.is_stream:
            return Source(text, columns, False, table.rows)
        if not must and table.rows <= most_rows and self.chance(0.12):
            return Source(text, columns, True, table.rows, is_one_stream=True)
        if self.chance(0.15):
            return self.with_bounds(table, text, columns, most_rows)
        if self.chance(0.08) and (bound := self.bound(columns)):
            rows = min(most_rows, table.rows)
            return Source(f"{text} [UNTIL {bound}]", columns, True, rows, is_one_stream=True)
        window, rows = self.window(columns, table.rows, most_rows)
        return Source(f"{text} [{window}]", columns, True, rows, is_one_stream=True)

    def matched(self, table):
        """The stream of the matches in a stream."""
        columns = [Column("", name, type_name) for name, type_name in table.schema]
        clause, schema = self.match_recognize(columns)
        return replace(table, name=f"{table.name} {clause}", schema=schema)

    def with_bounds(self, table, text, columns, most_rows):
        """The table by TUMBLE, HOP or SESSION."""
        window, length = self.sessions(columns) if self.chance(0.4) else self.hopping()
        window += f" WHERE {self.predicate(columns, 1)}" if self.chance(0.15) else ""
        if {"window_start", "window_end"} & set(dict(table.schema)):
            return Source(f"{text} [NOW]", columns, True, 3, is_one_stream=True)
        alias, bound = columns[0].qualifier, "BIGINT" if table.in_ticks else "TIMESTAMP"
        bounds = tuple(Column(alias, f"window_{word}", bound) for word in ("start", "end"))
        rows = min(most_rows, 3 * table.rows * length // 20 + 2)
        ends = (f"{alias}.window_end",)
        return Source(f"{text} [{window}]", columns + bounds, True, rows, False, ends, True)

    def hopping(self):
        """TUMBLE or HOP, whose windows each row is in are at most three, and its length."""
        slide = self.random.choice([1, 2, 3, 5])
        length = slide if self.chance(0.4) else self.random.randint(1, 3 * slide)
        window = f"TUMBLE {length}" if length == slide else f"HOP {length} SLIDE {slide}"
        window += f" OFFSET {self.random.randint(0, 4)}" if self.chance(0.3) else ""
        return window, length

    def sessions(self, columns):
        """SESSION, and how long one lasts, about."""
        gap, by = self.random.randint(1, 5), self.partition(columns)
        form = self.random.choice(["{0}", "{0} {1}", "{0} {1}", "{1} {0}"])
        return form.format(f"SESSION {gap}", by), 2 * gap

    def window(self, columns, rows, most_rows):
        """(text without brackets, rows it holds at most, about)."""
        tight = rows > most_rows
        kind = self.weighted(
            NOW=2, UNBOUNDED=0 if tight else 2, RANGE=3, SLIDE=2, ROWS=2, STEPS=1.5, PARTITION=2
        )
        length = self.random.choice([1, 2, 3] if tight else [0, 1, 2, 3, 5, 8, 13])
        size = self.random.randint(1, 3 if tight else 5)
        step = self.random.choice([1, 2, 3, 4])
        text, held = {
            "NOW": ("NOW", 3),
            "UNBOUNDED": ("UNBOUNDED", rows),
            "RANGE": (f"RANGE {length}{self.unit()}", rows * (length + 1) // 20 + 2),
            "SLIDE": (f"RANGE {length} SLIDE {step + 1}", rows * (length + 1) // 20 + 2),
            "ROWS": (f"ROWS {size}", size),
            "STEPS": (f"ROWS {size} SLIDE {step}", size),
            "PARTITION": (f"{self.partition(columns)} ROWS {size}", size * 5),
        }[kind]
        if kind == "PARTITION" and self.chance(0.25):
            text += f" SLIDE {step}"
        if self.chance(0.2):
            text += " PRECEDING"
        if self.chance(0.15):
            text += f" WHERE {self.predicate(columns, 1)}"
        return text, min(held, rows)

    def bound(self, columns):
        """A time that a row tells; None if it has none."""
        fitting = [c for c in columns if c.type in ("TIMESTAMP", "BIGINT", "INT")]
        if not fitting:
            return None
        named = [c for c in fitting if c.name == "t"]
        column = self.random.choice(named if named and self.chance(0.6) else fitting)
        subject, length = self.written(column, columns), self.random.randint(-2, 12)
        if column.type == "TIMESTAMP":
            return f"{subject} + INTERVAL '{length}' MICROSECONDS"
        return f"{subject} + {length}" if length >= 0 else subject

    def turning(self, source, aggregated=False):
        """A comparison with the time of the instant; None if no column has a time."""
        in_ticks = any(type_name == "BIGINT" for _, type_name in source.times)
        types = ("TIMESTAMP", "BIGINT", "INT") if in_ticks else ("TIMESTAMP",)
        fitting = [c for c in source.columns if c.type in types]
        if not fitting:
            return None
        named = [c for c in fitting if c.name == "t"]
        column = self.random.choice(named if named and self.chance(0.6) else fitting)
        subject = self.written(column, source.columns)
        if aggregated:
            subject = f"{self.random.choice(['min', 'max'])}({subject})"
        is_moment = column.type == "TIMESTAMP"
        length = f"INTERVAL '{self.random.randint(0, 9)}' MICROSECONDS" if is_moment else "3"
        now = "CURRENT_TIMESTAMP" if is_moment else "CURRENT_TIME"
        symbol = self.random.choice([*COMPARISONS, "<", "<=", ">", ">="])
        return self.random.choice(
            [
                f"{subject} {symbol} {now}",
                f"{subject} + {length} {symbol} {now}",
                f"{now} - {length} {symbol} {subject}",
                f"{now} - {subject} {symbol} {length}",
                f"{subject} BETWEEN {now} - {length} AND {now}",
            ]
        )

    def unit(self):
        """One tick is a microsecond."""
        return " MICROSECONDS" if self.chance(0.1) else ""

    def partition(self, columns):
        chosen = self.some(columns, 1, 2)
        return "PARTITION BY " + ", ".join(self.written(c, columns) for c in chosen)

    # Conditions.

    def where(self, source, depth):
        """A WHERE clause, perhaps with subqueries; comma joins get an equality in most cases."""
        conjuncts = []
        if source.comma and self.chance(0.7):
            aliases = list(dict.fromkeys(c.qualifier for c in source.columns))
            for left, right in pairwise(aliases):
                sides = [[c for c in source.columns if c.qualifier == a] for a in (left, right)]
                conjuncts.append(self.equality(*sides))
        if self.chance(0.35):
            conjuncts.append(self.predicate(source.columns, self.random.randint(0, 2)))
        if depth > 0 and self.chance(0.22):
            conjuncts.append(self.with_subquery(source.columns))
        if self.chance(self.of_time) and (turning := self.turning(source)):
            shape = self.weighted(plain=4, NOT=1, OR=2)
            if shape == "OR":
                other = self.predicate(source.columns, 0)
                turning = f"({turning} OR {self.turning(source)} OR {other})"
            conjuncts.append(f"NOT ({turning})" if shape == "NOT" else turning)
        conjuncts = [f"({c})" if " OR " in c else c for c in conjuncts if c]
        return " WHERE " + " AND ".join(conjuncts) if conjuncts else ""

    def with_subquery(self, columns):
        """A subquery predicate, sometimes negated or under an OR."""
        is_row = self.chance(0.12)
        predicate = self.row_in(columns) if is_row else self.subquery_predicate(columns)
        if not is_row and self.chance(0.2):
            predicate = f"NOT ({predicate})"
        if self.chance(0.25):
            predicate = f"({self.predicate(columns, 0)} OR {predicate})"
        return predicate

    def predicate(self, columns, depth):
        """A condition without subqueries."""
        if depth > 0 and self.chance(0.4):
            left, right = self.predicate(columns, depth - 1), self.predicate(columns, depth - 1)
            shape = self.weighted(AND=2, OR=2, NOT=1)
            return f"NOT ({left})" if shape == "NOT" else f"({left} {shape} {right})"
        column = self.random.choice([c for c in columns if c.name != "t"] or columns)
        if self.chance(0.1):
            column = self.random.choice(columns)
        type_name, subject = column.type, self.written(column, columns)
        if column.name == "t":
            time = self.random.randint(3, 25)
            if type_name == "TIMESTAMP":
                time = self.moment(EPOCH + timedelta(microseconds=time))
            return f"{subject} {self.random.choice(COMPARISONS[1:])} {time}"
        kind = self.weighted(compare=5, null=1, list=1, between=1, special=1)
        if kind == "null":
            return f"{subject} IS {self.random.choice(['', 'NOT '])}NULL"
        if type_name == "BOOLEAN":
            return subject if self.chance(0.5) else f"{subject} = {self.literal(type_name)}"
        return self.comparison(kind, subject, type_name, columns)

    def comparison(self, kind, subject, type_name, columns):
        negated = self.random.choice(["", "NOT "])
        if kind == "list":
            items = [self.literal(type_name) for _ in range(self.random.randint(1, 3))]
            items += ["NULL"] if self.chance(0.15) else []
            return f"{subject} {negated}IN ({', '.join(items)})"
        if kind == "between":
            low, high = sorted((self.literal(type_name), self.literal(type_name)))
            return f"{subject} {negated}BETWEEN {low} AND {high}"
        if kind == "special" and type_name == "STRING":
            if self.chance(0.3):
                pattern = self.random.choice(["^a", "b$", "[ab]b?", "^$"])
                return f"{negated}regexp_like({subject}, '{pattern}')"
            pattern = self.random.choice(["a%", "%b", "_", "%a%", "%"])
            return f"{subject} {negated}LIKE '{pattern}'"
        if kind == "special" and type_name in ARRAYS:
            wanted = self.expression(element_of(type_name), columns, 1)
            return f"{negated}array_contains({subject}, {wanted})"
        symbol = self.random.choice(COMPARISONS[1:] if self.chance(0.6) else COMPARISONS)
        if type_name in NUMBERS:
            type_name = self.random.choice(NUMBERS)
        elif type_name in ("DATE", "TIMESTAMP") and self.chance(0.2):
            return f"{subject} {symbol} '{self.random.choice(VALUES[type_name])}'"
        return f"{subject} {symbol} {self.expression(type_name, columns, 1)}"

    # Subqueries in expressions.

    def subquery_predicate(self, outer):
        kind = self.weighted(IN=3, EXISTS=3, quantified=2, scalar=2)
        if kind == "EXISTS":
            source, where = self.inner(outer)
            item = self.random.choice(["*", self.written(source.columns[0], source.columns)])
            negated = self.random.choice(["", "NOT "])
            return f"{negated}EXISTS (SELECT {item} FROM {source.text}{where})"
        if kind == "scalar":
            call, type_name = self.scalar(outer, numeric=True)
            subject = self.expression(type_name, outer, 1)
            return f"{subject} {self.random.choice(COMPARISONS)} {call}"
        column = self.random.choice(outer)
        subject = self.written(column, outer)
        query = self.one_column(outer, column.type)
        if kind == "IN":
            return f"{subject} {self.random.choice(['', 'NOT '])}IN ({query})"
        symbols = COMPARISONS[:2] if column.type == "BOOLEAN" else COMPARISONS
        quantifier = self.random.choice(["ALL", "ANY"])
        return f"{subject} {self.random.choice(symbols)} {quantifier} ({query})"

    def row_in(self, outer):
        """(a, b) IN (SELECT …)."""
        source, where = self.inner(outer)
        chosen = self.some(outer, 2, 2)
        items = [self.simple(column.type, source.columns) for column in chosen]
        row = ", ".join(self.written(column, outer) for column in chosen)
        return f"({row}) IN (SELECT {', '.join(items)} FROM {source.text}{where})"

    def one_column(self, outer, type_name):
        """A subquery of one column comparable with ``type_name``."""
        if self.chance(0.05):
            return self.constants([type_name]).text
        source, where = self.inner(outer)
        if type_name in NUMBERS:
            near = [c.type for c in source.columns if c.type in NUMBERS]
            type_name = self.random.choice(near) if near else type_name
        item = self.simple(type_name, source.columns)
        if self.chance(0.15):
            column = self.random.choice(source.columns)
            key = self.written(column, source.columns)
            return f"SELECT max({item}) FROM {source.text}{where} GROUP BY {key}"
        if self.chance(0.15):
            call = "count(*)" if type_name in NUMBERS and self.chance(0.4) else f"min({item})"
            having = " HAVING count(*) > 1" if self.chance(0.4) else ""
            return f"SELECT {call} FROM {source.text}{where}{having}"
        distinct = "DISTINCT " if self.chance(0.1) else ""
        return f"SELECT {distinct}{item} FROM {source.text}{where}"

    def scalar(self, outer, numeric=False):
        """(text, type) of a scalar subquery: mostly a global aggregation, else one row at most."""
        if self.chance(0.2):
            return self.single(numeric)
        if self.chance(0.05):
            type_name = self.random.choice(NUMBERS if numeric else TYPES)
            return f"({self.constants([type_name]).text})", type_name
        source, where = self.inner(outer)
        call, type_name = self.aggregate_call(source.columns, numeric)
        having = " HAVING count(*) > 1" if self.chance(0.15) else ""
        return f"(SELECT {call} FROM {source.text}{where}{having})", type_name

    def single(self, numeric):
        """(text, type) of a subquery that has one row at most, and maybe none."""
        source = self.source(0, most=1)
        type_name = self.type_of(source.columns, NUMBERS if numeric else TYPES)
        item = self.simple(type_name, source.columns)
        where = f" WHERE {self.predicate(source.columns, 1)}" if self.chance(0.5) else ""
        order = f" ORDER BY {self.order(source.columns)} LIMIT 1"
        return f"(SELECT {item} FROM {source.text}{where}{order})", type_name

    def inner(self, outer):
        """(FROM, WHERE) of a subquery, correlated by one or two equalities in most cases."""
        source = self.source(0, most=1 if self.chance(0.85) else 2)
        count = self.random.choice([0, 0, 0, 1, 1, 1, 1, 2])
        conjuncts = [self.correlation(source.columns, outer) for _ in range(count)]
        if self.chance(0.12):
            conjuncts.append(self.outer_comparison(source.columns, outer))
        if self.beyond and self.chance(0.4):
            draw = self.random.choice([self.correlation, self.outer_comparison])
            conjuncts.append(draw(source.columns, self.beyond))
        if self.chance(0.35):
            conjuncts.append(self.predicate(source.columns, 1))
        if self.chance(self.of_time):
            conjuncts.append(self.turning(source))
        if self.nested < 1 and self.chance(0.12):
            known, self.beyond = self.beyond, outer
            self.nested += 1
            conjuncts.append(self.with_subquery(source.columns))
            self.nested -= 1
            self.beyond = known
        self.random.shuffle(conjuncts)
        conjuncts = [c for c in conjuncts if c]
        return source, " WHERE " + " AND ".join(conjuncts) if conjuncts else ""

    def outer_comparison(self, inner, outer):
        """A condition with a column of the outer query that is more than one equality."""
        pairs = [(i, o) for i in inner for o in outer if i.type == o.type]
        if not pairs:
            return None
        (i, o), (other, far) = self.random.choice(pairs), self.random.choice(pairs)
        symbol = self.random.choice(["<", "<=", ">", "<>"])
        first = f"{i.qualifier}.{i.name} {symbol} {o.qualifier}.{o.name}"
        if self.chance(0.7):
            return first
        second = f"{other.qualifier}.{other.name} = {far.qualifier}.{far.name}"
        more = f"{o.qualifier}.{o.name} IS NULL"
        return f"({first} OR {self.random.choice([second, more])})"

    def correlation(self, inner, outer):
        """inner expression = outer column; both qualified, since names may be in either query."""
        pairs = [
            (i, o)
            for i in inner
            for o in outer
            if i.type == o.type or (i.type in NUMBERS and o.type in NUMBERS)
        ]
        if not pairs:
            return None
        mixed = [(i, o) for i, o in pairs if i.type != o.type]
        i, o = self.random.choice(mixed if mixed and self.chance(0.4) else pairs)
        left, right = f"{i.qualifier}.{i.name}", f"{o.qualifier}.{o.name}"
        if i.type in NUMBERS and self.chance(0.15):
            left = f"{left} + 1"
        return f"{left} = {right}" if self.chance(0.7) else f"{right} = {left}"

    # Expressions.

    def written(self, column, columns):
        """A column's name; bare only if it is unique, and then not always."""
        alone = sum(c.name == column.name for c in columns) == 1
        return column.name if alone and self.chance(0.3) else f"{column.qualifier}.{column.name}"

    def literal(self, type_name):
        if type_name in ("INT", "BIGINT"):
            return str(self.random.randint(-1, 4))
        if type_name == "DOUBLE":
            return str(self.random.choice([-0.5, 0.0, 0.5, 1.0, 1.5, 2.5]))
        if type_name == DECIMAL:
            number = self.random.choice(["-0.5", "0.000", "0.25", "1.125", "2"])
            return self.random.choice([number, f"DECIMAL '{number}'"])
        if type_name == "STRING":
            return f"'{self.random.choice(STRINGS)}'"
        if type_name == "BINARY":
            return f"X'{self.random.choice(BINARIES).hex()}'"
        if type_name == "BOOLEAN":
            return self.random.choice(["TRUE", "FALSE"])
        if type_name in ARRAYS:
            return self.constant_array(type_name)
        if type_name in NESTED:
            return self.constant_nested(type_name)
        return self.moment(self.random.choice(VALUES[type_name]))

    def constant_array(self, type_name):
        """An ARRAY written out, or as a text."""
        element, count = element_of(type_name), self.random.randint(0, 3)
        if element == "STRING" and self.chance(0.7):
            words = [f"'{self.random.choice(STRINGS)}'" for _ in range(count or 1)]
            return f"ARRAY[{', '.join(words)}]"
        numbers = [self.random.choice(["0", "1", "2", "null"]) for _ in range(count)]
        text = ", ".join(f'"{n}"' if element == "STRING" else n for n in numbers)
        return f"CAST('[{text}]' AS {type_name})"

    def constant_nested(self, type_name):
        """A STRUCT or MAP written out, or as a text."""
        number = self.random.choice(["0", "1", "2", "null"])
        if self.chance(0.5):
            made = {
                STRUCT: f"STRUCT({self.literal('INT')} AS n, {self.literal('STRING')} AS w)",
                MAP: f"MAP[{self.literal('STRING')}, {self.literal('INT')}]",
            }
            return made[type_name]
        texts = {STRUCT: ['{{"n": {}, "w": "a"}}', '{{"w": null, "N": {}}}', "{}"]}
        texts[MAP] = ['{{"a": {}}}', '{{"b": 2, "a": {}}}', '{{"": {}, "": 1}}', "[{}]"]
        return f"CAST('{self.random.choice(texts[type_name]).format(number)}' AS {type_name})"

    def moment(self, value):
        """A date or timestamp written out."""
        word = "TIMESTAMP" if isinstance(value, datetime) else "DATE"
        if self.chance(0.2):
            return f"CAST('{value}' AS {word})"
        return f"{word} '{value}'"

    def expression(self, type_name, columns, depth):
        """An expression of a type (a BIGINT may be written as an INT)."""
        fitting = [c for c in columns if c.type == type_name]
        if depth == 0 or self.chance(0.3):
            if fitting and self.chance(0.8):
                return self.written(self.random.choice(fitting), columns)
            return self.literal(type_name)
        if self.chance(0.25):
            return self.conditional(type_name, columns, depth - 1)
        draw = {
            "STRING": self.text, "BOOLEAN": self.truth, "DATE": self.day, "TIMESTAMP": self.time,
            "BINARY": self.bytes, **dict.fromkeys(ARRAYS, self.array),
            STRUCT: self.struct, MAP: self.map,
        }.get(type_name, self.number)  # fmt: skip
        return draw(type_name, columns, depth - 1)

    def conditional(self, type_name, columns, depth):
        first = self.expression(type_name, columns, depth)
        second = self.expression(type_name, columns, depth)
        shape = self.weighted(case=3, coalesce=2, nullif=1, greatest=1, least=1)
        if shape == "case":
            otherwise = f" ELSE {second}" if self.chance(0.7) else ""
            return f"CASE WHEN {self.predicate(columns, 0)} THEN {first}{otherwise} END"
        if type_name == "BOOLEAN":
            shape = "coalesce"
        return f"{shape}({first}, {second})"

    def number(self, type_name, columns, depth):
        left = self.expression(type_name, columns, depth)
        shape = self.weighted(binary=4, remainder=1, scaled=2, function=4, quotient=1)
        if shape == "binary":
            right = self.expression(type_name, columns, depth)
            return f"({left} {self.random.choice('+-')} {right})"
        if shape == "remainder":
            return f"({left}) % {self.expression(type_name, columns, 0)}"
        if shape == "quotient" and type_name == "DOUBLE":
            divisor = self.random.choice(["2", "4", "0", self.expression("INT", columns, 0)])
            return f"({left}) / {divisor}"
        if shape == "function":
            return self.numeric_function(type_name, columns, left)
        return f"({left}) * {self.random.choice(['2', '3', '-1'])}"

    def numeric_function(self, type_name, columns, operand):
        if type_name == "DOUBLE":
            return self.random.choice(
                [f"abs({operand})", f"CAST({self.expression('INT', columns, 0)} AS DOUBLE)"]
            )
        choices = [f"abs({operand})", f"-({operand})"]
        if type_name == DECIMAL:
            made = f"CAST({self.expression('DOUBLE', columns, 0)} AS {DECIMAL})"
            return self.random.choice([*choices, made, f"CAST({operand} AS DECIMAL(20, 1))"])
        if type_name == "INT":
            word = self.random.choice(["STRING", "STRING", "BINARY"])
            choices.append(f"length({self.expression(word, columns, 0)})")
            choices.append(f"CAST({self.expression('DOUBLE', columns, 0)} AS INT)")
            day, time = (self.expression(word, columns, 0) for word in ("DATE", "TIMESTAMP"))
            choices += [f"{self.random.choice(['year', 'month', 'day'])}({day})"] * 2
            choices.append(f"{self.random.choice(['hour', 'second', 'dayofweek'])}({time})")
            choices.append(f"datediff({day}, {self.literal('DATE')})")
            choices.append(f"{self.random.choice(['hour', 'day'])}({self.in_zone(columns)})")
            choices += [self.of_array(columns)] * 2
        else:
            times = [self.expression("TIMESTAMP", columns, 0) for _ in range(2)]
            choices.append(f"({' - '.join(times)})")
            choices.append(f"floor({self.expression('DOUBLE', columns, 0)})")
            choices.append(f"ceil({self.expression('DOUBLE', columns, 0)})")
        return self.random.choice(choices)

    def text(self, type_name, columns, depth):
        operand = self.expression("STRING", columns, depth)
        pattern = self.random.choice(["yyyy-MM-dd HH:mm:ss.SSS", "E d MMMM yy", "hh:m a, M/d"])
        return self.random.choice(
            [
                f"upper({operand})",
                f"lower({operand})",
                f"({operand} || {self.expression('STRING', columns, 0)})",
                f"substring({operand}, {self.random.choice([1, 2])}, 1)",
                f"CAST({self.expression('INT', columns, 0)} AS STRING)",
                f"CAST({self.expression('DATE', columns, 0)} AS STRING)",
                f"trim({operand})",
                f"regexp_replace({operand}, '[ab]', 'x')",
                f"regexp_extract({operand}, '(a)|b')",
                f"date_format({self.expression('TIMESTAMP', columns, 0)}, '{pattern}')",
                f"hex({self.expression('BINARY', columns, 0)})",
                f"CAST({self.expression('BINARY', columns, 0)} AS STRING)",
                f"CAST({self.expression(self.random.choice(ARRAYS), columns, 0)} AS STRING)",
                f"({self.expression('ARRAY<STRING>', columns, 0)})[1]",
                f"CAST({self.expression(self.random.choice(NESTED), columns, 0)} AS STRING)",
                f"({self.expression(STRUCT, columns, 0)}).w",
                f"map_keys({self.expression(MAP, columns, 0)})[1]",
            ]
        )

    def bytes(self, type_name, columns, depth):
        operand = self.expression("BINARY", columns, depth)
        return self.random.choice(
            [
                f"({operand} || {self.expression('BINARY', columns, 0)})",
                f"substring({operand}, {self.random.choice([1, 2])}, 1)",
                f"CAST({self.expression('STRING', columns, 0)} AS BINARY)",
                f"unhex({self.expression('STRING', columns, 0)})",
            ]
        )

    def array(self, type_name, columns, depth):
        element = element_of(type_name)
        elements = [self.expression(element, columns, depth) for _ in range(2)]
        made = f"ARRAY[{', '.join(elements[: self.random.randint(1, 2)])}]"
        if element == "BIGINT":
            narrow = self.expression("ARRAY<INT>", columns, 0)
            return self.random.choice(
                [f"CAST({made} AS {type_name})", f"CAST({narrow} AS {type_name})"]
            )
        return made

    def struct(self, type_name, columns, depth):
        number, word = (self.expression(of, columns, depth) for _, of in FIELDS)
        return self.random.choice(
            [
                f"STRUCT({number} AS n, {word} AS w)",
                f"CAST({self.expression('STRING', columns, 0)} AS {type_name})",
                f"CAST(STRUCT({word} AS x, {word} AS y) AS {type_name})",
            ]
        )

    def map(self, type_name, columns, depth):
        """Of keys that may be NULL, and the same."""
        entries = [
            f"{self.expression('STRING', columns, depth)}, {self.expression('INT', columns, 0)}"
            for _ in range(self.random.randint(1, 2))
        ]
        return f"MAP[{', '.join(entries)}]"

    def of_array(self, columns):
        """What is asked of an ARRAY, STRUCT or MAP, an INT."""
        if self.chance(0.5):
            struct, map_ = (self.expression(type_name, columns, 0) for type_name in NESTED)
            key = self.expression("STRING", columns, 0)
            return self.random.choice(
                [
                    f"({struct}).n",
                    f"({map_})[{key}]",
                    f"cardinality({map_})",
                    f"map_values({map_})[1]",
                    f"ARRAY[{struct}, NULL][1].N",
                ]
            )
        array = self.expression(self.random.choice(ARRAYS), columns, 0)
        of_numbers = self.expression("ARRAY<INT>", columns, 0)
        place = self.random.choice(["1", "2", "-1", self.expression("INT", columns, 0)])
        return self.random.choice([f"cardinality({array})", f"({of_numbers})[{place}]"])

    def day(self, type_name, columns, depth):
        operand = self.expression("DATE", columns, depth)
        if self.chance(0.4):
            return f"CAST({self.expression('TIMESTAMP', columns, 0)} AS DATE)"
        if self.chance(0.15):
            return f"CAST({self.in_zone(columns)} AS DATE)"
        return f"{self.random.choice(['date_add', 'date_sub'])}({operand}, {self.literal('INT')})"

    def time(self, type_name, columns, depth):
        operand = self.expression("TIMESTAMP", columns, depth)
        if self.chance(0.3):
            return f"CAST({self.expression('DATE', columns, 0)} AS TIMESTAMP)"
        if self.chance(0.3):
            length = f"INTERVAL '{self.random.randint(0, 90)}' {self.random.choice(LENGTHS)}"
            return f"({operand} {self.random.choice('+-')} {length})"
        if self.chance(0.2):
            return f"date_trunc('{self.random.choice(WIDTHS)}', {operand})"
        if self.chance(0.15):
            unit = self.random.choice(["year", "day", "second", "10 seconds"])
            return f"date_trunc('{unit}', {self.in_zone(columns)})"
        if self.chance(0.1):
            day = self.expression("DATE", columns, 0)
            return f"CAST({day} AT TIME ZONE '{self.random.choice(ZONES)}' AS TIMESTAMP)"
        return f"date_trunc('{self.random.choice(['year', 'day', 'second'])}', {operand})"

    def in_zone(self, columns):
        """An instant whose calendar is read in a time zone."""
        moment = self.expression("TIMESTAMP", columns, 0)
        return f"{moment} AT TIME ZONE '{self.random.choice(ZONES)}'"

    def truth(self, type_name, columns, depth):
        return f"({self.predicate(columns, depth)})"
