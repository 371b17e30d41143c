"""Small stand-ins for what operators remember, whose memory can be changed while they are used.

Each has `memory_bytes`, `change_memory`, and answers with bounds.
"""

from millpond.approximation.synopses.bloom_filter import BloomFilter
from millpond.approximation.synopses.count_min import CountMin
from millpond.approximation.synopses.equi_depth import EquiDepthHistogram
from millpond.approximation.synopses.evicted_rows import EvictedRows
from millpond.approximation.synopses.exponential_histogram import ExponentialHistogram
from millpond.approximation.synopses.haar_wavelets import HaarWavelets
from millpond.approximation.synopses.hyper_log_log import HyperLogLog
from millpond.approximation.synopses.kll_sketch import KllSketch

__all__ = [
    "BloomFilter",
    "CountMin",
    "EquiDepthHistogram",
    "EvictedRows",
    "ExponentialHistogram",
    "HaarWavelets",
    "HyperLogLog",
    "KllSketch",
]
