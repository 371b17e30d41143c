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

from millpond.schema import FOREVER
from millpond.storage import pages, queues
from millpond.storage.pages import PageStore, concatenated
from millpond.storage.queues import Queue, Reader

SCHEMA = pa.schema([(name, pa.int64()) for name in ("_ts", "_te", "_w", "c0")])


def elements(*rows: tuple[int, int, int]) -> pa.Table:
    """Elements (start, end, value) of weight one."""
    columns = zip(*((start, end, 1, value) for start, end, value in rows), strict=True)
    return pa.table([pa.array(column, pa.int64()) for column in columns], schema=SCHEMA)


def times(found: list[pages.Page]) -> list[int]:
    return concatenated(found, SCHEMA)["_ts"].to_pylist()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PageStore]:
    made = PageStore(tmp_path)
    yield made
    made.close()


@pytest.fixture
def queue(store: PageStore) -> Queue:
    return Queue("q", SCHEMA, store, is_stream=False)


def test_between_cuts_pages_at_both_ends(queue: Queue) -> None:
    queue.append(elements(*((t, FOREVER, t) for t in range(10))), is_sorted=True)
    assert times(queue.between(2, 6)) == [3, 4, 5, 6]
    assert [(page.first, page.last) for page in queue.pages] == [(0, 2), (3, 6), (7, 9)]


def test_a_short_unread_page_grows_and_a_read_one_does_not(queue: Queue) -> None:
    queue.append(elements((1, FOREVER, 0)), is_sorted=True)
    queue.append(elements((2, FOREVER, 0)), is_sorted=True)
    assert [page.rows for page in queue.pages] == [2]
    queue.readers.append(Reader(1, lambda page: page.last))
    queue.append(elements((3, FOREVER, 0)), is_sorted=True)
    assert [page.rows for page in queue.pages] == [2, 1]


def test_a_grown_page_keeps_the_time_of_its_first_arrival(queue: Queue) -> None:
    queue.append(elements((1, FOREVER, 0)))
    first = queue.oldest_arrival(0)
    time.sleep(0.01)
    queue.append(elements((2, FOREVER, 0)))
    assert queue.oldest_arrival(0) == first


def test_a_long_page_does_not_grow(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "GROWING_ROWS", 1)
    queue.append(elements((1, FOREVER, 0), (2, FOREVER, 0)))
    queue.append(elements((3, FOREVER, 0)))
    assert [page.rows for page in queue.pages] == [2, 1]


def test_what_ends_is_found_by_its_end_whatever_its_start(queue: Queue) -> None:
    queue.append(elements((1, 9, 0), (2, 5, 1), (3, FOREVER, 2), (4, 6, 3)))
    assert queue.ending(4, 8)["c0"].to_pylist() == [1, 3]
    assert queue.count_ending(4, 8) == 2
    assert queue.count_ending(9, 20) == 0


def test_what_has_not_begun_does_not_end(queue: Queue) -> None:
    queue.append(elements((1, 9, 0), (7, 8, 1)))
    assert queue.ending(5, 9)["c0"].to_pylist() == [0]
    assert queue.count_ending(5, 9) == 1


def test_a_page_goes_when_every_reader_has_passed_it(queue: Queue, store: PageStore) -> None:
    slow, quick = (Reader(0, lambda page: page.last) for _ in range(2))
    queue.readers += [slow, quick]
    queue.append(elements((1, FOREVER, 0)))
    path = Path(queue.pages[0].path)
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
    queue.readers.append(Reader(0, lambda page: FOREVER, scans=True))
    for t in range(1, queues.MERGE_PAGES + 1):
        queue.append(elements((t, FOREVER, t)))
        queue.advance(t)
        queue.readers[0].cursor = t
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
    store = PageStore()
    queue = Queue("q", SCHEMA, store, is_stream=False)
    reader = Reader(0, lambda page: page.last)
    queue.readers.append(reader)
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


KILLED = """
import os, signal, sys
from pathlib import Path
from millpond.storage.pages import PageStore
store = PageStore(Path(sys.argv[1]))
print(store.directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_directory_of_a_killed_engine_goes_and_that_of_a_living_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "UNLOCKED_SECONDS", 0)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True, text=True, check=False
    )
    left = Path(killed.stdout.strip())
    living = PageStore(tmp_path)
    assert not left.exists()
    other = PageStore(tmp_path)
    assert living.directory.exists()
    living.close()
    other.close()
    assert list(tmp_path.iterdir()) == []
