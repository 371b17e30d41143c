"""What a page costs the driver beside the work on its rows, counted in calls and not in seconds."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import pyarrow as pa
import pytest

from millpond import Engine, interruption

SCRIPT = """
CREATE STREAM S (t BIGINT, k INT, v INT) TIMESTAMP BY t;
CREATE QUERY big AS SELECT k, v FROM S WHERE v > 90;
"""

MOST_CALLS = 2_300
"""Of Python's and of C's functions, for a page through a filter; 1,500 to 1,800 were counted, and
some are made whenever so much time has passed."""

MOST_SIGNALS = 30


def rows(first: int) -> pa.Table:
    """A page of a thousand rows from a time on."""
    numbers = range(1_000)
    columns = [first + n for n in numbers], [n % 7 for n in numbers], [n % 100 for n in numbers]
    types = pa.int64(), pa.int32(), pa.int32()
    arrays = [pa.array(*each) for each in zip(columns, types, strict=True)]
    return pa.table(arrays, names=["t", "k", "v"])


class Counting:
    """Counts calls while it is asked to."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        self.calls += event in ("call", "c_call")


def test_a_page_takes_so_many_calls_and_seldom_sets_the_handler_of_signals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_ = []

    def counted(*given: object) -> object:
        set_.append(given)
        return signal.signal(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(interruption, "signal", counted)
    found = []
    with Engine(keep_results=False) as engine:
        engine.execute(SCRIPT)
        for page in range(12):
            table = rows(1_000 * page)
            del set_[:]
            counting = Counting()
            sys.setprofile(counting)
            try:
                engine.push("S", table)
                engine.run_until_idle()
            finally:
                sys.setprofile(None)
            found.append((counting.calls, len(set_)))
        assert engine.result_count("big") > 0
    assert min(calls for calls, _ in found) <= MOST_CALLS, found
    assert min(times for _, times in found) <= MOST_SIGNALS, found
