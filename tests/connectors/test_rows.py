from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from millpond.connectors import arrow_schema, to_arrow, to_ticks
from millpond.errors import InputError
from tests.connectors.declarations import schema, tuples

ALL = "b BOOLEAN, i INT, l BIGINT, d DOUBLE, s STRING, day DATE, ts TIMESTAMP"


def test_every_type_has_its_arrow_type() -> None:
    assert arrow_schema(schema(ALL)).types == [
        pa.bool_(),
        pa.int32(),
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.date32(),
        pa.timestamp("us"),
    ]


def test_dicts_tuples_frames_and_tables_give_the_same() -> None:
    columns = {
        "b": [True, None],
        "i": [1, None],
        "l": [2**40, None],
        "d": [0.5, None],
        "s": ["x", None],
        "day": [date(2026, 1, 2), None],
        "ts": [datetime(2026, 1, 2, 3, 4, 5, 6), None],
    }
    as_tuples = list(zip(*columns.values(), strict=True))
    as_dicts = [dict(zip(columns, row, strict=True)) for row in as_tuples]
    table = pa.table(columns, schema=arrow_schema(schema(ALL)))
    inputs = [
        as_tuples,
        as_dicts,
        iter(as_dicts),
        pd.DataFrame(columns),
        table,
        table.to_batches()[0],
    ]
    for data in inputs:
        assert to_arrow(data, schema(ALL)).equals(table)


def test_times_of_all_kinds_mix_in_one_column() -> None:
    given = ["2026-01-01", None, datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)]
    table = to_arrow([(value,) for value in given], schema("ts TIMESTAMP"))
    assert [row[0] for row in tuples(table)] == [
        datetime(2026, 1, 1),
        None,
        datetime(2026, 1, 1),
        datetime(2026, 1, 1),
    ]


def test_no_rows_give_an_empty_table() -> None:
    assert to_arrow([], schema("a INT")).schema == arrow_schema(schema("a INT"))


def test_names_match_in_any_case_and_order() -> None:
    assert tuples(to_arrow([{"B": "x", "A": 1}], schema("a INT, b STRING"))) == [(1, "x")]
    table = pa.table({"B": ["x"], "A": [1]})
    assert tuples(to_arrow(table, schema("a INT, b STRING"))) == [(1, "x")]


@pytest.mark.parametrize(
    ("kind", "given", "kept"),
    [
        ("INT", np.int64(5), 5),
        ("INT", 5.0, 5),
        ("BIGINT", Decimal(7), 7),
        ("DOUBLE", 3, 3.0),
        ("DOUBLE", Decimal("0.5"), 0.5),
        ("DOUBLE", np.float32(0.5), 0.5),
        ("BOOLEAN", np.bool_(True), True),
        ("DATE", "2026-01-02", date(2026, 1, 2)),
        ("TIMESTAMP", "2026-01-02 03:04:05", datetime(2026, 1, 2, 3, 4, 5)),
        ("TIMESTAMP", "2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5)),
        ("TIMESTAMP", date(2026, 1, 2), datetime(2026, 1, 2)),
        ("TIMESTAMP", pd.Timestamp("2026-01-02"), datetime(2026, 1, 2)),
        ("TIMESTAMP", np.datetime64("2026-01-02T01"), datetime(2026, 1, 2, 1)),
        ("TIMESTAMP", datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2)),
        (
            "TIMESTAMP",
            datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2))),
            datetime(2026, 1, 1, 22),
        ),
        ("TIMESTAMP", pd.NaT, None),
        ("INT", pd.NA, None),
    ],
)
def test_values_that_fit_are_converted(kind: str, given: Any, kept: Any) -> None:
    assert tuples(to_arrow([(given,)], schema(f"a {kind}"))) == [(kept,)]


