"""Every aggregate agrees with its definition at every instant, however the input is cut."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.approximation.intervals.landmarks import landmark_ranks, packed
from millpond.errors import InputError
from millpond.kernels.aggregate import aggregate_kernel
from millpond.kernels.grouped import AggregateSpec
from millpond.schema import BEGINNING, FOREVER
from tests.drawn_examples import examples
from tests.kernels.histories import INSTANTS, Life, at, cuts, lives, meaning, plain, run

INTEGERS = st.sampled_from([0, 1, 1, 2, -3, 7, None])
DOUBLES = st.sampled_from([0.0, 0.1, 0.1, 0.3, -2.5, 1e9, None])
STRINGS = st.sampled_from(["", "a", "ab", "b", "é", None])
KEYS = st.sampled_from([1, 2, None])
TIMES = [pa.field(n, pa.int64()) for n in ("_ts", "_te", "_w")]


def spread(values):
    """The sample variance, exactly."""
    exact = [Fraction(v) for v in values]
    return float(statistics.variance(exact)) if len(exact) > 1 else None


def percentile(fraction):
    """Linear interpolation between closest ranks."""

    def of(values):
        if not values:
            return None
        ordered = sorted(values)
        rank = fraction * (len(ordered) - 1)
        below = math.floor(rank)
        above = ordered[min(below + 1, len(ordered) - 1)]
        return ordered[below] + (above - ordered[below]) * (rank - below)

    return of


def landmarks(values):
    """Some of them in order, as they are packed."""
    ordered, ranks = sorted(values), landmark_ranks(len(values), 0.3)
    found = np.array([ordered[rank - 1] for rank in ranks], float)
    return packed(found, 0.3, len(values)) if values else None


DEFINITIONS = {
    "count": len,
    "approx_count_distinct": lambda values: len(set(values)),
    "sum": lambda values: math.fsum(values) if values else None,
    "avg": lambda values: math.fsum(values) / len(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
    "variance": spread,
    "stddev": lambda values: None if spread(values) is None else math.sqrt(spread(values)),
    "percentile": percentile(0.3),
    "landmarks": landmarks,
}
DOUBLE_RESULTS = ("avg", "variance", "stddev", "percentile")


def spec(function, type_, distinct=False):
    """The aggregate over the only argument column."""
    result = type_
    if function in ("count", "approx_count_distinct"):
        result = pa.int64()
    elif function in DOUBLE_RESULTS:
        result = pa.float64()
    elif function == "sum" and type_ == pa.int32():
        result = pa.int64()
    elif function == "landmarks":
        result = pa.binary()
    parameter = 0.3 if function in ("percentile", "landmarks") else None
    return AggregateSpec(function, 0, result, type_, distinct, parameter)


def schema(key_types, type_):
    """The events of a kernel with one argument."""
    keys = [pa.field(f"k{i}", t) for i, t in enumerate(key_types)]
    return pa.schema([*keys, pa.field("a0", type_), *TIMES])


def expected(history, definition, distinct, keys):
    """{instant: {(keys…, value): 1}} by definition."""
    found = {}
    for instant in INSTANTS:
        groups = {} if keys else {(): []}
        for row in at(history, instant):
            groups.setdefault(row[:keys], []).append(row[keys])
        found[instant] = {
            (*key, definition(usable(values, distinct))): 1 for key, values in groups.items()
        }
    return found


def usable(values, distinct):
    """What an aggregate counts: no NULLs, and every value once if distinct."""
    present = [v for v in values if v is not None]
    return list(dict.fromkeys(present)) if distinct else present


def nearly(actual, wanted):
    """Whether two meanings agree, doubles up to rounding."""
    for instant, rows in wanted.items():
        ordered = [sorted(map(str, side)) for side in (actual[instant], rows)]
        if ordered[0] == ordered[1]:
            continue
        assert len(rows) == len(actual[instant]), (instant, actual[instant], rows)
        by_key = {row[:-1]: row[-1] for row in actual[instant]}
        for *key, value in rows:
            other = by_key[tuple(key)]
            assert (value is None) == (other is None)
            assert value is None or math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-9)
    return True


CASES = [
    *((f, pa.int32(), INTEGERS) for f in DEFINITIONS),
    *((f, pa.float64(), DOUBLES) for f in DEFINITIONS),
    *((f, pa.string(), STRINGS) for f in ("count", "approx_count_distinct", "min", "max")),
    ("min", pa.bool_(), st.sampled_from([True, False, None])),
    ("max", pa.int64(), st.sampled_from([2**62, -(2**62), 5, None])),
]


@pytest.mark.parametrize("is_append_only", [True, False], ids=["intervals", "retracting"])
@pytest.mark.parametrize(
    ("function", "type_", "values"), CASES, ids=[f"{f}-{t}" for f, t, _ in CASES]
)
@examples(10)
@given(data=st.data())
def test_an_aggregate_holds_at_every_instant(function, type_, values, is_append_only, data):
    keys = data.draw(st.integers(0, 1))
    rows = st.tuples(KEYS, values) if keys else st.tuples(values)
    history = data.draw(lives(rows, not is_append_only, from_beginning=True))
    distinct = data.draw(st.booleans()) and function in ("count", "sum", "avg")
    key_types = (pa.int32(),) * keys
    kernel = aggregate_kernel(key_types, (spec(function, type_, distinct),), is_append_only)
    events, columns = schema(key_types, type_), [*kernel.keys, "a0"]
    output = run(kernel, history, events, columns, data.draw(cuts()))
    assert nearly(meaning(output), expected(history, DEFINITIONS[function], distinct, keys))


@pytest.mark.slow
@examples(15)
@given(lives(st.tuples(KEYS, DOUBLES), may_open=True), cuts(), cuts())
def test_no_cut_changes_any_bit_of_a_result(history, one, other):
    functions = ("sum", "avg", "stddev", "percentile", "landmarks", "max")
    specs = tuple(spec(f, pa.float64()) for f in functions)
    kernel = aggregate_kernel((pa.int32(),), specs, False)
    events = schema(kernel.key_types, pa.float64())
    outputs = [run(kernel, history, events, ["k0", "a0"], c) for c in (one, other)]
    assert meaning(outputs[0]) == meaning(outputs[1])


@pytest.mark.slow
@examples(40)
@given(lives(st.tuples(KEYS, STRINGS, INTEGERS), may_open=False), cuts())
def test_several_aggregates_of_one_group_stand_in_one_row(history, until):
    specs = (
        AggregateSpec("count", None, pa.int64()),
        AggregateSpec("max", 0, pa.string(), pa.string()),
        AggregateSpec("count", 0, pa.int64(), pa.string(), distinct=True),
        AggregateSpec("min", 1, pa.int32(), pa.int32()),
    )
    kernel = aggregate_kernel((pa.int32(),), specs, True)
    fields = [pa.field("k0", pa.int32()), pa.field("a0", pa.string()), pa.field("a1", pa.int32())]
    output = run(kernel, history, pa.schema([*fields, *TIMES]), ["k0", "a0", "a1"], until)
    wanted = {}
    for instant in INSTANTS:
        groups = {}
        for key, text, number in at(history, instant):
            groups.setdefault(key, []).append((text, number))
        wanted[instant] = {(key, *described(rows)): 1 for key, rows in groups.items()}
    assert meaning(output) == wanted


def described(rows):
    """Count, greatest text, distinct texts, smallest number."""
    texts = [text for text, _ in rows if text is not None]
    numbers = [number for _, number in rows if number is not None]
    return len(rows), max(texts, default=None), len(set(texts)), min(numbers, default=None)


@pytest.mark.parametrize("is_append_only", [True, False])
def test_a_global_aggregate_of_nothing_holds_from_the_beginning(is_append_only):
    specs = (AggregateSpec("count", None, pa.int64()), spec("sum", pa.int32()))
    kernel = aggregate_kernel((), specs, is_append_only)
    output = run(kernel, [], schema((), pa.int32()), ["a0"], [3, 9])
    assert output.to_pylist() == [{"_ts": BEGINNING, "_te": FOREVER, "_w": 1, "c0": 0, "c1": None}]


@pytest.mark.parametrize("function", ["min", "max", "sum", "avg", "percentile", "count"])
@pytest.mark.parametrize("is_append_only", [True, False])
def test_nan_is_one_value_greater_than_all_numbers(function, is_append_only):
    nan = math.nan
    history = [Life((nan, nan), 1, 9), Life((nan, 2.0), 2, 6), Life((nan, math.inf), 3, 5)]
    kernel = aggregate_kernel((pa.float64(),), (spec(function, pa.float64()),), is_append_only)
    events = schema(kernel.key_types, pa.float64())
    steps = [
        meaning(run(kernel, history, events, ["k0", "a0"], c))
        for c in ([FOREVER - 1], [1, 2, 3, 4, 5, 6, 7, FOREVER - 1])
    ]
    assert steps[0] == steps[1]
    values = {"min": 2.0, "max": nan, "sum": nan, "avg": nan, "percentile": math.inf, "count": 3}
    if function != "percentile":
        assert steps[0][4] == {plain((nan, values[function])): 1}
    assert len(steps[0][8]) == 1
    assert steps[0][9] == {}


def test_the_extremes_of_bigint_are_values_like_others():
    low, high = -(2**63), 2**63 - 1
    for function, wanted in (("min", low), ("max", high)):
        for is_append_only in (True, False):
            kernel = aggregate_kernel((), (spec(function, pa.int64()),), is_append_only)
            for values in ((low,), (high,), (low, high)):
                history = [Life((v,), 1, 5) for v in values]
                output = run(kernel, history, schema((), pa.int64()), ["a0"], [FOREVER - 1])
                expected_value = wanted if len(values) == 2 else values[0]
                assert meaning(output)[2] == {(expected_value,): 1}


def test_a_sum_is_refused_only_if_it_leaves_the_range():
    kernel = aggregate_kernel((pa.int32(),), (spec("sum", pa.int64()),), True)
    events = schema(kernel.key_types, pa.int64())
    apart = [Life((key, 2**62), 1 + key, 2 + key) for key in range(8)]
    assert meaning(run(kernel, apart, events, ["k0", "a0"], [FOREVER - 1]))[3] == {(2, 2**62): 1}
    after_each_other = [Life((0, 2**62), 1 + n, 2 + n) for n in range(8)]
    for until in ([FOREVER - 1], [3, 5, FOREVER - 1]):
        output = run(kernel, after_each_other, events, ["k0", "a0"], until)
        assert [meaning(output)[i] for i in (1, 8, 9)] == [{(0, 2**62): 1}, {(0, 2**62): 1}, {}]
    together = [Life((0, 2**62), 1, 5), Life((0, 2**62), 2, 5)]
    for until in ([FOREVER - 1], [1, FOREVER - 1]):
        with pytest.raises(InputError, match="range of BIGINT"):
            run(kernel, together, events, ["k0", "a0"], until)


def test_a_mean_exists_where_the_sum_leaves_the_range():
    kernel = aggregate_kernel((), (spec("avg", pa.int64()),), True)
    events = schema((), pa.int64())
    for value in (2**63 - 1, -(2**63), -1, 2**32, -(2**40) - 3):
        history = [Life((value,), 1 + n, 9) for n in range(4)]
        for until in ([FOREVER - 1], [1, 3, FOREVER - 1]):
            output = meaning(run(kernel, history, events, ["a0"], until))
            assert [output[i] for i in (1, 4, 8)] == [{(float(value),): 1}] * 3


def test_a_window_may_slide_for_long_without_drift():
    kernel = aggregate_kernel((), (spec("sum", pa.float64()),), True)
    history = [Life((0.1 * (n % 7) - 0.3,), n, n + 3) for n in range(20)]
    history.append(Life((1e15,), 5, 8))
    output = run(kernel, history, schema((), pa.float64()), ["a0"], [*range(24), FOREVER - 1])
    for instant in range(22):
        values = [row[0] for row in at(history, instant)]
        ((total,),) = meaning(output)[instant]
        assert total == (math.fsum(values) if values else None)


@pytest.mark.parametrize("function", ["count", "sum", "avg", "approx_count_distinct"])
def test_different_numbers_are_members_of_their_group_not_lists_in_its_row(function):
    specs = (spec(function, pa.int64(), distinct=True), spec("max", pa.int64()))
    kernel = aggregate_kernel((pa.int32(),), specs, False)
    assert not any(pa.types.is_list(field.type) for field in kernel.state_schema)
    assert kernel.member_schema.names == ["_g", "_v", "_n"]
