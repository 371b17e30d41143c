from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millpond.scheduling.ready_queue import ReadyQueue


@given(st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(0, 5)))))
def test_the_best_is_the_smallest_key_whatever_came_before(
    changes: list[tuple[int, int | None]],
) -> None:
    queue, keys = ReadyQueue(), {}
    for operator, key in changes:
        if key is None:
            queue.discard(operator)
            keys.pop(operator, None)
        else:
            queue.put(operator, (key, operator))
            keys[operator] = (key, operator)
        assert queue.best() == min(keys, key=lambda each: keys[each], default=None)
        assert len(queue) == len(keys)


def test_the_heap_does_not_grow_with_changes() -> None:
    queue = ReadyQueue()
    for number in range(100_000):
        queue.put(number % 3, (number,))
    assert len(queue._heap) < 200
