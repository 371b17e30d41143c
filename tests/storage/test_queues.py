"""Pages and queues without Spark: nothing is lost, whatever is cut, merged, grown or freed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import StateError
from millpond.planning.window_times import WindowTimes
from millpond.schema import FOREVER
from millpond.storage import queues
from millpond.storage import store as stores
from millpond.storage.pages import Page, Span, concatenated, total_rows
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader, Retention
from millpond.storage.store import Store
from tests.patience import wait_until

SCHEMA = pa.schema([(name, pa.int64()) for name in ("_ts", "_te", "_w", "c0")])


def elements(*rows: tuple[int, int, int]) -> pa.Table:
    """Elements (start, end, value) of weight one."""
    columns = zip(*((start, end, 1, value) for start, end, value in rows), strict=True)
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=SCHEMA)


def spill(queue: Queue, wanted: int) -> None:
    for page in queue.to_spill(wanted):
        page.spill()
    queue.count_spilled()


def times(found: list[Span] | list[Page]) -> list[int]:
    return concatenated(found, SCHEMA)["_ts"].to_pylist()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(parent=tmp_path)
    yield made
    made.close()


@pytest.fixture
def queue(store: Store) -> Queue:
    return Queue("q", SCHEMA, store, is_stream=False)


def test_the_last_page_is_known_with_what_it_took_up(queue: Queue) -> None:
    assert queue.last_page_rows == 0
    queue.append(elements((1, FOREVER, 1)))
    queue.append(elements((2, FOREVER, 1), (3, FOREVER, 2)))
    assert queue.last_page_rows == 3


def test_what_covers_a_time_leaves_out_what_nobody_may_see(queue: Queue) -> None:
    queue.append(elements(*((t, FOREVER, t) for t in range(10))))
    assert times(queue.covering(4, 6)) == list(range(7))
    assert times(queue.covering(4, 6, since=2)) == [3, 4, 5, 6]


@pytest.mark.parametrize("is_sorted", [True, False])
def test_between_is_part_of_a_page_and_no_copy_of_it(queue: Queue, is_sorted: bool) -> None:
    queue.append(elements(*((t, FOREVER, t) for t in range(10))), is_sorted=is_sorted)
    (span,) = queue.between(2, 6)
    assert times([span]) == [3, 4, 5, 6]
    assert (span.rows, span.is_whole) == (4, False)
    assert queue.waiting(2, 6) == 4
    assert [(page.first, page.last) for page in queue.pages] == [(0, 9)]


def test_what_only_files_hold_is_cut_all_the_same(queue: Queue, store: Store) -> None:
    queue.append(elements(*((t, t + 5, t) for t in range(10))))
    (page,) = queue.pages
    there = Page.referred(store, page.reference())
    assert not there.is_in_driver
    assert there.count(2, 6) == 4
    assert times([Span(there, 2, 6)]) == [3, 4, 5, 6]
    assert times([Span(there, 6, 8, ends=True)]) == [2, 3]


def test_a_short_unread_page_grows_and_a_read_one_does_not(queue: Queue) -> None:
    queue.append(elements((1, FOREVER, 0)), is_sorted=True)
    queue.append(elements((2, FOREVER, 0)), is_sorted=True)
    assert [page.rows for page in queue.pages] == [2]
    queue.advance(2)
    queue.append(elements((3, FOREVER, 0)), is_sorted=True)
    assert [page.rows for page in queue.pages] == [2, 1]


def test_a_grown_page_keeps_the_time_of_its_first_arrival(queue: Queue) -> None:
    queue.append(elements((1, FOREVER, 0)))
    first = queue.oldest_arrival(0)
    wait_until(lambda: time.monotonic() > first)
    queue.append(elements((2, FOREVER, 0)))
    assert queue.oldest_arrival(0) == first


def test_a_long_page_does_not_grow(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "GROWING_ROWS", 1)
    queue.append(elements((1, FOREVER, 0), (2, FOREVER, 0)))
    queue.append(elements((3, FOREVER, 0)))
    assert [page.rows for page in queue.pages] == [2, 1]


def test_what_ends_is_found_by_its_end_whatever_its_start(queue: Queue) -> None:
    queue.append(elements((1, 9, 0), (2, 5, 1), (3, FOREVER, 2), (4, 6, 3)))
    assert concatenated(queue.ending(4, 8), SCHEMA)["c0"].to_pylist() == [1, 3]
    assert total_rows(queue.ending(4, 8)) == 2
    assert total_rows(queue.ending(9, 20)) == 0


def test_pages_in_which_nothing_ends_are_not_looked_at(queue: Queue) -> None:
    queue.append(elements((1, 9, 0), (2, FOREVER, 1)))
    queue.advance(2)
    queue.append(elements((3, 20, 2)))
    queue.advance(3)
    assert [span.page.first for span in queue.ending(3, 8)] == []
    assert [span.page.first for span in queue.ending(8, 9)] == [1]
    assert [span.page.first for span in queue.ending(8, 30)] == [1, 3]


def test_what_has_not_begun_does_not_end(queue: Queue) -> None:
    queue.append(elements((1, 9, 0), (7, 8, 1)))
    assert concatenated(queue.ending(5, 9), SCHEMA)["c0"].to_pylist() == [0]
    assert total_rows(queue.ending(5, 9)) == 1


def test_a_page_goes_when_every_reader_has_passed_it(queue: Queue, store: Store) -> None:
    slow, quick = (queue.subscribe(Reader(0)) for _ in range(2))
    queue.append(elements((1, FOREVER, 0)))
    path = Path(queue.pages[0].paths[0])
    queue.advance(1)
    quick.cursor = 1
    queue.free()
    assert path.exists()
    slow.cursor = 1
    queue.free()
    assert not path.exists()
    assert (queue.pages, store.bytes) == ([], 0)


def test_small_pages_are_merged_where_readers_scan_them_all(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "GROWING_ROWS", 0)
    forever = Retention(WindowTimes(None, None), comes_back=True)
    reader = queue.subscribe(Reader(0, forever, scans=True))
    for t in range(1, queues.MERGE_PAGES + 1):
        queue.append(elements((t, FOREVER, t)))
        queue.advance(t)
        reader.cursor = t
        compaction = queue.compaction()
        if compaction is not None:
            queue.compact(compaction)
        queue.free()
    assert len(queue.pages) == 1
    assert times(queue.pages) == list(range(1, queues.MERGE_PAGES + 1))


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(1, 5), min_size=1, max_size=6), st.booleans(), st.integers(-3, 3)
        ),
        max_size=8,
    )
)
def test_no_row_is_lost_or_doubled_and_all_bytes_are_counted(
    steps: list[tuple[list[int], bool, int]],
) -> None:
    """Random pages, heartbeats and cuts: a reader meets each row once, in a step that covers it."""
    store = Store()
    queue = Queue("q", SCHEMA, store, is_stream=False)
    reader = queue.subscribe(Reader(0))
    now, expected, met = 0, [], []
    for gaps, reads, offset in steps:
        rows = []
        for gap in gaps:
            now += gap
            rows.append((now, FOREVER, len(expected) + len(rows)))
        expected += [value for _, _, value in rows]
        queue.append(elements(*rows), is_sorted=True)
        queue.advance(now - 1)
        if reads:
            until = min(max(reader.cursor, now - 1 + offset), queue.heartbeat)
            met += concatenated(queue.between(reader.cursor, until), SCHEMA)["c0"].to_pylist()
            reader.cursor = until
            queue.free()
        assert store.bytes == queue.bytes
    queue.advance(now)
    met += concatenated(queue.between(reader.cursor, now), SCHEMA)["c0"].to_pylist()
    assert met == expected
    queue.close()
    assert store.bytes == 0
    store.close()


def test_a_page_that_a_step_reads_stays_until_the_step_is_over(queue: Queue) -> None:
    queue.append(elements((1, FOREVER, 7)))
    (page,) = queue.pages
    path = Path(page.paths[0])
    page.pin()
    queue.advance(1)
    queue.free()
    assert queue.pages == []
    assert times([page]) == [1]
    page.unpin()
    assert not path.exists()


def test_letting_pages_go_costs_as_much_as_there_are_kinds_of_readers(store: Store) -> None:
    """Ten thousand readers of three kinds: no page is looked at for each of them."""
    queue = Queue("q", SCHEMA, store, is_stream=True)
    looked: list[int] = []

    class Watched(Retention):
        def until(self, page: Page) -> int:
            looked.append(page.first)
            return super().until(page)

    kinds = [Watched(WindowTimes(length, None), comes_back=True) for length in (1, 2, 3)]
    readers = [queue.subscribe(Reader(0, kinds[i % 3])) for i in range(10_000)]
    for t in range(1, 21):
        queue.append(elements((t, FOREVER, t)))
        queue.advance(t)
        for reader in readers:
            reader.cursor = t
        queue.free()
    assert len(looked) == 20 * 3
    assert [page.first for page in queue.pages] == [17, 18, 19, 20]
    for reader in readers:
        queue.unsubscribe(reader)
    queue.free()
    assert queue.pages == []


def test_a_store_is_for_one_engine_at_a_time(tmp_path: Path) -> None:
    first = Store(tmp_path / "here")
    with pytest.raises(StateError, match="another engine has it open"):
        Store(tmp_path / "here")
    first.close()
    Store(tmp_path / "here").close()


KILLED = """
import os, signal, sys
from pathlib import Path
from millpond.storage.store import Store
store = Store(parent=Path(sys.argv[1]))
print(store.directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_directory_of_a_killed_engine_goes_and_that_of_a_living_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "UNLOCKED_SECONDS", 0)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, check=False
    )
    left = Path(killed.stdout.strip())
    living = Store(parent=tmp_path)
    assert not left.exists()
    other = Store(parent=tmp_path)
    assert living.directory.exists()
    living.close()
    other.close()
    assert list(tmp_path.iterdir()) == []


