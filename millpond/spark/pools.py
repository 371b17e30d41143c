"""Pools of Spark's fair scheduler, one for each thread of a strategy and each weight.

Spark fixes the weight of a pool when it is made, from a file that it reads at its start. So there
are pools for all weights, in steps of a factor of two, and a thread whose weight changes has
another pool from then on.
"""

import math
from pathlib import Path

from millpond.spark.cached_files import cached_file

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


def allocation_file() -> Path:
    """A file that tells Spark of all pools; Spark reads it when it starts."""
    pools = "".join(
        f'<pool name="millpond-thread-{thread}-{weight}">'
        f"<schedulingMode>FAIR</schedulingMode><weight>{weight}</weight></pool>"
        for thread in range(THREADS)
        for weight in WEIGHTS
    )
    return cached_file("pools", "pools.xml", f"<allocations>{pools}</allocations>")
