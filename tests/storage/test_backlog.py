"""What waits is what a reader that works has yet to pass, counted once, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millpond.planning.window_times import WindowTimes
from millpond.schema import FOREVER
from millpond.storage.backlog import Amount, Backlog
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader, Retention
from millpond.storage.store import Store
from tests.storage.test_queues import SCHEMA, elements

ROW_BYTES = 8 * len(SCHEMA)

STEPS = st.lists(
    st.one_of(
        st.lists(st.integers(1, 9), min_size=1, max_size=5),  # rows so far after the heartbeat
        st.integers(0, 6),  # the heartbeat moves on
        st.tuples(st.integers(0, 2), st.integers(0, 6)),  # a reader does
    ),
    max_size=25,
)


@given(STEPS, st.booleans())
def test_the_backlog_is_what_readers_have_not_passed(steps: list, merges: bool) -> None:
    """Pages overlap in time, one reader has a window, and one only looks on."""
    store, backlog = Store(), Backlog()
    queue = Queue("q", SCHEMA, store, is_stream=True)
    window = Retention(WindowTimes(7, None), comes_back=True)
    readers = [queue.subscribe(Reader(0)), queue.subscribe(Reader(0, window, scans=merges))]
    readers.append(queue.subscribe(Reader(0, works=False)))
    queue.advance(0)
    came: list[int] = []
    for step in steps:
        match step:
            case list():
                times = [queue.heartbeat + gap for gap in step]
                queue.append(elements(*((t, FOREVER, t) for t in times)))
                came += times
            case int():
                queue.advance(queue.heartbeat + step)
            case reader, further:
                cursor = readers[reader].cursor
                readers[reader].cursor = min(cursor + further, queue.heartbeat)
                queue.free()
                if (change := queue.compaction()) is not None:
                    queue.compact(change)
        backlog.count(queue)
        passed = min(reader.cursor for reader in readers[:2])
        rows = sum(t > passed for t in came)
        waiting = Amount(rows, rows * ROW_BYTES, queue.bytes - queue.spilled_bytes)
        assert (backlog.rows, backlog.bytes, backlog.memory_bytes) == backlog.of("q") == waiting
        for cursor in {reader.cursor for reader in readers[:2]}:
            expected = sum(cursor < t <= queue.heartbeat for t in came)
            assert queue.waiting(cursor, queue.heartbeat) == expected
        caught_up = all(reader.cursor >= queue.heartbeat for reader in readers[:2])
        assert queue.is_caught_up() == caught_up
    backlog.forget("q")
    assert (backlog.rows, backlog.of("q")) == (0, Amount())
    store.close()


def test_nothing_waits_where_nobody_reads() -> None:
    store = Store()
    queue, backlog = Queue("q", SCHEMA, store, is_stream=True), Backlog()
    queue.append(elements((1, FOREVER, 1)))
    backlog.count(queue)
    assert backlog.bytes == 0
    queue.subscribe(Reader(0))
    backlog.count(queue)
    assert backlog.bytes == ROW_BYTES
    store.close()
