"""The ready operators in order of a key: O(log n), amortised, to change one or read the best."""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import TypeAlias

Key: TypeAlias = tuple[float, ...]


class ReadyQueue:
    """A heap of operators with lazy deletion.

    >>> queue = ReadyQueue()
    >>> queue.put(7, (2.0,)); queue.put(8, (1.0,)); queue.put(8, (3.0,))
    >>> queue.best()
    7
    """

    def __init__(self) -> None:
        self._key: dict[int, Key] = {}
        self._heap: list[tuple[Key, int]] = []

    def __len__(self) -> int:
        return len(self._key)

    def __contains__(self, operator: int) -> bool:
        return operator in self._key

    def __iter__(self) -> Iterator[int]:
        return iter(self._key)

    def key(self, operator: int) -> Key | None:
        """The operator's present key, or None when it is not in the queue."""
        return self._key.get(operator)

    def put(self, operator: int, key: Key) -> None:
        """Add the operator, or move it to a new key; the smallest key is best."""
        if self._key.get(operator) == key:
            return
        self._key[operator] = key
        heappush(self._heap, (key, operator))
        if len(self._heap) > 64 + 2 * len(self._key):
            self._heap = [(each, identity) for identity, each in self._key.items()]
            heapify(self._heap)

    def discard(self, operator: int) -> None:
        """Take the operator out, if it is in."""
        self._key.pop(operator, None)

    def clear(self) -> None:
        """Take all operators out."""
        self._key.clear()
        self._heap.clear()

    def best(self) -> int | None:
        """The operator with the smallest key, or None."""
        heap, keys = self._heap, self._key
        while heap:
            key, operator = heap[0]
            if keys.get(operator) == key:
                return operator
            heappop(heap)
        return None
