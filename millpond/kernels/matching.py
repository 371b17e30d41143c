"""Rows matched with the constants of many queries: which rows are whose.

A set of queries of one shape is a table with one row of constants a query. A row of the input and
a row of constants are a pair where the predicate holds; each pair is put out with the number of its
query. Pairs are found by one conjunct of the predicate, by hashing or by searching in order, and
the whole predicate decides among them: the cost follows what matches, not the number of queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from millpond.cql.expressions import Call, Column, Expression
from millpond.kernels.columns import integers, marked, with_last
from millpond.kernels.decimals import Wholes, wholes
from millpond.kernels.expressions import Columns, Condition, Program
from millpond.kernels.groups import Bools, Floats, Ints
from millpond.kernels.sampling import draws_of, hash_longs
from millpond.planning.nodes import in_list_of
from millpond.planning.predicates import FLIPPED, columns_used, conjuncts
from millpond.schema import Type

QUERY = "_query"
"""The column with a query's number, in tables of constants."""


def since_column(stream: str) -> str:
    """The column with the times after which queries see a stream, in tables of constants."""
    return f"since {stream}"


MOST_PAIRS = 1_000_000
"""So many pairs are looked at together."""

WILDCARDS = ("%", "_", "\\")

NEAR, NEAR_EACH = 65_536, 16
"""A table of whole numbers has so many places, or so many for each of them."""


@dataclass(frozen=True)
class Matching:
    """What is matched: expressions see the columns of the input, then the constants used.

    ``is_tagged``: the last column of the input is the number of the query a row belongs to.
    ``since``: the stream that a query sees after a time of its own. ``window``: which constant
    says how long rows of a stream are there, in ticks; they become elements. ``draws``: the hash
    with which those of a stream's tuples begin, if the draw of each is one more column, the last.
    """

    width: int
    is_tagged: bool
    constants: tuple[int, ...]
    predicate: Expression | None
    expressions: tuple[Expression, ...]
    since: str | None = None
    window: int | None = None
    draws: int | None = None


