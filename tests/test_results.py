"""What queries put out is kept in order, named, and handed on complete."""

from __future__ import annotations

import threading
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.delivery.results import MOST_FAILURES, ResultLog, call_subscribers, feed_sink
from millpond.kernels.results import summed
from millpond.schema import BEGINNING
from millpond.settings import Keeping
from millpond.storage.pages import Page
from millpond.storage.store import Store

SCHEMA = pa.schema([("_ts", pa.int64()), ("_w", pa.int64()), ("c0", pa.int32())])


def rows(*given):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in given], SCHEMA)


@pytest.fixture
def page(tmp_path):
    store = Store(parent=tmp_path)
    yield lambda *given: Page.of(store, rows(*given)) if given else None
    store.close()


@pytest.fixture
def log():
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t")
        engine.execute("CREATE QUERY q AS SELECT a FROM S")
        return ResultLog(engine.query_entry("q"), 1, False)


def handed_on(log):
    """Delivers; the errors of its sink."""
    told = []
    lock = threading.RLock()
    feed_sink(log, lock, lambda log, error: told.append(error))
    call_subscribers(log, lock)
    return [str(error) for error in told if error is not None]


class ListSink:
    """A sink that remembers, and raises when it is told to."""

    def __init__(self):
        self.tables, self.error = [], None

    def write(self, table, number=0):
        if self.error is not None:
            raise self.error
        self.tables.append(table.to_pylist())

    def close(self):
        pass


def test_equal_rows_of_one_instant_are_summed_and_zeros_left_out():
    table = summed(rows((3, 1, 7), (3, 1, 7), (3, 1, 8), (3, -1, 8), (2, 1, None), (2, 2, None)))
    assert table.to_pylist() == [
        {"_ts": 2, "_w": 3, "c0": None},
        {"_ts": 3, "_w": 2, "c0": 7},
    ]


VALUES = st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2), VALUES, st.booleans())))
def test_a_sum_is_a_sum_however_many_are_equal(given_rows):
    names = ["_ts", "_w", "c0", "c1"]
    types = [pa.int64(), pa.int64(), pa.float64(), pa.bool_()]
    schema = pa.schema(list(zip(names, types, strict=True)))
    table = pa.Table.from_pylist([dict(zip(names, r, strict=True)) for r in given_rows], schema)
    expected = Counter()
    for ts, weight, value, flag in given_rows:
        expected[ts, str(value).replace("-", ""), flag] += weight
    found = summed(table)
    told = [(r["_ts"], str(r["c0"]).replace("-", ""), r["c1"]) for r in found.to_pylist()]
    assert Counter(told) == Counter(key for key, weight in expected.items() if weight)
    assert dict(zip(told, found["_w"].to_pylist(), strict=True)) == {
        key: weight for key, weight in expected.items() if weight
    }
    assert found["_ts"].to_pylist() == sorted(found["_ts"].to_pylist())


def test_results_are_in_order_of_time_under_the_names_of_the_query(log, page):
    log.add(page((BEGINNING, 1, 1)), 0)
    log.add(page((4, 1, 2), (3, -1, 1)), 4)
    assert log.table().to_pylist() == [
        {"ts": None, "weight": 1, "a": 1},
        {"ts": 3, "weight": -1, "a": 1},
        {"ts": 4, "weight": 1, "a": 2},
    ]
    assert log.rows == 3
    assert log.complete_until == 4


def test_an_empty_log_has_the_columns_of_the_query(log):
    assert log.table().column_names == ["ts", "weight", "a"]
    assert log.table()["a"].type == pa.int32()
    assert log.table().num_rows == 0


def test_subscribers_get_each_page_and_no_empty_ones(log, page):
    seen = []
    log.subscribe(lambda table: seen.append(table.to_pylist()))
    log.add(page(), 2)
    log.add(page((4, 1, 2), (4, 1, 2)), 4)
    handed_on(log)
    assert seen == [[{"ts": 4, "weight": 2, "a": 2}]]


def test_what_is_not_kept_is_still_handed_on_and_then_forgotten(log, page):
    seen = []
    log.is_kept = False
    log.subscribe(seen.append)
    log.add(page((4, 1, 2)), 4)
    (kept,) = log.pages
    handed_on(log)
    assert kept.is_free
    assert log.table().num_rows == 0
    assert log.rows == len(seen) == 1


