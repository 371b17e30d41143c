"""Matches of random patterns are those of a search by the definition, however steps are cut."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.cql.expressions import Call, Column
from millpond.cql.row_patterns import (
    Absence,
    Definition,
    Either,
    InTurn,
    Occurrence,
    Repeated,
    Skip,
    Slot,
    least_rows,
)
from millpond.kernels.row_patterns import RowPatternKernel
from millpond.schema import Type
from tests.drawn_examples import examples
from tests.row_matching import matches

TYPES = (pa.int64(), pa.bool_(), pa.bool_(), pa.bool_(), pa.int64())
"""The number of a row, whether it may stand for A, B and C, and a value."""
VALUE = Column(4, Type.BIGINT, "v")
SLOTS = (
    Slot("count", None, None, Type.BIGINT),
    *(Slot("count", v, VALUE, Type.BIGINT) for v in "ABC"),
    *(Slot("last", v, VALUE, Type.BIGINT) for v in "ABC"),
    Slot("first", "B", VALUE, Type.BIGINT),
    Slot("sum", "A", VALUE, Type.BIGINT),
)
LAST_A, SUM_A = 4, 8
FAR = 10**6


def condition(position, slot=None):
    """Whether a row may stand for a variable; and is above a slot."""
    own = Column(position, Type.BOOLEAN)
    if slot is None:
        return own
    above = Call(">", (VALUE, Column(len(TYPES) + slot, Type.BIGINT)), Type.BOOLEAN)
    return Call("and", (own, above), Type.BOOLEAN)


def drawn_pattern(rng, depth=2):
    parts = [drawn_part(rng, depth) for _ in range(rng.choice([1, 2, 2, 3]))]
    if sum(map(least_rows, parts)) == 0:
        parts.append(Occurrence(rng.choice("ABC")))
    return InTurn(tuple(parts))


def drawn_part(rng, depth):
    part = Occurrence(rng.choice("ABC"))
    if depth and rng.random() < 0.4:
        part = Either(tuple(drawn_pattern(rng, depth - 1) for _ in range(rng.choice([1, 2, 2]))))
    if rng.random() < 0.5:
        times = rng.choice([(0, None), (1, None), (0, 1), (2, 2), (1, 2), (0, 3), (2, None)])
        part = Repeated(part, *times, rng.random() < 0.4)
    return part


def as_tuple(pattern):
    """The pattern for the search by the definition."""
    match pattern:
        case Occurrence():
            return ("row", pattern.variable)
        case Absence():
            return ("absent", pattern.variable)
        case InTurn():
            return ("turn", [as_tuple(part) for part in pattern.parts])
        case Either():
            return ("either", [as_tuple(part) for part in pattern.parts])
    part = as_tuple(pattern.part)
    return ("repeat", part, pattern.least, pattern.most, pattern.is_reluctant)


def drawn_case(rng):
    """A kernel over one partition column, and rows (time, partition, may be A, B, C, value)."""
    pattern, within = drawn_pattern(rng), rng.choice([None, 1, 3, 5, 9])
    if within is not None and rng.random() < 0.3:
        pattern = InTurn((*pattern.parts, Absence(rng.choice("ABC"))))
    skip = rng.choice([Skip("past"), Skip("next"), Skip("first", "B"), Skip("last", "A")])
    looked = {v: rng.choice([None, None, LAST_A, SUM_A]) for v in "ABC"}
    definitions = tuple(
        Definition(v, condition(1 + i, looked[v]))
        for i, v in enumerate("ABC")
        if rng.random() < 0.9
    )
    told = tuple(range(len(SLOTS)))
    kernel = RowPatternKernel(
        (pa.int64(),), TYPES, 1, pattern, definitions, SLOTS, told, within, skip
    )
    time, rows = 0, []
    for _ in range(rng.choice([4, 8, 12])):
        time += rng.choice([0, 1, 1, 2, 4])
        rows.append(
            (time, rng.randrange(2), *(rng.random() < 0.6 for _ in "ABC"), rng.randrange(5))
        )
    return kernel, looked, rows


def expected(kernel, looked, rows):
    """(when, partition, *slots) by the definition."""
    defined = {each.variable for each in kernel.definitions}
    for key in (0, 1):
        own = [row for row in rows if row[1] == key]

        def stands(variable, path, index, own=own):
            if variable not in defined:
                return True
            row, behind = own[index], [*path, (index, variable)]
            values = [own[i][5] for i, name in behind if name == "A"]
            slot = looked[variable]
            if slot is None:
                return row["ABC".index(variable) + 2]
            least = values and (values[-1] if slot == LAST_A else sum(values))
            return row["ABC".index(variable) + 2] and bool(values) and row[5] > least

        times = [row[0] for row in own]
        skip = kernel.skip.to, kernel.skip.variable
        for when, path in matches(as_tuple(kernel.pattern), times, stands, kernel.within, skip):
            of = {v: [own[i][5] for i, name in path if name == v] for v in "ABC"}
            counts = [len(path), *(len(of[v]) for v in "ABC")]
            lasts = [of[v][-1] if of[v] else None for v in "ABC"]
            first, total = (of["B"] or [None])[0], sum(of["A"]) if of["A"] else None
            yield (when, key, *counts, *lasts, first, total)


def events(kernel, rows, after, until):
    """What a step reads: rows that come, and those whose time is over."""
    names = ["_ts", "_w", "k0", *(f"r{i}" for i in range(len(TYPES)))]
    told = []
    for number, (time, key, *values) in enumerate(rows):
        if after < time <= until:
            told.append((time, 1, key, number, *values))
        if kernel.within is not None and after < time + kernel.within <= until:
            told.append((time + kernel.within, -1, key, number, *values))
    types = (pa.int64(), pa.int64(), pa.int64(), *TYPES)
    columns = list(zip(*told, strict=True)) or [()] * len(names)
    arrays = [pa.array(list(c), type_) for c, type_ in zip(columns, types, strict=True)]
    return pa.table(arrays, names=names)


def run(kernel, rows, cuts):
    """The matches of all steps, and what is kept of each partition in the end."""
    states, found, after = {}, [], -1
    for until in [*cuts, FAR]:
        read = events(kernel, rows, after, until)
        keys = set(read["k0"].to_pylist())
        known = [states[key] for key in sorted(keys & set(states))]
        state = pa.concat_tables([kernel.state_schema.empty_table(), *known])
        output, changed = kernel.run(read, state, after, until)
        found += [tuple(row.values()) for row in output.to_pylist()]
        for place in range(changed.num_rows):
            row = changed.slice(place, 1)
            states.pop(row["k0"][0].as_py(), None)
            if row["_n"][0].as_py():
                states[row["k0"][0].as_py()] = row
        after = until
    return found, states


@pytest.mark.slow
@examples(400)
@given(st.integers(0, 2**32))
def test_matches_are_those_of_a_search_by_the_definition(seed):
    rng = random.Random(seed)
    kernel, looked, rows = drawn_case(rng)
    cuts = sorted(rng.sample(range(rows[-1][0] + 6), rng.randint(0, 4)))
    found, states = run(kernel, rows, cuts)
    plain = [(when, *rest) for when, _, *rest in found]
    assert sorted(map(repr, plain)) == sorted(map(repr, expected(kernel, looked, rows)))
    assert kernel.within is None or not states


def kernel_of(pattern, definitions, slots, within=5):
    return RowPatternKernel(
        (pa.int64(),), TYPES, 1, pattern, definitions, slots, (0,), within, Skip("past")
    )


A_THEN_B = InTurn((Occurrence("A"), Occurrence("B")))
IS_B = Definition("B", condition(2))
ROWS = [(1, 0, True, False, False, 7), (2, 1, True, True, False, 8)]


def test_of_a_partition_nothing_is_kept_when_its_matches_are_over():
    kernel = kernel_of(A_THEN_B, (IS_B,), (Slot("last", "A", VALUE, Type.BIGINT),))
    _, states = run(kernel, ROWS, [])
    assert not states


def test_a_row_before_a_match_is_kept_if_it_is_asked_for():
    before = Slot("last", "A", VALUE, Type.BIGINT, 1)
    _, states = run(kernel_of(A_THEN_B, (IS_B,), (before,)), ROWS, [])
    assert {key: state["h4"].to_pylist() for key, state in states.items()} == {0: [[7]], 1: [[8]]}


def test_a_row_inside_a_match_is_kept_as_long_as_this():
    before = Slot("last", "B", VALUE, Type.BIGINT, 1)
    _, states = run(kernel_of(A_THEN_B, (IS_B,), (before,)), ROWS, [])
    assert not states


def test_ways_that_go_on_alike_are_one():
    """(A | B | A B)+ has two ways for each two rows."""
    part = Either((Occurrence("A"), Occurrence("B"), A_THEN_B))
    pattern = InTurn((Repeated(part, 1, None), Occurrence("C")))
    kernel = kernel_of(pattern, (Definition("C", condition(3)),), SLOTS[:1], within=1_000)
    rows = [(time, 0, True, True, False, time) for time in range(60)]
    _, state = kernel.run(events(kernel, rows, -1, 59), kernel.state_schema.empty_table(), -1, 59)
    assert max(state["_ways"].to_pylist()[0]) <= 5
