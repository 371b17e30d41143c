"""Values outside Python's range are shown as text; nothing that is shown fails because of them."""

import datetime as dt

import pyarrow as pa
import pytest

from millpond.connectors.python_values import moment, python_rows, python_values, to_pandas

FAR = pa.array([0, 4_000_000, None, -800_000], pa.int32()).cast(pa.date32())
MOMENTS = pa.array([0, 2**62, None], pa.timestamp("us"))


def test_what_python_cannot_hold_becomes_text() -> None:
    assert python_values(FAR) == [dt.date(1970, 1, 1), "12921-08-18", None, "-221-09-04"]
    assert python_values(MOMENTS) == [dt.datetime(1970, 1, 1), "148108-07-06T14:00:27.387904", None]


def test_rows_have_all_their_columns() -> None:
    assert python_rows(pa.table({"n": [1], "d": FAR[1:2]})) == [{"n": 1, "d": "12921-08-18"}]


def test_frames_hold_dates_of_any_year() -> None:
    assert to_pandas(pa.table({"d": FAR}))["d"].dt.year.tolist()[1] == 12921
    near = to_pandas(pa.table({"d": FAR.slice(0, 1)}))["d"].tolist()
    assert near == [dt.date(1970, 1, 1)]


@pytest.mark.parametrize(
    ("ticks", "tick_microseconds", "text"),
    [
        (1, 1, "1970-01-01T00:00:00.000001"),
        (-1, 86_400_000_000, "1969-12-31T00:00:00"),
        (2**61, 1, "75039-04-04T19:00:13.693952"),
        (2**61, 1_000_000, "2305843009213693952 ticks"),
    ],
)
def test_every_time_has_a_text(ticks: int, tick_microseconds: int, text: str) -> None:
    assert moment(ticks, tick_microseconds) == text
