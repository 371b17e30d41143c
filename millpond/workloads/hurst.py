"""How bursty a series of counts is, at all time scales."""

import math

import numpy as np

from millpond.errors import InputError
from millpond.workloads.process import FloatArray


def counts_per_bin(times: FloatArray, bin_seconds: float) -> FloatArray:
    """How many arrivals fall into each stretch of ``bin_seconds``."""
    counts = np.bincount((times / bin_seconds).astype(np.int64))
    return counts.astype(np.float64)


def hurst_estimate(counts: FloatArray) -> float:
    """The Hurst parameter of a series of counts, from its variance-time plot.

    Means over blocks of m counts have a variance that falls as m ** (2H - 2): 0.5 for independent
    counts, towards 1 for long-range dependence.
    """
    blocks = [2**k for k in range(int(math.log2(max(len(counts) // 50, 1))) + 1)]
    if len(blocks) < 3:
        raise InputError(f"a Hurst estimate needs 200 counts at least, not {len(counts)}")
    variances = [
        counts[: len(counts) // m * m].reshape(-1, m).mean(axis=1).var(ddof=1) for m in blocks
    ]
    slope = np.polyfit(np.log(blocks), np.log(variances), 1)[0]
    return float(1 + slope / 2)