def test_a_subscriber_that_raises_takes_nothing_from_the_others(log, page, caplog):
    seen, calls, log.sink = [], [], ListSink()

    def raises(table):
        calls.append(table.num_rows)
        raise ValueError("no")

    log.subscribe(raises)
    log.subscribe(lambda table: seen.append(table.num_rows))
    for time in range(5):
        log.add(page((time, 1, 2)), time)
    assert handed_on(log) == []
    assert (len(seen), len(log.sink.tables)) == (5, 5)
    assert len(calls) == MOST_FAILURES
    assert "a subscriber raised ValueError: no; it is not called again" in caplog.text


def test_a_sink_that_fails_has_its_pages_kept_for_another_try(log, page):
    seen, log.sink, log.is_kept = [], ListSink(), False
    log.subscribe(lambda table: seen.append(table.num_rows))
    log.sink.error = OSError("no space")
    log.add(page((1, 1, 2)), 1)
    assert handed_on(log) == ["no space"]
    assert seen == [1]


def test_times_print_as_counts_or_as_moments(log):
    assert log.format_time(5) == 5
    log.in_timestamps, log.tick_microseconds = True, 1_000_000
    assert log.format_time(61) == "1970-01-01T00:01:01"
    assert log.format_time(None) is None


def keep_to(log, keeping):
    """Lets go what is more than is to be kept; how many pages that were."""
    over = log.over(keeping)
    if over is not None:
        log.pass_over(over)
    return 0 if over is None else over.pages


def test_what_is_more_than_is_kept_goes_page_by_page(log, page):
    pages = [page((t, 1, t), (t, 1, t + 1)) for t in range(4)]
    for t, each in enumerate(pages):
        log.add(each, t)
    assert keep_to(log, Keeping(rows=5)) == 1
    assert log.kept == pages[1:]
    assert keep_to(log, Keeping(rows=5)) == 0
    assert keep_to(log, Keeping(rows=1)) == 2
    assert (log.rows, log.kept_rows, log.kept) == (8, 2, pages[3:])


def test_results_are_kept_as_far_as_is_asked_for(log, page):
    pages = [page((ts, 1, 0), (ts, 1, 1)) for ts in range(5)]
    for ts, each in enumerate(pages):
        log.add(each, ts)
        keep_to(log, Keeping(rows=4))
    assert [each.first for each in log.kept] == [3, 4]
    assert [each.is_free for each in pages] == [True, True, True, False, False]
    assert log.rows == 10
    keep_to(log, Keeping(seconds=3600.0))
    assert len(log.kept) == 2
    keep_to(log, Keeping(seconds=0.0))
    assert log.kept == []


def test_what_is_let_go_stays_for_those_who_have_not_seen_it(log, page):
    seen = []
    log.subscribe(lambda table: seen.append(table["a"].to_pylist()))
    for ts in range(3):
        log.add(page((ts, 1, ts)), ts)
        keep_to(log, Keeping(rows=0))
    assert log.kept == []
    assert handed_on(log) == []
    assert seen == [[0], [1], [2]]
    assert log.pages == []


@pytest.mark.parametrize("count", [1, 3])
def test_an_engine_keeps_the_last_results_also_after_a_restart(tmp_path, count):
    """Of one query and of several that run as one."""
    with Engine({"keep_results": "2 rows"}, store=tmp_path) as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t")
        for number in range(count):
            engine.execute(f"CREATE QUERY q{number} AS SELECT a FROM S WHERE a >= {number}")
        for ts in range(6):
            engine.push("S", [(ts, ts)])
            engine.advance("S", ts)
            engine.run_until_idle()
        kept = [engine.results(f"q{number}").to_pylist() for number in range(count)]
    assert kept[0] == [{"ts": ts, "weight": 1, "a": ts} for ts in (4, 5)]
    with Engine({"keep_results": "2 rows"}, store=tmp_path) as again:
        assert [again.results(f"q{number}").to_pylist() for number in range(count)] == kept
        assert again.result_count("q0") == 6
    with Engine({"keep_results": "all"}, store=tmp_path) as again:
        assert [again.results(f"q{number}").to_pylist() for number in range(count)] == kept