@pytest.mark.parametrize(
    ("kind", "value", "article"),
    [
        ("INT", "5", "an"),
        ("INT", 1.5, "an"),
        ("INT", True, "an"),
        ("INT", 2**31, "an"),
        ("INT", float("inf"), "an"),
        ("BIGINT", 2**63, "a"),
        ("DOUBLE", "x", "a"),
        ("BOOLEAN", 1, "a"),
        ("STRING", 5, "a"),
        ("DATE", datetime(2026, 1, 1), "a"),
        ("DATE", "soon", "a"),
        ("TIMESTAMP", "abc", "a"),
        ("TIMESTAMP", 17, "a"),
    ],
)
def test_values_that_do_not_fit_name_their_place(kind: str, value: Any, article: str) -> None:
    with pytest.raises(InputError) as raised:
        to_arrow([(None,), (value,)], schema(f"a {kind}"), "Requests")
    assert str(raised.value) == f"Requests, row 2, column a: {value!r} is not {article} {kind}"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{"a": 1}], "S, row 1: no value for column b"),
        ([{"a": 1, "b": 2, "c": 3}], "S, row 1: column c is not declared; columns: a, b"),
        ([(1, 2), (1,)], r"S, row 2: 1 values for 2 columns \(a INT, b INT\)"),
        ([5], "S, row 1: a row is a dict or a tuple, not 5"),
        (["ab"], "S, row 1: a row is a dict or a tuple, not 'ab'"),
        ({"a": 1, "b": 2}, "S: give a list of rows, not one row"),
        (5, "S: rows are dicts, tuples, a data frame or Arrow data, not 5"),
        (pa.table({"a": [1]}), "S, row 1: no column b; columns here: a"),
        (pa.table({"a": [1], "b": [1], "c": [1]}), "S, row 1: column c is not declared"),
        (pa.table({"a": [1], "b": ["x"]}), "S, row 1, column b: string is not INT"),
        (
            pa.table({"a": [1, 2], "b": [1, 2**40]}),
            "S, row 2, column b: 1099511627776 is not an INT",
        ),
        (pd.DataFrame({"a": [1], "b": [1.5]}), "S, row 1, column b: 1.5 is not an INT"),
        (pd.DataFrame({"a": [1, 2], "b": [2, "x"]}), "S, row 2, column b: 'x' is not an INT"),
        (pd.DataFrame({"a": [1], "b": [1j]}), r"S, row 1, column b: 1j is not an INT"),
        (pd.DataFrame([[1, 2, 3]], columns=["a", "b", "B"]), "S, row 1: there are two columns b"),
        (pa.table([[1], [2], [3]], names=["a", "b", "b"]), "S, row 1: there are two columns b"),
        ([{"a": 1, "b": 2, "B": 3}], "S, row 1: two values for one column"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(data: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        to_arrow(data, schema("a INT, b INT"), "S")


def test_arrow_types_that_fit_are_converted() -> None:
    table = pa.table(
        {
            "b": pa.array([True]),
            "i": pa.array([1], pa.uint8()),
            "l": pa.array([1.0]),
            "d": pa.array([2**53 + 1]),
            "s": pa.array(["x"]).dictionary_encode(),
            "day": pa.array([date(2026, 1, 2)], pa.date64()),
            "ts": pa.array([datetime(2026, 1, 2, tzinfo=UTC)], pa.timestamp("ns", "Asia/Tokyo")),
        }
    )
    expected = (True, 1, 1, 2.0**53, "x", date(2026, 1, 2), datetime(2026, 1, 2))
    assert tuples(to_arrow(table, schema(ALL))) == [expected]


def test_sparse_columns_are_filled_up() -> None:
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0, 0, 5])})
    assert tuples(to_arrow(frame, schema("a INT"))) == [(0,), (0,), (5,)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pa.array([2**60], pa.timestamp("s")),
            r"1152921504606846976 \(timestamp\[s\]\) is not a TIME",
        ),
        (pa.array([2**31 - 1], pa.date32()), r"2147483647 \(date32\[day\]\) is not a TIMESTAMP"),
        (pa.array([1], pa.time64("us")), r"time64\[us\] is not TIMESTAMP"),
    ],
)
def test_times_that_python_cannot_hold_are_refused_in_words(column: pa.Array, message: str) -> None:
    with pytest.raises(InputError, match=f"^S, row 1, column ts: {message}"):
        to_arrow(pa.table({"ts": column}), schema("ts TIMESTAMP"), "S")


def test_bytes_that_are_no_text_are_refused_with_their_row() -> None:
    offsets, bytes_ = pa.py_buffer(np.array([0, 1, 2], "i4").tobytes()), pa.py_buffer(b"a\xe9")
    table = pa.table({"s": pa.StringArray.from_buffers(2, offsets, bytes_)})
    with pytest.raises(InputError, match=r"^S, row 2, column s: b'\\xe9' is not a STRING"):
        to_arrow(table, schema("s STRING"), "S")


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(
        InputError, match=r"^S, row 2, column s: '\\ud800' is not a STRING \(it holds"
    ):
        to_arrow([("x",), ("\ud800",)], schema("s STRING"), "S")


@pytest.mark.parametrize(
    "text", ["20260101", "2026-W01-1", "1" * 5000, "2026-01-01Z", "٢٠٢٦-01-01"]
)
def test_times_as_text_are_those_that_files_may_hold(text: str) -> None:
    with pytest.raises(InputError, match="is not a TIMESTAMP"):
        to_arrow([(text,)], schema("ts TIMESTAMP"))


def test_a_value_is_shown_in_short_whatever_it_is() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise ValueError

    for value in ("x" * 10_000, Odd()):
        with pytest.raises(InputError, match="is not an INT") as raised:
            to_arrow([(value,)], schema("a INT"))
        assert len(str(raised.value)) < 200


def test_integers_with_gaps_come_back_from_pandas() -> None:
    frame = pd.DataFrame({"a": [1, None]})
    assert tuples(to_arrow(frame, schema("a INT"))) == [(1,), (None,)]


def test_ticks_round_down_also_before_1970() -> None:
    times = pa.array([0, 1_999_999, -1, -1_000_000, -1_000_001, None], pa.timestamp("us"))
    assert to_ticks(times, 1_000_000).to_pylist() == [0, 1, -1, -1, -2, None]
    assert to_ticks(times, 1).to_pylist() == [0, 1_999_999, -1, -1_000_000, -1_000_001, None]
    assert to_ticks(pa.chunked_array([[5], [6]]), 1_000_000).to_pylist() == [5, 6]


def test_whatever_is_an_arrow_stream_is_taken() -> None:
    words, places = pa.array(["u", "v"], pa.string_view()), pa.array([0, 1, 0, None], pa.uint32())
    coded = pa.table({"s": pa.DictionaryArray.from_arrays(places, words)})  # as polars' categories
    found = to_arrow(coded.to_reader(), schema("s STRING"))
    assert found["s"].to_pylist() == ["u", "v", "u", None]
