"""Rows matched with the constants of queries: as if each query had looked at each row."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.cql.expressions import Call, Column
from millpond.kernels import matching
from millpond.kernels.expressions import Condition
from millpond.kernels.matching import QUERY, Constants, Matcher, Matching, since_column
from millpond.planning.nodes import ONE_OF, InList, in_list_of
from millpond.planning.predicates import conjoin
from millpond.schema import Type

DOUBLES = [0.0, -0.0, 1.0, 1.5, float("nan"), float("inf"), float("-inf"), None]
TEXTS = ["", "a", "ab", "abc", "b%", "é", None]
PATTERNS = ["", "%", "a%", "ab_", "_b%", "\\%", "é%", None]
VALUES = {
    Type.INT: [0, 1, 2, -1, 2**31 - 1, -(2**31), None],
    Type.BIGINT: [0, 1, 2**40, 2**63 - 1, 2**63 - 2, -(2**63), None],
    Type.DOUBLE: DOUBLES,
    Type.STRING: TEXTS,
    Type.BINARY: [b"", b"a", b"\xff", b"ab", None],
    Type.DATE: [dt.date(2024, 1, 1), dt.date(1969, 12, 31), None],
    Type.TIMESTAMP: [dt.datetime(2024, 1, 1), dt.datetime(1969, 12, 31, 23), None],
}
"""Small domains with all that compares in ways of its own."""


@st.composite
def problems(draw):
    """Columns, constants, and a predicate over both."""
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    parts, constants, patterns = [], [], []
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(types) - 1))
        type_ = types[place]
        functions = ["=", "<", "<=", ">", ">=", "in", "<>"]
        function = draw(
            st.sampled_from([*functions, "like"] if type_ is Type.STRING else functions)
        )
        if draw(st.integers(0, 3)) == 0:  # a list a query, however long
            part = Call(ONE_OF, (Column(place, type_), Column(len(types) + len(constants), type_)),
                        Type.BOOLEAN)  # fmt: skip
            is_negated = draw(st.booleans())
            parts.append(Call("not", (part,), Type.BOOLEAN) if is_negated else part)
            constants.append(InList((), type_))
            patterns.append(False)
            continue
        count = draw(st.integers(1, 3)) if function == "in" else 1
        first = len(types) + len(constants)
        constants += [type_] * count
        patterns += [function == "like"] * count
        arguments = [Column(place, type_), *(Column(first + i, type_) for i in range(count))]
        if count == 1 and function not in ("in", "like") and draw(st.booleans()):
            arguments.reverse()
        parts.append(Call(function, tuple(arguments), Type.BOOLEAN))
    rows = [
        [draw(st.sampled_from(VALUES[t])) for t in types] for _ in range(draw(st.integers(0, 8)))
    ]
    queries = [
        [
            draw(st.lists(st.sampled_from(VALUES[t.type]), min_size=1, max_size=3))
            if isinstance(t, InList)
            else draw(st.sampled_from(PATTERNS if is_pattern else VALUES[t]))
            for t, is_pattern in zip(constants, patterns, strict=True)
        ]
        for _ in range(draw(st.integers(0, 8)))
    ]
    return types, parts, constants, rows, queries


def table_of(types, rows, first):
    """Rows as columns c0… or k0…"""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(types)
    return {
        f"{first}{i}": pa.array(list(column), arrow_type(type_))
        for i, (type_, column) in enumerate(zip(types, columns, strict=True))
    }


def arrow_type(type_):
    """That of a column or of constants, or of lists of them."""
    is_list = isinstance(type_, InList)
    return pa.list_(ARROW_TYPES[type_.type]) if is_list else ARROW_TYPES[type_]


def matched(types, parts, constants, rows, queries, since=None):
    """The pairs that a matcher finds, as (row, query)."""
    elements = pa.table(
        {"_ts": np.arange(len(rows)), "_seq": np.arange(len(rows)), **table_of(types, rows, "c")}
    )
    known = pa.table({QUERY: np.arange(len(queries)) * 2, **table_of(constants, queries, "k")})
    if since is not None:
        known = known.append_column(since_column("s"), pa.array(since, pa.int64()))
    expressions = tuple(Column(i, type_) for i, type_ in enumerate(types))
    wanted = Matching(
        len(types),
        False,
        tuple(range(len(constants))),
        conjoin(parts),
        expressions,
        None if since is None else "s",
    )
    found = Matcher(wanted, Constants(known)).rows(elements)
    tags = found.column(found.num_columns - 1).to_pylist()
    return list(zip(found["_seq"].to_pylist(), [tag // 2 for tag in tags], strict=True)), found


def each_with_each(types, parts, constants, rows, queries):
    """The same without any cleverness."""
    pairs = [(r, q) for r in range(len(rows)) for q in range(len(queries))]
    columns = [
        *table_of(types, [rows[r] for r, _ in pairs], "c").values(),
        *table_of(constants, [queries[q] for _, q in pairs], "k").values(),
    ]
    plain = [part for part in parts if in_list_of(part) is None]
    kept = Condition(plain).holds(columns, len(pairs))
    found = [pair for i, pair in enumerate(pairs) if kept is None or kept[i]]
    for value, place, is_negated in filter(None, map(in_list_of, parts)):
        found = [
            (row, query)
            for row, query in found
            if chosen(rows[row][value.position], queries[query][place.position - len(types)])
            is (not is_negated)
        ]
    return found


def chosen(value, members):
    """Whether a value is one of some, with three truth values."""
    is_equal = [None if None in (value, each) else same(value, each) for each in members]
    return True if True in is_equal else None if None in is_equal else False


def same(one, other):
    """Whether two values are one: NaN is."""
    return one == other or (one != one and other != other)


@given(problems())
def test_pairs_are_found_as_if_each_query_had_looked_at_each_row(problem):
    expected = each_with_each(*problem)
    found, _ = matched(*problem)
    assert sorted(found) == expected


@given(problems(), st.integers(1, 20))
def test_many_pairs_are_looked_at_in_pieces(problem, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matching, "MOST_PAIRS", most)
        found, _ = matched(*problem)
    assert sorted(found) == each_with_each(*problem)


def test_a_query_sees_what_comes_after_its_own_time():
    types, rows = [Type.INT], [[1], [1], [1]]
    parts = [Call("=", (Column(0, Type.INT), Column(1, Type.INT)), Type.BOOLEAN)]
    found, _ = matched(types, parts, [Type.INT], rows, [[1], [1], [2]], since=[-1, 1, -1])
    assert sorted(found) == [(0, 0), (1, 0), (2, 0), (2, 1)]


def test_rows_are_there_as_long_as_the_window_of_their_query():
    rows = pa.table({"_ts": [1, 2], "_seq": [0, 1], "c0": [5, 6]})
    known = pa.table({QUERY: [0, 4], "k0": [0, 10], "k1": [5, 5]})
    equal = Call("=", (Column(0, Type.BIGINT), Column(1, Type.BIGINT)), Type.BOOLEAN)
    wanted = Matching(1, False, (1,), equal, (Column(0, Type.BIGINT),), window=0)
    found = Matcher(wanted, Constants(known)).rows(rows)
    assert found.to_pylist() == [
        {"_ts": 1, "_te": 2, "_w": 1, "c0": 5, "c1": 0},
        {"_ts": 1, "_te": 12, "_w": 1, "c0": 5, "c1": 4},
    ]


def test_tagged_rows_meet_the_constants_of_their_own_query():
    rows = pa.table({"_ts": [1, 2, 3], "_te": [9, 9, 9], "_w": [1, 1, 1], "c0": [5, 5, 5],
                     "c1": [0, 4, 7]})  # fmt: skip
    known = pa.table({QUERY: [0, 4], "k0": [4, 6]})
    above = Call(">", (Column(0, Type.BIGINT), Column(2, Type.BIGINT)), Type.BOOLEAN)
    wanted = Matching(2, True, (0,), above, (Column(0, Type.BIGINT), Column(2, Type.BIGINT)))
    found = Matcher(wanted, Constants(known)).rows(rows)
    assert found.to_pylist() == [{"_ts": 1, "_te": 9, "_w": 1, "c0": 5, "c1": 4, "c2": 0}]
