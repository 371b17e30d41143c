"""Functions OVER say of each row what its frame says, at every instant, however cut."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.cql.expressions import Frame
from millpond.kernels.ordered import MemberIndex
from millpond.kernels.over import OverKernel
from millpond.kernels.sorts import Sort
from millpond.schema import FOREVER
from tests.drawn_examples import examples
from tests.kernels.histories import INSTANTS, Life, at, cuts, fed, lives, meaning, step_events

TYPES = (pa.int32(), pa.int64(), pa.float64(), pa.string())
ROWS = st.tuples(
    st.sampled_from([1, 2]),
    st.sampled_from([-3, 0, 1, 2, 5, None]),
    st.sampled_from([0.5, -2.0, 1e30, None]),
    st.sampled_from(["a", "b", None]),
)
OFFSETS = [-3, -1, 0, 1, 2, None]
FRAMES = [
    Frame(unit, start, end)
    for unit in ("rows", "range")
    for start in OFFSETS
    for end in OFFSETS
    if start is None or end is None or start <= end
]
CALLS = st.tuples(
    st.sampled_from(["count", "sum", "avg", "min", "max", "first_value", "last_value"]),
    st.sampled_from(["r1", "r2"]),
    st.sampled_from(FRAMES),
    st.just(0),
) | st.tuples(
    st.sampled_from(["lag", "lead", "ntile"]),
    st.sampled_from(["r1", "r3"]),
    st.just(Frame("range", None, 0)),
    st.integers(1, 3),
)
RESULTS = {"count": pa.int64(), "avg": pa.float64(), "ntile": pa.int64()}


NAMES = [f"r{i}" for i in range(len(TYPES))]


def events_of(history, after, until):
    """What a step of a history reads."""
    return [one | {"k0": one["r0"]} for one in step_events(history, NAMES, after, until)]


def sort_key(row, descends, nulls_first):
    """By the second column, then by all."""
    value = row[1]
    of_null = 0 if (value is None) == nulls_first else 1
    own = (of_null, 0 if value is None else -value if descends else value)
    return own, tuple((v is not None, v if v is not None else 0) for v in row)


def said(call, part, at, descends):
    """What a function says of the row at a place of its partition, straight from the frame."""
    function, argument, frame, number = call
    values = [row[int(argument[1:])] for row in part]
    if function == "ntile":
        size, larger = divmod(len(part), number)
        return next(n for n in range(1, number + 1) if at < n * size + min(n, larger))
    if function in ("lag", "lead"):
        place = at - number if function == "lag" else at + number
        return values[place] if 0 <= place < len(part) else None
    inside = [values[i] for i in range(len(part)) if is_inside(frame, part, at, i, descends)]
    if function in ("first_value", "last_value"):
        return (inside or [None])[0 if function == "first_value" else -1]
    present = [value for value in inside if value is not None]
    if function == "count":
        return len(present)
    if not present:
        return None
    if function in ("min", "max"):
        return min(present) if function == "min" else max(present)
    total = sum(map(Fraction, present))
    total = float(total) if isinstance(present[0], float) else int(total)
    return total if function == "sum" else total / len(present)


def is_inside(frame, part, at, i, descends):
    away = i - at
    if frame.unit == "range":
        own, other = part[at][1], part[i][1]
        far = 1_000 if i > at else -1_000
        if own == other:
            away = 0
        elif own is None:  # only what is NULL too is within reach of it
            frame = Frame("range", *(None if bound is None else 0 for bound in bounds(frame)))
            away = far
        elif other is None:
            away = far
        else:
            away = own - other if descends else other - own
        if own is None and own == other:
            return True
    start, end = bounds(frame)
    return (start is None or away >= start) and (end is None or away <= end)


def bounds(frame):
    return frame.start, frame.end


def expected(call, rows, descends, nulls_first):
    """What is said of rows at an instant."""
    parts = {}
    for row in rows:
        parts.setdefault(row[0], []).append(row)
    found = Counter()
    for part in parts.values():
        part.sort(key=lambda row: sort_key(row, descends, nulls_first))
        found.update((*row, said(call, part, at, descends)) for at, row in enumerate(part))
    return dict(found)


def kernel_of(call, descends, nulls_first):
    function, argument, frame, number = call
    type_ = TYPES[int(argument[1:])]
    given = None if function == "ntile" else argument
    sort = Sort("r1", descends, nulls_first)
    result = RESULTS.get(function, type_)
    return OverKernel((pa.int32(),), TYPES, (sort,), function, given, frame, number, result)


EVENTS = pa.schema(
    [
        *(pa.field(name, pa.int64()) for name in ("_ts", "_te", "_w")),
        pa.field("k0", pa.int32()),
        *(pa.field(f"r{i}", type_) for i, type_ in enumerate(TYPES)),
    ]
)


@pytest.mark.slow
@examples(200)
@given(lives(ROWS, may_open=True), CALLS, st.booleans(), st.booleans(), cuts())
def test_functions_say_what_their_frames_hold(history, call, descends, nulls_first, until):
    kernel = kernel_of(call, descends, nulls_first)
    found = meaning(fed(kernel, EVENTS, lambda *step: events_of(history, *step), until)[0])
    for instant in INSTANTS:
        assert found[instant] == expected(call, at(history, instant), descends, nulls_first)


@pytest.mark.parametrize(
    ("function", "frame", "most"),
    [
        ("sum", Frame("range", None, 0), 1),
        ("sum", Frame("rows", -5, 0), 1),
        ("max", Frame("rows", -5, 2), 5),
        ("lag", Frame("range", None, 0), 1),
        ("avg", Frame("range", -7, 0), 1),
    ],
)
def test_a_row_at_the_end_costs_what_it_changes(monkeypatch, function, frame, most):
    """However long the partition is: as many rows are told anew, and few are read."""
    kernel = kernel_of((function, "r1", frame, 1), False, True)
    history = [Life((1, n, 0.5, "a"), n, FOREVER) for n in range(3_000)]
    read, between = [], MemberIndex.between

    def counted(self, *places):
        found = between(self, *places)
        read.append(found.num_rows)
        return found

    monkeypatch.setattr(MemberIndex, "between", counted)
    until = [2_990, 2_991, 2_992, 2_993]
    output = fed(kernel, EVENTS, lambda *step: events_of(history, *step), until)[0]
    assert all(count < 200 for count in read[1:])
    late = [ts for ts in output["_ts"].to_pylist() if ts > 2_990]
    assert len(late) <= 3 * most
