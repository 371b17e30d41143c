"""Times are within the range in which windows and delays can be added to them."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from millpond.connectors.rows import row_position
from millpond.connectors.times import EARLIEST, LATEST, as_ticks, times_of
from millpond.errors import InputError


def test_the_ends_of_the_range_are_within_it() -> None:
    column = pa.chunked_array([[EARLIEST, LATEST]])
    assert times_of(column, "t", 1, row_position("S")).tolist() == [EARLIEST, LATEST]


@pytest.mark.parametrize("value", [EARLIEST - 1, LATEST + 1, 2**62, -(2**63)])
def test_a_time_out_of_range_is_named_with_its_row_and_the_range(value: int) -> None:
    with pytest.raises(InputError) as raised:
        times_of(pa.chunked_array([[1, value]]), "t", 1, row_position("S"))
    assert str(raised.value) == (
        f"S, row 2, column t: the time {value} is out of range; "
        f"times lie between {EARLIEST} and {LATEST} ticks"
    )


@pytest.mark.parametrize(
    ("time", "ticks"),
    [
        (7, 7),
        (np.int32(7), 7),
        (dt.datetime(1970, 1, 1, 0, 0, 7, 9), 7),
        (dt.datetime(1970, 1, 1, 2, 0, 7, tzinfo=dt.timezone(dt.timedelta(hours=2))), 7),
        (pd.Timestamp("1970-01-01 00:00:07"), 7),
        (np.datetime64("1970-01-01T00:00:07"), 7),
        ("1970-01-01 00:00:07", 7),
        (dt.date(1970, 1, 2), 86_400),
    ],
)
def test_a_time_may_be_given_in_many_forms(time: Any, ticks: int) -> None:
    assert as_ticks(time, 1_000_000, "S") == ticks


@pytest.mark.parametrize("time", [None, True, 1.5, "soon", dt.time(1), pd.NaT, object, [1], 1j])
def test_what_is_no_time_is_refused(time: Any) -> None:
    with pytest.raises(
        InputError, match=r"^S: .* is not a time: give a number of ticks or a datetime"
    ):
        as_ticks(time, 1, "S")


def test_a_number_too_large_is_refused() -> None:
    with pytest.raises(InputError, match=f"^S: the time {2**70} is out of range"):
        as_ticks(2**70, 1, "S")
