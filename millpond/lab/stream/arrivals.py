"""Orders and fulfilments in order of arrival, as pages of their numbers: streams that adhere to a
constraint within k, and some of their tuples just so."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from millpond.kernels.groups import Ints

PAGE_ROWS = 2_000
PAGES = 20
ROWS = PAGES * PAGE_ROWS

Pages: TypeAlias = list[Ints]
"""The numbers of a stream's tuples, page by page; an empty page: none comes."""
Streams: TypeAlias = tuple[Pages, Pages]
"""Orders and fulfilments; of two pages that come together that of the orders comes first."""
Arrivals: TypeAlias = Callable[[int, np.random.Generator], Streams]
"""The streams that adhere within k."""


def ordered(k: int, generator: np.random.Generator) -> Streams:
    """Each tuple comes at most k rows behind a larger one."""
    return _paged(_nearly_in_order(k, generator)), _paged(_nearly_in_order(k, generator))


def _nearly_in_order(k: int, generator: np.random.Generator) -> Ints:
    """Blocks of k + 1 numbers come in any order, but the largest first and the smallest last."""
    numbers, block = np.arange(ROWS), k + 1
    for start in range(0, len(numbers), block):
        part = numbers[start : start + block]
        generator.shuffle(part)
        for place, extreme in ((0, part.argmax()), (-1, part.argmin())):
            part[place], part[extreme] = part[extreme], part[place]
    return numbers


def clustered(k: int, generator: np.random.Generator) -> Streams:
    """Two tuples of each number, with k others between them; numbers come in no order."""
    numbers = generator.permutation(ROWS // 2)
    return _paged(_twice(numbers, k + 1, generator)), _paged(_twice(numbers, k + 1, generator))


def unique(k: int, generator: np.random.Generator) -> Streams:
    """Each order once (k = 0), or again k rows later; fulfilments of the orders of the same page or
    the next one."""
    numbers = generator.permutation(ROWS)
    orders = _paged(_twice(numbers[: ROWS // 2], k, generator) if k else numbers)
    near = [np.concatenate(pair) for pair in zip(orders, [*orders[1:], orders[-1]], strict=True)]
    return orders, [generator.choice(each, PAGE_ROWS) for each in near]


def referring(k: int, generator: np.random.Generator) -> Streams:
    """Each order once, and the orders of a page k rows after the first of their fulfilments."""
    known = _paged(generator.permutation(ROWS))
    late = k // PAGE_ROWS
    orders = [*[np.arange(0)] * late, *known[: PAGES - late]]
    return orders, [generator.choice(each, PAGE_ROWS) for each in known]


def _twice(numbers: Ints, block: int, generator: np.random.Generator) -> Ints:
    """Blocks of numbers in any order, each block twice."""
    whole = len(numbers) // block * block
    blocks = generator.permuted(numbers[:whole].reshape(-1, block), axis=1)
    rest = generator.permutation(numbers[whole:])
    return np.concatenate([np.hstack([blocks, blocks]).ravel(), rest, rest])


def _paged(keys: Ints) -> Pages:
    return np.split(keys, PAGES)