class Constants:
    """The constants of a shape's queries at one moment, in order of their numbers."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table.combine_chunks()

    @cached_property
    def numbers(self) -> Ints:
        """The numbers of the queries."""
        return integers(self.table[QUERY])

    def columns(self, places: Sequence[int]) -> list[pa.ChunkedArray]:
        """The constants at some places of all queries."""
        return [self.table[f"k{place}"] for place in places]


class Matcher:
    """A matching compiled for one moment's constants."""

    def __init__(self, matching: Matching, constants: Constants) -> None:
        self._matching = matching
        self._constants = constants
        self._columns = constants.columns(matching.constants)
        parts = conjuncts(matching.predicate)
        self._in_lists = {part: each for part in parts if (each := self._in_list(part)) is not None}
        self._whole = _Rest(parts, self._in_lists)
        self._values = Program(matching.expressions)
        self._wanted = set().union(*map(columns_used, matching.expressions))
        self._finders = [] if matching.is_tagged else list(self._found_by(parts))
        since = matching.since
        self._since = None if since is None else integers(constants.table[since_column(since)])
        window = matching.window
        self._lengths = None if window is None else integers(constants.columns([window])[0])

    def rows(self, table: pa.Table) -> pa.Table:
        """The pairs that match, as the columns of time, the expressions, and the query's number."""
        if self._matching.draws is not None:
            first = np.array([self._matching.draws], np.uint64)
            draws = draws_of(hash_longs(integers(table["_seq"]), first))
            table = table.append_column("_draw", pa.array(draws))
        whole = [self._part(part) for part in self._parts(table)]
        none = np.zeros(0, np.int64)
        return pa.concat_tables(whole or [self._paired(table, none, none, self._whole)])

    # -- which pairs are looked at ---------------------------------------------------------

    def _parts(self, table: pa.Table) -> Iterator[pa.Table]:
        """The table in pieces that make not too many pairs."""
        queries = len(self._constants.numbers)
        if self._matching.is_tagged or table.num_rows * queries <= MOST_PAIRS:
            if table.num_rows and queries:
                yield table
            return
        most = max(1, MOST_PAIRS // max(1, queries)) if not self._finders else 65_536
        for start in range(0, table.num_rows, most):
            yield table.slice(start, most)

    def _part(self, table: pa.Table) -> pa.Table:
        rows, queries, rest = self._candidates(table)
        cuts = [slice(at, at + MOST_PAIRS) for at in range(0, max(1, len(rows)), MOST_PAIRS)]
        return pa.concat_tables(
            [self._paired(table, rows[cut], queries[cut], rest) for cut in cuts]
        )

    def _candidates(self, table: pa.Table) -> tuple[Ints, Ints, _Rest]:
        """Pairs that may match, and what has to hold of them yet."""
        data = self._data(table)
        if self._matching.is_tagged:
            return *_looked_up(integers(data[-1]), self._constants.numbers), self._whole
        best: tuple[_Found, _Rest] | None = None
        for finder, rest in self._finders:
            found = finder.find(data, table.num_rows)
            if best is None or found.count < best[0].count:
                best = found, rest
            if finder.is_sharp:
                break
        if best is not None:
            return *best[0].pairs(), best[1]
        count, queries = table.num_rows, len(self._constants.numbers)
        every = np.repeat(np.arange(count), queries), np.tile(np.arange(queries), count)
        return *every, self._whole

    def _data(self, table: pa.Table) -> list[pa.ChunkedArray]:
        columns: list[pa.ChunkedArray] = table.columns
        return columns[len(columns) - self._matching.width :]

    def _found_by(self, parts: list[Expression]) -> Iterator[tuple[_Finder, _Rest]]:
        """The conjuncts by which pairs can be found, sharp ones first, and the others."""
        found = [(finder, part) for part in parts if (finder := self._finder(part)) is not None]
        for finder, part in sorted(found, key=lambda each: not each[0].is_sharp):
            rest = [each for each in parts if each is not part or not finder.is_exact]
            yield finder, self._whole if len(rest) == len(parts) else _Rest(rest, self._in_lists)

    def _in_list(self, part: Expression) -> _InLists | None:
        """The lists of constants that a conjunct asks for."""
        asked = in_list_of(part)
        if asked is None:
            return None
        value, place, is_negated = asked
        lists = _array(self._columns[columns_used(place).pop() - self._matching.width])
        return _InLists(value, lists, is_negated)

    def _finder(self, part: Expression) -> _Finder | None:
        in_list = self._in_lists.get(part)
        if in_list is not None:
            is_found = self._is_of_input(in_list.value) and not in_list.is_negated
            return _Equal(_column_of(in_list.value), in_list.index) if is_found else None
        if not isinstance(part, Call) or not part.arguments:
            return None
        name, arguments = part.function, part.arguments
        if name in FLIPPED and self._is_of_constants(arguments[0]):
            name, arguments = FLIPPED[name], (arguments[1], arguments[0])
        first, *others = arguments
        if not self._is_of_input(first) or not all(map(self._is_of_constants, others)):
            return None
        value = _column_of(first)
        wanted = [self._of_queries(each) for each in others]
        is_text = first.type in (Type.STRING, Type.BINARY) or first.type.is_nested
        match name:
            case "=" | "in":
                return _Equal(value, _index_of(wanted))
            case "<" | "<=" | ">" | ">=" if not is_text:
                return _Ordered(value, wanted[0], name)
            case "like" if len(wanted) == 1:
                return _Prefixed(value, wanted[0])
        return None

    def _is_of_input(self, expression: Expression) -> bool:
        used = columns_used(expression)
        return bool(used) and max(used) < self._matching.width

    def _is_of_constants(self, expression: Expression) -> bool:
        used = columns_used(expression)
        return bool(used) and min(used) >= self._matching.width

    def _of_queries(self, expression: Expression) -> pa.Array:
        """The values of an expression of constants, one a query."""
        inputs: list[pa.ChunkedArray | None] = [None] * self._matching.width
        columns = [*inputs, *self._columns]
        return _array(Program([expression]).arrays(columns, len(self._constants.numbers))[0])

    # -- what is put out -------------------------------------------------------------------

    def _paired(self, table: pa.Table, rows: Ints, queries: Ints, rest: _Rest) -> pa.Table:
        """Of some pairs those that match."""
        if self._since is not None:
            seen = integers(table["_ts"])[rows] > self._since[queries]
            rows, queries = rows[seen], queries[seen]
        kept = rest.holds(self._pairs(table, pa.array(rows), queries, rest.columns), queries)
        if kept is not None and not kept.all():
            rows, queries = rows[kept], queries[kept]
        if len(rows) == table.num_rows and np.array_equal(rows, np.arange(len(rows))):
            taken = None
        else:
            taken = pa.array(rows)
        pairs = self._pairs(table, taken, queries, self._wanted)
        times = self._times(table, taken, queries)
        data = self._values.arrays(pairs, len(rows))
        numbers = pa.array(self._constants.numbers[queries])
        names = [*times, *(f"c{i}" for i in range(len(data) + 1))]
        return pa.Table.from_arrays([*times.values(), *data, numbers], names=names)

    def _times(
        self, table: pa.Table, rows: pa.Array | None, queries: Ints
    ) -> dict[str, pa.ChunkedArray]:
        """The columns of time of some pairs; without rows each row has one."""
        width = len(table.columns) - self._matching.width
        times = {name: _taken(table[name], rows) for name in table.column_names[:width]}
        if self._lengths is None:
            return times
        starts = integers(times["_ts"])
        ends = pa.array(starts + self._lengths[queries] + 1)
        weights = times.get("_w", pa.array(np.ones(len(queries), np.int64)))
        return {"_ts": times["_ts"], "_te": ends, "_w": weights}

    def _pairs(
        self, table: pa.Table, rows: pa.Array | None, queries: Ints, wanted: set[int]
    ) -> Columns:
        """The columns of the input and the constants, of some pairs; those that are wanted."""
        of_queries = pa.array(queries)
        sides: list[tuple[pa.ChunkedArray, pa.Array | None]]
        sides = [(column, rows) for column in self._data(table)]
        sides += [(column, of_queries) for column in self._columns]
        return [
            _taken(column, indices) if place in wanted else column
            for place, (column, indices) in enumerate(sides)
        ]


def _taken(column: pa.ChunkedArray, rows: pa.Array | None) -> pa.ChunkedArray:
    """Some rows of a column; None: all of them as they are."""
    return column if rows is None else column.take(rows)


class _Rest:
    """What has to hold of a pair, however it was found."""

    def __init__(
        self, parts: Sequence[Expression], in_lists: Mapping[Expression, _InLists]
    ) -> None:
        self._in_lists = [in_lists[part] for part in parts if part in in_lists]
        plain = [part for part in parts if part not in in_lists]
        self._condition = Condition(plain)
        values = (in_list.value for in_list in self._in_lists)
        self.columns = set().union(*map(columns_used, (*plain, *values)))

    def holds(self, pairs: Columns, queries: Ints) -> Bools | None:
        """For which of some pairs, if not for all."""
        kept = self._condition.holds(pairs, len(queries))
        for in_list in self._in_lists:
            found = in_list.holds(pairs, queries)
            kept = found if kept is None else kept & found
        return kept


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _column_of(expression: Expression) -> Callable[[Sequence[pa.ChunkedArray], int], pa.Array]:
    if isinstance(expression, Column):
        return lambda columns, rows: _array(columns[expression.position])
    program = Program([expression])
    return lambda columns, rows: _array(program.arrays(columns, rows)[0])


def _looked_up(numbers: Ints, known: Ints) -> tuple[Ints, Ints]:
    """For rows that belong to queries, where those are; rows of queries that are gone have none."""
    places = np.searchsorted(known, numbers)
    places[places == len(known)] = 0
    rows = marked(known[places] == numbers) if len(known) else np.zeros(0, np.int64)
    return rows, places[rows]


# -- finding pairs ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """For each row a run of places in a list of queries."""

    rows: Ints
    starts: Ints
    lengths: Ints
    queries: Ints

    @property
    def count(self) -> int:
        return int(self.lengths.sum())

    def pairs(self) -> tuple[Ints, Ints]:
        total = self.count
        if total == len(self.rows) and (self.lengths == 1).all():
            return self.rows, self.queries[self.starts]
        ends = np.cumsum(self.lengths)
        offsets = np.arange(total) - np.repeat(ends - self.lengths, self.lengths)
        places = np.repeat(self.starts, self.lengths) + offsets
        return np.repeat(self.rows, self.lengths), self.queries[places]


class _Finder:
    """Finds the pairs for which one conjunct may hold: all of these, and perhaps some more."""

    is_sharp = False
    """Whether it is likely to find few."""
    is_exact = True
    """Whether the conjunct holds for all it finds."""

    def find(self, columns: Sequence[pa.ChunkedArray], rows: int) -> _Found:
        raise NotImplementedError


class _Index:
    """Values and the queries that have them."""

    def __init__(self, values: pa.Array, queries: Ints) -> None:
        """One value for each of the queries."""
        values = _comparable(values)
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        self.values = pc.unique(values.filter(pa.array(valid)))
        self._near = _Near.of(self.values)
        codes = integers(pc.index_in(values.filter(pa.array(valid)), value_set=self.values))
        order = np.argsort(codes, kind="stable")
        self.codes, self.queries = codes[order], queries[valid][order]
        self.lengths = np.bincount(codes, minlength=len(self.values)).astype(np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths

    def find(self, values: pa.Array) -> _Found:
        """The queries whose value is that of a row."""
        codes = self.codes_of(values)
        rows = marked(codes >= 0)
        found = codes if len(rows) == len(codes) else codes[rows]
        return _Found(rows, self.starts[found], self.lengths[found], self.queries)

    def codes_of(self, values: pa.Array) -> Ints:
        """Which of the values each is; -1 if none."""
        values = _comparable(values)
        if self._near is not None:
            return self._near.codes_of(values)
        return integers(pc.index_in(values, value_set=self.values).fill_null(-1))


class _Near:
    """Whole numbers near one another, looked up by their distance from the smallest."""

    def __init__(self, numbers: Ints) -> None:
        self._lowest = numbers.min()
        self._codes = np.full(int(numbers.max()) - int(self._lowest) + 3, -1)
        self._codes[numbers - self._lowest + 1] = np.arange(len(numbers))

    @staticmethod
    def of(values: pa.Array) -> _Near | None:
        """None where values are no whole numbers, or too far from one another."""
        if not pa.types.is_integer(values.type) or len(values) == 0:
            return None
        numbers = integers(values)
        span = int(numbers.max()) - int(numbers.min())
        return _Near(numbers) if span <= max(NEAR, NEAR_EACH * len(numbers)) else None

    def codes_of(self, values: pa.Array) -> Ints:
        """Which of the numbers each is; -1 if none. Beyond either end there is none."""
        has_null = values.null_count > 0
        numbers = integers(values.fill_null(0) if has_null else values)
        codes: Ints = self._codes.take(numbers - self._lowest + 1, mode="clip")
        if has_null:
            codes[~values.is_valid().to_numpy(zero_copy_only=False)] = -1
        return codes


def _comparable(values: pa.Array) -> pa.Array:
    """Values of which equal ones have equal bits: there is one zero and one NaN."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    mask = ~values.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(numbers.view(np.int64), mask=mask)


def _index_of(wanted: Sequence[pa.Array]) -> _Index:
    """An index of several constants of each query."""
    queries = np.tile(np.arange(len(wanted[0])), len(wanted))
    return _index_of_distinct(pa.concat_arrays(list(wanted)), queries, len(wanted) > 1)


def _index_of_distinct(values: pa.Array, queries: Ints, has_several: bool) -> _Index:
    if has_several:  # IN with a constant that stands there twice
        kept = _first_of_equal(pa.table({"v": _comparable(values), "q": queries}))
        values, queries = values.take(pa.array(kept)), queries[kept]
    return _Index(values, queries)


class _InLists:
    """A list of constants for each query: whether a value is in it, or in a list without NULL is
    not."""

    def __init__(self, value: Expression, lists: pa.ListArray, is_negated: bool) -> None:
        self.value, self.is_negated = value, is_negated
        counts = integers(pc.list_value_length(lists))
        queries = np.repeat(np.arange(len(lists)), counts)
        values = lists.flatten()
        self.index = _index_of_distinct(values, queries, bool((counts > 1).any()))
        self._value = Program([value])
        self._count = max(1, len(lists))
        known = np.sort(self.index.codes * self._count + self.index.queries)
        self._known = with_last(known, np.iinfo(np.int64).max)
        self._is_told = np.ones(len(lists), bool)
        self._is_told[queries[~values.is_valid().to_numpy(zero_copy_only=False)]] = False

    def holds(self, pairs: Columns, queries: Ints) -> Bools:
        """For which pairs that is so."""
        values = _array(self._value.arrays(pairs, len(queries))[0])
        codes = self.index.codes_of(values)
        wanted = codes * self._count + queries
        found: Bools = self._known[np.searchsorted(self._known, wanted)] == wanted
        if not self.is_negated:
            return found
        is_told: Bools = values.is_valid().to_numpy(zero_copy_only=False) & self._is_told[queries]
        return is_told & ~found


class _Equal(_Finder):
    """A value that is one of some constants of a query."""

    is_sharp = True

    def __init__(
        self, value: Callable[[Sequence[pa.ChunkedArray], int], pa.Array], index: _Index
    ) -> None:
        self._value, self._index = value, index

    def find(self, columns: Sequence[pa.ChunkedArray], rows: int) -> _Found:
        return self._index.find(self._value(columns, rows))


def _first_of_equal(table: pa.Table) -> Ints:
    """The rows of a table without those that are like one before."""
    numbered = table.append_column("n", pa.array(np.arange(table.num_rows)))
    firsts = numbered.group_by(table.column_names).aggregate([("n", "min")])
    return np.sort(integers(firsts["n_min"]))


class _Ordered(_Finder):
    """A value above or below a constant of each query."""

    def __init__(
        self,
        value: Callable[[Sequence[pa.ChunkedArray], int], pa.Array],
        wanted: pa.Array,
        comparison: str,
    ) -> None:
        self._value = value
        self._comparison = comparison
        valid = marked(wanted.is_valid().to_numpy(zero_copy_only=False))
        values = _numbers(wanted.take(pa.array(valid)))
        order = np.argsort(values, kind="stable")
        self._wanted, self._queries = values[order], valid[order]

    def find(self, columns: Sequence[pa.ChunkedArray], rows: int) -> _Found:
        values = self._value(columns, rows)
        valid = np.arange(rows)
        if values.null_count:
            valid = marked(values.is_valid().to_numpy(zero_copy_only=False))
            values = values.take(pa.array(valid))
        numbers = _numbers(values)
        some = self._some(numbers)
        valid, numbers = valid[some], numbers[some]
        is_above = self._comparison in (">", ">=")
        is_right = self._comparison in (">=", "<")
        places = np.searchsorted(self._wanted, numbers, "right" if is_right else "left")
        places = places.astype(np.int64)
        if is_above:  # all constants below the value
            return _Found(valid, np.zeros_like(places), places, self._queries)
        return _Found(valid, places, len(self._wanted) - places, self._queries)

    def _some(self, numbers: Ints | Floats | Wholes) -> Bools:
        """All values for which a constant can be found, and perhaps some more: NaN is among them
        since it is not below or above anything here."""
        if not len(self._wanted):
            return np.zeros(len(numbers), bool)
        least, most = self._wanted[0], self._wanted[-1]
        compared = {
            ">": lambda: numbers <= least,
            ">=": lambda: numbers < least,
            "<": lambda: numbers >= most,
            "<=": lambda: numbers > most,
        }
        none: Bools = compared[self._comparison]()
        return ~none


def _numbers(values: pa.Array) -> Ints | Floats | Wholes:
    if pa.types.is_decimal(values.type):
        return wholes(values)
    if pa.types.is_temporal(values.type):
        values = values.cast(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    numbers: Ints | Floats = values.to_numpy(zero_copy_only=False)
    return numbers


class _Prefixed(_Finder):
    """A text that begins as the pattern of a query does, before its first wildcard."""

    is_exact = False

    def __init__(
        self, value: Callable[[Sequence[pa.ChunkedArray], int], pa.Array], patterns: pa.Array
    ) -> None:
        self._value = value
        by_length: dict[int, tuple[list[str], list[int]]] = {}
        for query, pattern in enumerate(patterns.to_pylist()):
            if pattern is not None:
                prefix = _prefix(pattern)
                texts, queries = by_length.setdefault(len(prefix), ([], []))
                texts.append(prefix)
                queries.append(query)
        self._indices = [
            (length, _Index(pa.array(texts, pa.string()), np.array(queries, np.int64)))
            for length, (texts, queries) in by_length.items()
        ]

    def find(self, columns: Sequence[pa.ChunkedArray], rows: int) -> _Found:
        values = self._value(columns, rows)
        parts = [
            index.find(pc.utf8_slice_codeunits(values, 0, length) if length else _blank(values))
            for length, index in self._indices
        ]
        offsets = np.cumsum([0, *(len(part.queries) for part in parts)])
        return _Found(
            np.concatenate([part.rows for part in parts] or [np.zeros(0, np.int64)]),
            np.concatenate(
                [p.starts + o for p, o in zip(parts, offsets, strict=False)]
                or [np.zeros(0, np.int64)]
            ),
            np.concatenate([part.lengths for part in parts] or [np.zeros(0, np.int64)]),
            np.concatenate([part.queries for part in parts] or [np.zeros(0, np.int64)]),
        )


def _blank(values: pa.Array) -> pa.Array:
    """The empty beginning of texts; NULL begins with nothing."""
    return pc.if_else(values.is_valid(), pa.scalar(""), pa.scalar(None, pa.string()))


def _prefix(pattern: str) -> str:
    ends = [at for mark in WILDCARDS if (at := pattern.find(mark)) >= 0]
    return pattern[: min(ends, default=len(pattern))]


# -- where the constants lie -----------------------------------------------------------------


@dataclass(frozen=True)
class MatchRows:
    """A matching with the file its constants lie in: what a worker must know."""

    matching: Matching
    directory: str
    name: str

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The pairs that match."""
        return _compiled(self).rows(rows)


@lru_cache(maxsize=64)
def _compiled(match: MatchRows) -> Matcher:
    table = pq.read_table(Path(match.directory) / match.name, memory_map=False)
    return Matcher(match.matching, Constants(table))