def test_pages_read_again_for_their_ends_are_merged_by_levels(queue: Queue) -> None:
    """However many steps filled the window, few pages are looked at for what ends in one."""
    reader = queue.subscribe(Reader(-1, Retention(ends=True)))
    for time_ in range(300):
        queue.append(elements((time_, time_ + 7, time_), (time_, time_ + 100, time_)))
        queue.advance(time_)
        found = queue.ending(reader.cursor, time_)
        assert len(found) <= queues.MERGE_PAGES + 1
        wanted = [start for start in (time_ - 100, time_ - 7) if start >= 0]
        assert times(found) == wanted or sorted(times(found)) == wanted
        reader.cursor = time_
        compaction = queue.compaction()
        if compaction is not None:
            queue.compact(compaction)
        queue.free()
    assert queue.rows <= 3 * 107


def test_no_page_is_merged_to_one_that_would_not_fit(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While pages are merged their rows are in memory twice."""
    monkeypatch.setattr(queues, "GROWING_ROWS", 0)
    monkeypatch.setattr(queues, "MERGED_BYTES", 40 * 4 * 8)
    reader = queue.subscribe(Reader(-1, Retention(ends=True)))
    for time_ in range(300):
        queue.append(elements((time_, time_ + 10_000, time_)))
        queue.advance(time_)
        reader.cursor = time_
        compaction = queue.compaction()
        if compaction is not None:
            queue.compact(compaction)
    assert max(page.rows for page in queue.pages) <= 40
    assert len(queue.pages) < 100
    assert sorted(times(queue.pages)) == list(range(300))


def test_what_is_spilled_is_read_again_and_the_earliest_of_the_backlog_stays(
    queue: Queue, store: Store
) -> None:
    forever = Retention(WindowTimes(1000, None), comes_back=True)
    reader = queue.subscribe(Reader(0, forever))
    for first in range(1, 41, 10):
        queue.append(elements(*((t, FOREVER, t) for t in range(first, first + 10))), is_sorted=True)
        queue.advance(first + 9)
    reader.cursor = 20
    one = queue.pages[0].bytes
    for pages, left in [(1, [0, 2, 3]), (2, [2]), (9, [])]:
        spill(queue, pages * one)
        in_memory = [n for n, page in enumerate(queue.pages) if not page.is_spilled]
        assert in_memory == left
        assert queue.spilled_bytes == (4 - len(left)) * one
    assert times(queue.between(5, 33)) == list(range(6, 34))
    assert queue.waiting(20, 40) == 20
    reader.cursor = 2000
    queue.advance(2000)
    queue.free()
    assert (queue.bytes, queue.spilled_bytes, store.bytes) == (0, 0, 0)
    assert list(store.path(stores.SPILLED).iterdir()) == []


def test_a_page_that_a_step_reads_is_not_spilled(queue: Queue) -> None:
    queue.subscribe(Reader(0))
    page = queue.append(elements((1, FOREVER, 1)))
    assert page is not None
    page.pin()
    spill(queue, 1)
    assert (page.is_spilled, queue.spilled_bytes) == (False, 0)
    page.unpin()
    spill(queue, 1)
    assert page.is_spilled


def test_who_comes_later_and_is_less_far_finds_what_others_have_let_go(queue: Queue) -> None:
    ahead = queue.subscribe(Reader(0))
    behind = queue.subscribe(Reader(0, Retention(ends=True)))
    queue.append(elements((1, 9, 1), (2, 9, 2)))
    queue.advance(5)
    ahead.cursor = 5
    queue.free()
    late = queue.subscribe(Reader(0))
    queue.unsubscribe(behind)
    queue.free()
    assert times(queue.between(0, 5)) == [1, 2]
    late.cursor = 5
    queue.free()
    assert queue.pages == []


def test_a_bounded_reader_holds_nothing_later(queue: Queue) -> None:
    reader = queue.subscribe(Reader(0, Retention(ends=True)))
    queue.append(elements((1, 9, 1)))
    queue.advance(5)
    reader.cursor = 5
    bounded = queue.bound(reader, 5)
    assert not queue.is_cut_by(5)
    assert queue.backlog() == (0, 0)
    queue.append(elements((6, 20, 2)))
    queue.advance(7)
    queue.free()
    assert times(queue.pages) == [1]
    assert queue.is_held_by(bounded)
    bounded.cursor = 9
    queue.free()
    assert queue.pages == []
    assert not queue.is_held_by(bounded)


def test_a_queue_serves_who_reads_again_what_somebody_there_holds(store: Store) -> None:
    queue = Queue("s", SCHEMA, store, is_stream=True)
    kept = Retention(WindowTimes(10, None), comes_back=True)
    wanted, there = Reader(50, kept), queue.subscribe(Reader(40, kept))
    assert queue.serves(wanted, 50, [there])
    assert not queue.serves(wanted, 30, [there])
    there.since = 45  # what it reads again from before it reads elsewhere
    assert not queue.serves(wanted, 50, [there])
    assert queue.serves(wanted, 60, [there])
    assert queue.serves(Reader(50), 50, [])
