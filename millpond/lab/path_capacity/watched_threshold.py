"""Threshold with notes of its modes, over the Path Capacity paper's experiment."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from millpond.lab.path_capacity.workload import UNIT_SECONDS, Setting, run_phases
from millpond.lab.sentences import NOTHING
from millpond.scheduling.snapshot import FloatArray, Observation
from millpond.scheduling.strategies.threshold import Threshold
from millpond.simulator import Record

BIN_SECONDS = 5.0
FEWEST_BINS = 4
"""Of fewer there is no telling how smooth an output is."""


class Watched(Threshold):
    """Threshold that notes when it changes its mode; the first change is to saving mode."""

    def __init__(
        self,
        memory_bytes: float,
        beta: float,
        interval_seconds: float,
        slice_seconds: float = UNIT_SECONDS,
    ) -> None:
        super().__init__(
            memory_bytes, beta, interval_seconds=interval_seconds, slice_seconds=slice_seconds
        )
        self.change_seconds: list[float] = []

    def observe(self, observation: Observation) -> None:
        """Note whether the mode is another now."""
        before = self.is_saving
        super().observe(observation)
        if before != self.is_saving:
            self.change_seconds.append(observation.now_seconds)

    def saving_seconds(self, until_seconds: float) -> list[tuple[float, float]]:
        """From when to when it saved."""
        ends = [*self.change_seconds, until_seconds]
        return list(zip(ends[::2], ends[1::2], strict=False))


class Course(NamedTuple):
    """One run: how often the mode changed, the share of the time it saved, and what came out."""

    changes: int
    saving_share: float
    latency_seconds: float
    saving_bins: Sequence[int]
    counts: FloatArray


def course_of(
    setting: Setting, seed: int, memory_bytes: float, beta: float, interval_seconds: float
) -> Course:
    """Run it with that much memory, that β, and memory looked at that often when it is empty."""
    strategy = Watched(memory_bytes, beta, interval_seconds)
    record = run_phases(strategy, setting, seed)
    saving = strategy.saving_seconds(record.finished_seconds)
    return Course(
        len(strategy.change_seconds),
        sum(end - begin for begin, end in saving) / record.finished_seconds,
        record.mean_latency_seconds,
        [place for begin, end in saving for place in _bins_inside(begin, end)],
        record.throughput(BIN_SECONDS),
    )


def _bins_inside(begin: float, end: float) -> range:
    return range(int(np.ceil(begin / BIN_SECONDS)), int(end / BIN_SECONDS))


def smoothness(course: Course, other: Record) -> float:
    """Peak to mean of what came out while it saved, over the other's in the same bins."""
    counts = other.throughput(BIN_SECONDS)
    bins = [each for each in course.saving_bins if each < min(len(counts), len(course.counts))]
    if len(bins) < FEWEST_BINS:
        return float("inf")
    return _peak_to_mean(course.counts[bins]) / max(_peak_to_mean(counts[bins]), NOTHING)


def _peak_to_mean(counts: FloatArray) -> float:
    return float(counts.max() / max(counts.mean(), NOTHING))
