"""Pools of Spark's fair scheduler, one for each thread of a strategy and each weight.

Spark fixes the weight of a pool when it is made, from a file that it reads at its start. So there
are pools for all weights, in steps of a factor of two, and a thread whose weight changes has
another pool from then on.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

THREADS = 16
"""Threads beyond so many share pools with earlier ones."""

WEIGHTS = (1, 2, 4, 8, 16, 32, 64)
"""Those of pools; a thread of less than 1 has the pool of 1, as those without a thread have."""


def pool_of(thread: int, weight: float) -> str | None:
    """The pool for the jobs of a thread; None where a step belongs to no thread in particular.

    >>> pool_of(3, 2.5), pool_of(0, 1.0)
    ('millpond-thread-3-2', None)
    """
    if (thread, weight) == (0, 1.0):
        return None
    nearest = min(WEIGHTS, key=lambda each: abs(math.log(each / weight)))
    return f"millpond-thread-{thread % THREADS}-{nearest}"


@contextmanager
def allocation_file() -> Iterator[Path]:
    """A file that tells Spark of all pools; it is read when Spark starts, and gone after that."""
    pools = "".join(
        f'<pool name="millpond-thread-{thread}-{weight}">'
        f"<schedulingMode>FAIR</schedulingMode><weight>{weight}</weight></pool>"
        for thread in range(THREADS)
        for weight in WEIGHTS
    )
    with tempfile.TemporaryDirectory(prefix="millpond-pools-") as directory:
        path = Path(directory) / "pools.xml"
        path.write_text(f"<allocations>{pools}</allocations>", encoding="utf-8")
        yield path
